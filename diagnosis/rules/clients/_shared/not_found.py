"""What a client may ask for in vain (404), where each of its channels ends with that error.

"no queue" and "no exchange" are as long where the name of the queue has three bytes more. A request for a queue has few
bytes beside its name (the tag of a consumer, and arguments), a publish has any number. So a loop with more bytes than a
request for the queue is one of a publisher; with fewer it may be either.
Source: https://www.rabbitmq.com/amqp-0-9-1-reference
"""

from dataclasses import dataclass

from ackscope.findings import Fact
from ackscope.snapshot import Queue
from diagnosis.churn_loops import ChurnLoop, text_bytes
from diagnosis.purpose import was_consumed
from diagnosis.series import delta
from diagnosis.view import View

_CONSUME, _WITH_ANSWER = 46, 19
"""Bytes of a cycle with basic.consume, without names: channel.open (13), the request (21), channel.close-ok (12).

And of another request that has an answer without a name, such as basic.qos.
"""
_PUBLISH = 72
"""Bytes of a cycle with basic.publish, without names, properties and content."""
_TAG, _ARGUMENT = 45, 26
"""Most bytes of the tag of a consumer (libraries: 31 to 38), and of one argument, such as x-cancel-on-ha-failover."""
_LONGER = len("exchange") - len("queue")
"""Bytes by which the name of a missing queue is longer than that of an exchange whose error is as long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotFound:
    """What a client may ask for in vain.

    Attributes:
        gone: queues that were deleted within the window.
        alike: queues that fill and were never consumed, and whose former name may be as long.
        exchange_bytes: length of the name of an exchange; None if the client sends too little for a publish.
        queue_first: whether a queue is more probable than an exchange: few messages are so small.
    """

    gone: tuple[str, ...]
    alike: tuple[str, ...]
    exchange_bytes: int | None
    queue_first: bool

    def facts(self) -> dict[str, Fact]:
        """Return `{"gone", "alike", "exchange_bytes", "queue_first"}`."""
        return {
            "gone": list(self.gone),
            "alike": list(self.alike),
            "exchange_bytes": self.exchange_bytes,
            "queue_first": self.queue_first,
        }


def lost_queues(view: View, closing: ChurnLoop) -> tuple[Queue, ...]:
    """Return the deleted queues that a client may still use: the broker's error (404) is as long as with their name."""
    vhost = closing.connection.vhost or "/"
    return tuple(
        queue
        for queue in view.gone_queues()
        if queue.vhost == vhost and was_consumed(queue) and _is_refused(closing, queue)
    )


def renamed_queues(view: View, closing: ChurnLoop) -> tuple[Queue, ...]:
    """Return queues that fill and were never consumed, if a queue with a name as long gives the broker's error (404).

    A release that counts its queues leaves clients behind that ask for the former one.
    """
    vhost = closing.connection.vhost or "/"
    return tuple(
        queue
        for queue in view.queues
        if queue.vhost == vhost
        and queue.consumers == 0
        and queue.messages_ready
        and not was_consumed(queue)
        and _is_refused(closing, queue)
        and delta(view.history(queue), "publish") > 0
    )


def not_found(view: View, closing: ChurnLoop) -> NotFound | None:
    """Return what a client may ask for in vain; None if no queue is among it."""
    lost = lost_queues(view, closing)
    known = lost or renamed_queues(view, closing)
    if not known or not closing.by_broker:
        return None
    exchange, received = text_bytes(known[0].name) - _LONGER, closing.received or 0.0
    fits = exchange > 0 and received >= _PUBLISH + exchange
    plain = received <= _request_bytes(closing, known[0]) - _ARGUMENT
    return NotFound(
        gone=tuple(queue.name for queue in lost),
        alike=() if lost else tuple(queue.name for queue in known),
        exchange_bytes=exchange if fits else None,
        queue_first=plain or not fits,
    )


def _is_refused(closing: ChurnLoop, queue: Queue) -> bool:
    text = f"NOT_FOUND - no queue '{queue.name}' in vhost '{queue.vhost}'"
    return closing.said(text) and (closing.received or 0.0) <= _request_bytes(closing, queue)


def _request_bytes(closing: ChurnLoop, queue: Queue) -> float:
    """Return the most bytes of a cycle that asks for this queue."""
    answers = max(0.0, (closing.packets or 0.0) - 2)
    return _CONSUME + text_bytes(queue.name) + _TAG + _ARGUMENT + answers * _WITH_ANSWER
