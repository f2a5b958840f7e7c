"""pub-oversized-message (A11): messages are larger than the broker takes, and each one ends its channel (406).

The default limit fell from 128 MiB to 16 MiB with 4.0: an upgrade breaks publishers of large messages.
Source: https://www.rabbitmq.com/docs/configure (max_message_size), release notes of 4.0
"""

from collections.abc import Iterator

from diagnosis.contract import RuleResult, View
from diagnosis.rules.publishers.refused_publish import finding, in_log, refused
from diagnosis.words import size

NAME = "pub-oversized-message"

_ALLOW = "rabbitmqctl eval 'application:set_env(rabbit, max_message_size, 134217728).'"


def evaluate(view: View) -> Iterator[RuleResult]:
    """One finding for each connection that sends what is too large."""
    default = None if view.version is None else "16 MiB" if view.version >= (4, 0) else "128 MiB"
    told = f"default of this version: {default}" if default else "default: 128 MiB before 4.0, 16 MiB since"
    for each in refused(view):
        if not each.oversized:
            continue
        sent = size(each.received)
        yield finding(
            view,
            NAME,
            each,
            f"sends messages that are too large, {sent} before each end of its channel",
            (
                'The broker ends each channel with an error as long as "PRECONDITION_FAILED - message size ... is '
                f'larger than configured max size ...", and no publish counts ({told}). A message is at least as large '
                "as what was read of it."
            ),
            (
                in_log("precondition_failed: message size"),
                "see the limit: rabbitmqctl eval 'application:get_env(rabbit, max_message_size).'",
                f"allow more for now (until restart, new channels): {_ALLOW}",
                "keep it so: max_message_size = 134217728 in rabbitmq.conf of every node",
                "better: put the payload into a store of blobs, and its address into the message",
            ),
        )
