"""What a client may ask for in vain (404), where each of its channels ends with that error.

"no queue" and "no exchange" are as long where the name of the queue has three bytes more. A request for a queue has few
bytes beside its name (the tag of a consumer, and arguments), a publish has any number. So a loop with more bytes than a
request for the queue is one of a publisher; with fewer it may be either. Where no queue of that length is known, the
bytes must be those of a consumer: without a tag of its own, or with one as long as libraries make them. Seen on 4.3.6,
with names of 16 and 13 bytes: 119 bytes for basic.qos and basic.consume (tag of 38), 166 for a message of 64 bytes in
confirm mode.
Source: https://www.rabbitmq.com/amqp-0-9-1-reference
"""

import re
from collections import Counter
from dataclasses import dataclass

from ackscope.findings import Fact
from ackscope.snapshot import Queue
from diagnosis.churn_loops import ChurnLoop, text_bytes
from diagnosis.purpose import was_consumed
from diagnosis.rules.clients._shared.loops import FEW_MESSAGES
from diagnosis.rules.clients._shared.refusals import access_words, refusal
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
_TAGS = (30.5, 41.0)
"""Bytes of the tags that libraries make (31 to 38), of heartbeats, and of a channel.open without its answer."""
_SMALLEST, _NO_TAG = -6.0, 3.5
"""Bytes by which other requests for a queue are smaller than that of a consumer (basic.get: 5), and of heartbeats."""
_MIN_WORDS = 2
"""Words of the name of a client that a queue with its name has: a single one is too common."""
_LONGER = len("exchange") - len("queue")
"""Bytes by which the name of a missing queue is longer than that of an exchange whose error is as long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotFound:
    """What a client may ask for in vain.

    Attributes:
        gone: queues that were deleted within the window.
        alike: queues that fill and were never consumed, and whose former name may be as long.
        bound: queues that do not exist and were bound within the window.
        named: names as long, made of the words of the client's name, as queues of the virtual host are named.
        queue_bytes: length of the name of the queue.
        exchange_bytes: length of the name of an exchange; None if the client sends too little for a publish.
        queue_first: whether a queue is more probable than an exchange: few messages are so small.
    """

    gone: tuple[str, ...] = ()
    alike: tuple[str, ...] = ()
    bound: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    queue_bytes: int
    exchange_bytes: int | None
    queue_first: bool

    @property
    def queues(self) -> tuple[str, ...]:
        """The names that the missing queue may have; () if none is known."""
        return self.gone or self.bound or self.named

    def facts(self) -> dict[str, Fact]:
        """Return the attributes by name."""
        return {
            "gone": list(self.gone),
            "alike": list(self.alike),
            "bound": list(self.bound),
            "named": list(self.named),
            "queue_bytes": self.queue_bytes,
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
    if not closing.by_broker:
        return None
    lost = lost_queues(view, closing)
    known = lost or renamed_queues(view, closing)
    length = text_bytes(known[0].name) if known else asked_bytes(view, closing)
    if not length:
        return None
    exchange, received = length - _LONGER, closing.received or 0.0
    fits = exchange > 0 and received >= _PUBLISH + exchange
    plain = not known or received <= _request_bytes(closing, length) - _ARGUMENT
    bound, named = ((), ()) if known else (_bound(view, closing, length), _named(view, closing, length))
    return NotFound(
        gone=tuple(queue.name for queue in lost),
        alike=() if lost else tuple(queue.name for queue in known),
        bound=bound,
        named=() if bound else named,
        queue_bytes=length,
        exchange_bytes=exchange if fits else None,
        queue_first=plain or not fits,
    )


def asked_bytes(view: View, closing: ChurnLoop) -> int:
    """Return the length of the name of a missing queue that a client asks for; 0 if its bytes are no such request."""
    vhost = closing.connection.vhost or "/"
    length = (closing.error or 0) - text_bytes(_error("", vhost))
    events = max(closing.published, closing.delivered, closing.acked, closing.declares)
    if not closing.by_broker or length <= 0 or (closing.alone and events >= FEW_MESSAGES):
        return 0
    rest = (closing.received or 0.0) - _request_bytes(closing, length) + _TAG + _ARGUMENT
    if not (_SMALLEST <= rest <= _NO_TAG or _TAGS[0] <= rest <= _TAGS[1]):
        return 0
    return 0 if any(_is_locked(view, closing, each.name, vhost) for each in view.all_queues) else length


def _is_locked(view: View, closing: ChurnLoop, name: str, vhost: str) -> bool:
    """Return whether the error is as long as if a client may not consume from a queue that exists."""
    user = closing.connection.user or ""
    refusals = (refusal(word, "queue", name, vhost, user) for word in access_words(view, "read"))
    return closing.said(f"ACCESS_REFUSED - queue '{name}' in vhost '{vhost}' in exclusive use", *refusals)


def _bound(view: View, closing: ChurnLoop, length: int) -> tuple[str, ...]:
    """Return the queues with a name of this length that were bound within the window, and do not exist."""
    vhost, known = closing.connection.vhost or "/", {each.key for each in view.every_queue}
    found = set()
    for bindings in {id(seen.value): seen.value for seen in view.window.readings("bindings")}.values():
        for each in bindings.listed or ():
            there = (each.vhost, each.destination)
            if each.destination_type == "queue" and each.vhost == vhost and there not in known:
                found.add(each.destination)
    return tuple(sorted(name for name in found if text_bytes(name) == length))


def _named(view: View, closing: ChurnLoop, length: int) -> tuple[str, ...]:
    """Return the name of this length that begins like that of the client, with the usual separator; () if it exists."""
    vhost, words = closing.connection.vhost or "/", re.findall(r"[^\W_]+", closing.connection.client_name or "")
    names = {each.name for each in view.every_queue if each.vhost == vhost}
    separators = Counter(letter for name in names for letter in re.findall(r"[\W_]", name))
    separator = separators.most_common(1)[0][0] if separators else "-"
    found = {separator.join(words[:number]) for number in range(_MIN_WORDS, len(words) + 1)} - names
    return tuple(name for name in found if text_bytes(name) == length)


def _error(name: str, vhost: str) -> str:
    return f"NOT_FOUND - no queue '{name}' in vhost '{vhost}'"


def _is_refused(closing: ChurnLoop, queue: Queue) -> bool:
    text = _error(queue.name, queue.vhost)
    return closing.said(text) and (closing.received or 0.0) <= _request_bytes(closing, text_bytes(queue.name))


def _request_bytes(closing: ChurnLoop, length: int) -> float:
    """Return the most bytes of a cycle that asks for a queue with a name of this length."""
    answers = max(0.0, (closing.packets or 0.0) - 2)
    return _CONSUME + length + _TAG + _ARGUMENT + answers * _WITH_ANSWER
