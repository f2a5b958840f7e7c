"""pub-missing-exchange (A03): each publish goes to an exchange that does not exist, and closes its channel (404).

Messages in flight on the channel are lost with it. Source: https://www.rabbitmq.com/docs/channels#error-handling
"""

from collections.abc import Iterator

from diagnosis.contract import RuleResult, View
from diagnosis.rules.publishers._shared.refused_publish import refused_finding, refused_publishes

NAME = "pub-missing-exchange"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield one finding for each connection that loops."""
    for each in refused_publishes(view):
        if each.missing_name_bytes and not (each.oversized or each.is_forbidden or each.is_property):
            yield refused_finding(view, NAME, each, exchanges=each.disappeared)
