"""pub-missing-exchange (A03): each publish goes to an exchange that is not there, and ends its channel (404).

All that is in flight on the channel is lost with it. Source: https://www.rabbitmq.com/docs/channels#error-handling
"""

from collections.abc import Iterator
from shlex import quote

from diagnosis.contract import RuleResult, View
from diagnosis.rules.publishers.refused_publish import Refused, finding, in_log, refused
from diagnosis.words import amount, some

NAME = "pub-missing-exchange"


def evaluate(view: View) -> Iterator[RuleResult]:
    """One finding for each connection that loops."""
    for each in refused(view):
        if not each.missing or each.oversized or each.is_forbidden:
            continue
        vhost = each.closing.connection.vhost or "/"
        yield finding(
            view,
            NAME,
            each,
            f"publishes to an exchange that is not there{_name(each)}, it seems, and loses its channel each time",
            _cause(each, vhost),
            (
                in_log("not_found"),
                f"see which exchanges there are: rabbitmqctl list_exchanges -p {quote(vhost)} name type",
                "start the application that declares it, or restore it: rabbitmqctl import_definitions FILE.json",
                "let the publisher stop at a 404 and declare what it needs, and publish again what was not confirmed",
            ),
        )


def _name(each: Refused) -> str:
    return f" ({some(map(repr, each.gone))} was, some minutes ago)" if each.gone else ""


def _cause(each: Refused, vhost: str) -> str:
    length = amount(each.missing, "byte")
    sure = (
        f"{some(map(repr, each.gone))} vanished while we watched, and its name fits"
        if each.gone
        else "the management API shows no reason, so this is the likeliest and not the only one"
    )
    others = (
        f"a publish to {some(map(repr, each.forbidden))} that user {each.closing.connection.user!r} may not write to"
        if each.forbidden
        else "a consume from a queue that is not there"
    )
    return (
        f"The broker ends each channel with an error as long as \"NOT_FOUND - no exchange '...' in vhost '{vhost}'\" "
        f"with a name of {length}, and no publish counts; {sure}. As long could be: {others}."
    )
