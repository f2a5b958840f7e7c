"""Equal values of many queues, held once: of 100,000 queues most have the same arguments, and many the same figures."""

from collections.abc import Callable
from dataclasses import fields
from operator import attrgetter
from typing import Any

import orjson

from ackscope.counters import MessageStats
from ackscope.snapshot import Queue

MOST = 5000
"""Values of one kind that are remembered; more than so many different ones are not worth it, and it begins anew."""

_DOCUMENTS = ("arguments", "effective_policy", "garbage_collection", "rates")
_TUPLES = ("members", "online", "mirrors", "synchronised_mirrors")
_NUMBERS = ("memory", "consumer_capacity", "consumer_utilisation")

_NO_STATS = MessageStats()

_NAMES = tuple(field.name for field in fields(Queue))
_PUT: dict[str, Callable[[Queue, Any], None]] = {name: getattr(Queue, name).__set__ for name in _NAMES}
_PUTS = tuple(_PUT.values())
_all_of = attrgetter(*_NAMES)


def _steps(names: tuple[str, ...]) -> tuple[tuple[Callable[[Queue], Any], Callable[[Queue, Any], None]], ...]:
    return tuple((attrgetter(name), _PUT[name]) for name in names)


_DOCUMENT_STEPS, _PLAIN_STEPS = _steps(_DOCUMENTS), _steps((*_TUPLES, *_NUMBERS))


class Common:
    """Remembers values that others may have, too. Belongs to one thread at a time."""

    def __init__(self) -> None:
        self._documents: dict[bytes, Any] = {}
        self._plain: dict[tuple[type, Any], Any] = {}

    def settle(self, fresh: Queue, before: Queue | None = None) -> Queue:
        """Let a queue that nobody has seen yet hold values that are held already, in place of equal ones of its own.

        Args:
            fresh: the queue; it is changed in place, and equal to what it was.
            before: an earlier reading of the same queue, of which most is as it was.

        Returns:
            the same object.
        """
        if before is not None:
            for put, value, held in zip(_PUTS, _all_of(fresh), _all_of(before), strict=True):
                # 1, 1.0 and True are equal, and not the same.
                if value is not held and type(value) is type(held) and type(value) is not dict and value == held:
                    put(fresh, held)
        if fresh.stats is not _NO_STATS and fresh.stats == _NO_STATS:
            _PUT["stats"](fresh, _NO_STATS)
        for read, put in _DOCUMENT_STEPS:
            value = read(fresh)
            if value:
                put(fresh, self._document(value))
        for read, put in _PLAIN_STEPS:
            value = read(fresh)
            if value is not None:
                put(fresh, self._one(value))
        return fresh

    def _document(self, value: Any) -> Any:
        try:
            # By its text: 1, 1.0 and true are told apart.
            key = orjson.dumps(value)
        except TypeError:
            return value
        if len(self._documents) > MOST:
            self._documents = {}
        return self._documents.setdefault(key, value)

    def _one(self, value: Any) -> Any:
        if len(self._plain) > MOST:
            self._plain = {}
        return self._plain.setdefault((type(value), value), value)


def dated(queue: Queue, at: Any) -> Queue:
    """The same object, that nobody has seen yet, with another moment of its statistics."""
    _PUT["details_at"](queue, at)
    return queue
