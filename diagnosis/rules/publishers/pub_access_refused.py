"""pub-access-refused (A14): a user may not write to the exchange it publishes to, and each publish ends its channel.

Source: https://www.rabbitmq.com/docs/access-control
"""

from collections.abc import Iterator
from shlex import quote

from diagnosis.contract import RuleResult, View
from diagnosis.rules.publishers.refused_publish import finding, in_log, refused

NAME = "pub-access-refused"


def evaluate(view: View) -> Iterator[RuleResult]:
    """One finding for each connection that is refused in a loop."""
    for each in refused(view):
        if not each.is_forbidden:
            continue
        connection = each.closing.connection
        user, vhost = connection.user or "USER", connection.vhost or "/"
        names = " or ".join(map(repr, each.forbidden[:3]))
        allow = f"rabbitmqctl set_permissions -p {quote(vhost)} {quote(user)} CONFIGURE WRITE READ"
        yield finding(
            view,
            NAME,
            each,
            f"(user {user!r}) may not write to exchange {names}, it seems, and loses its channel at each publish",
            (
                'The broker ends each channel with an error as long as "ACCESS_REFUSED - access to exchange ... '
                f"refused for user '{user}'\" for {names}, and no publish counts. The management API shows no reason: "
                f"as long would be the absence of an exchange with a name of {each.missing} bytes."
            ),
            (
                in_log("access_refused"),
                f"see what the user may: rabbitmqctl list_user_permissions {quote(user)}",
                f"let it write: {allow}   # regular expressions; all three are replaced",
                "publish again what was not confirmed",
            ),
        )
