"""Interns equal values to save memory: most of 100,000 queues have the same arguments, and many the same numbers."""

from collections.abc import Callable
from dataclasses import fields
from operator import attrgetter
from typing import Any

import orjson

from ackscope.clock import Instant
from ackscope.counters import MessageStats
from ackscope.snapshot import Queue

MAX_VALUES = 5000
"""Maximum number of distinct values to remember. With more, interning does not pay, and all are forgotten."""

_DOCUMENTS = ("arguments", "effective_policy", "garbage_collection", "rates")
_TUPLES = ("members", "online", "mirrors", "synchronised_mirrors")
_NUMBERS = ("memory", "consumer_capacity", "consumer_utilisation")

_NO_STATS = MessageStats()

# Queue is frozen, so its slots are set directly, and only on objects that no reader has seen yet.
_NAMES = tuple(field.name for field in fields(Queue))
_SETTERS: dict[str, Callable[[Queue, Any], None]] = {name: getattr(Queue, name).__set__ for name in _NAMES}
_ALL_SETTERS = tuple(_SETTERS.values())
_all_values = attrgetter(*_NAMES)

_Accessor = tuple[Callable[[Queue], Any], Callable[[Queue, Any], None]]


def _accessors(names: tuple[str, ...]) -> tuple[_Accessor, ...]:
    return tuple((attrgetter(name), _SETTERS[name]) for name in names)


_DOCUMENT_ACCESSORS, _HASHABLE_ACCESSORS = _accessors(_DOCUMENTS), _accessors((*_TUPLES, *_NUMBERS))


class Interner:
    """Makes equal values of many queues share one object. Not thread-safe."""

    def __init__(self) -> None:
        self._documents: dict[bytes, Any] = {}
        self._hashables: dict[tuple[type, Any], Any] = {}

    def intern(self, queue: Queue, previous: Queue | None = None) -> Queue:
        """Replace the values of a queue that no reader has seen yet by equal ones that are already in memory.

        Args:
            queue: changed in place; it stays equal to its earlier value.
            previous: an earlier reading of the same queue, most of whose values are unchanged.

        Returns:
            the same object.
        """
        if previous is not None:
            for set_value, value, known in zip(_ALL_SETTERS, _all_values(queue), _all_values(previous), strict=True):
                # 1, 1.0 and True are equal but not the same.
                if value is not known and type(value) is type(known) and type(value) is not dict and value == known:
                    set_value(queue, known)
        if queue.stats is not _NO_STATS and queue.stats == _NO_STATS:
            _SETTERS["stats"](queue, _NO_STATS)
        for get_value, set_value in _DOCUMENT_ACCESSORS:
            value = get_value(queue)
            if value:
                set_value(queue, self._document(value))
        for get_value, set_value in _HASHABLE_ACCESSORS:
            value = get_value(queue)
            if value is not None:
                set_value(queue, self._hashable(value))
        return queue

    def _document(self, value: Any) -> Any:
        try:
            # The JSON text distinguishes 1, 1.0 and true.
            key = orjson.dumps(value)
        except TypeError:
            return value
        if len(self._documents) > MAX_VALUES:
            self._documents = {}
        return self._documents.setdefault(key, value)

    def _hashable(self, value: Any) -> Any:
        if len(self._hashables) > MAX_VALUES:
            self._hashables = {}
        return self._hashables.setdefault((type(value), value), value)


def set_details_at(queue: Queue, at: Instant) -> Queue:
    """Replace `details_at` in place and return the queue. Only for a queue that no reader has seen yet."""
    _SETTERS["details_at"](queue, at)
    return queue
