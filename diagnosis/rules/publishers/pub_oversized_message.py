"""pub-oversized-message (A11): messages are larger than the broker accepts, and each one closes its channel (406).

The default limit fell from 128 MiB to 16 MiB with 4.0: an upgrade breaks publishers of large messages.
Source: https://www.rabbitmq.com/docs/configure (max_message_size), release notes of 4.0
"""

from collections.abc import Iterator

from diagnosis.contract import RuleResult, View
from diagnosis.rules.publishers._shared.refused_publish import refused_finding, refused_publishes

NAME = "pub-oversized-message"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield one finding for each connection that sends messages that are too large."""
    for each in refused_publishes(view):
        if each.oversized:
            yield refused_finding(view, NAME, each)
