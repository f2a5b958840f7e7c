"""pub-access-refused (A14): a user may not write to its exchange, so each publish closes the channel (403).

A permission does not change by itself, so it is a warning as soon as it is reported, unless the error may be that of a
routing key or of a consumer: their texts do not tell the exchange. Topic permissions refuse single routing keys of a
topic exchange in the same way. So do properties of a message (see `pub-property-refused`): where the broker accepts
other messages on the same channel, the finding names both.
Source: https://www.rabbitmq.com/docs/access-control
"""

from collections.abc import Iterator

from diagnosis.contract import RuleResult, View
from diagnosis.rules.publishers._shared.native_publishers import without_sessions
from diagnosis.rules.publishers._shared.refused_publish import refused_finding, refused_publishes

NAME = "pub-access-refused"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield one finding for each connection that is refused in a loop."""
    yield from without_sessions(view, NAME)
    for each in refused_publishes(view):
        if each.is_forbidden:
            # The broker calls the default exchange, which has an empty name, amq.default.
            names = tuple("" if name == "amq.default" else name for name in each.forbidden or each.topics)
            clear = bool(each.forbidden) and not each.readable and not each.may_be_property
            after = view.thresholds.early if clear else None
            yield refused_finding(view, NAME, each, exchanges=names, warning_after=after)
