"""pub-property-refused: a property of a message is refused, and each such message closes the channel (406).

The user_id must be the user of the connection, an expiration must be a number of milliseconds, and the headers CC and
BCC must be arrays. Other messages of the client are accepted, so the error is as seldom as such messages are.
Source: https://www.rabbitmq.com/docs/validated-user-id, https://www.rabbitmq.com/docs/ttl#per-message-ttl-in-publishers,
https://www.rabbitmq.com/docs/sender-selected
"""

from collections.abc import Iterator

from diagnosis.contract import RuleResult, View
from diagnosis.rules.publishers._shared.refused_publish import refused_finding, refused_publishes

NAME = "pub-property-refused"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield one finding for each connection whose channels probably end because of a property."""
    for each in refused_publishes(view):
        if each.is_property:
            clear = bool(each.accepted) and not each.is_missing
            yield refused_finding(view, NAME, each, warning_after=view.thresholds.early if clear else None)
