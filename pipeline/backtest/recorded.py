"""Snapshot objects that know what the history does not record.

A field that the history lacks is absent, as if the broker had not sent it, and reports that it was read. So what a rule
needs and the history does not have is measured while the rule runs, and no list of it can be out of date.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import MISSING, Field, fields
from operator import attrgetter
from typing import Any, cast

from ackscope.baselines import Baselines, NoBand, NotYet
from ackscope.clock import Instant
from ackscope.counters import MessageStats
from ackscope.records import ProbeOutcome
from ackscope.snapshot import FAMILIES as ALL_FAMILIES
from ackscope.snapshot import Channel, Consumer, Node, Overview, Part, Queue

PROBES, USUAL = "probes", "usual ranges"
"""Names of what is not part of a snapshot: the outcomes of probes, and the baseline bands of that time."""

HELD: dict[str, tuple[str, ...]] = {
    "queues": (
        "vhost", "name", "type", "messages", "messages_ready", "messages_unacked", "consumers", "stats", "details_at",
    ),
    "channels": (
        "name", "connection_name", "vhost", "user", "node", "state", "prefetch_count", "consumer_count",
        "messages_unacked", "messages_unconfirmed", "stats",
    ),
    "consumers": (
        "vhost", "queue", "tag", "channel_name", "connection_name", "user", "node", "prefetch_count", "ack_required",
        "active", "activity_status",
    ),
    "nodes": (
        "name", "running", "being_drained", "mem_used", "mem_limit", "mem_alarm", "disk_free", "disk_free_limit",
        "disk_free_alarm", "fd_used", "fd_total", "sockets_used", "sockets_total", "proc_used", "proc_total",
        "run_queue", "partitions", "uptime_seconds",
    ),
}  # fmt: skip
"""Family -> the fields of its objects that the history records."""

COUNTERS = {
    "queues": ("publish", "deliver_get", "ack", "redeliver"),
    "channels": ("publish", "confirm", "deliver_get", "ack", "redeliver"),
}
"""Family -> the counters that the history records."""

FAMILIES = ("overview", *HELD)
"""Families that can be replayed. Of the overview, only when it was read is recorded."""

UNRECORDED = frozenset({PROBES, *ALL_FAMILIES}.difference(FAMILIES))
"""What the history has nothing of."""

_TYPES: dict[str, type[Any]] = {"queues": Queue, "channels": Channel, "consumers": Consumer, "nodes": Node}

# Deliveries are recorded as one number. Most are to consumers that acknowledge, so it stands for these.
_STANDS_FOR = {"deliver": "deliver_get"}


class FieldReads:
    """What rules read and the history lacks.

    Attributes:
        rule: the rule that is running; None between rules, when nothing is noted.
        found: rule -> names such as `queues.arguments`, `connections` or `probes`.
    """

    def __init__(self) -> None:
        self.rule: str | None = None
        self.found: dict[str, set[str]] = {}

    def note(self, name: str) -> None:
        """Note a read by the running rule."""
        if self.rule is not None:
            self.found.setdefault(self.rule, set()).add(name)


class RecordedObjects:
    """Makes the objects of snapshots from recorded values.

    Args:
        reads: where reads of absent fields are noted.
    """

    def __init__(self, reads: FieldReads) -> None:
        self._makers = {
            name: _maker(_lacking(kind, HELD[name], name, reads), HELD[name]) for name, kind in _TYPES.items()
        }
        self._stats = {
            name: _maker(_counting(counters, f"{name}.message_stats", reads), counters)
            for name, counters in COUNTERS.items()
        }
        self._overview = _maker(_lacking(Overview, (), "overview", reads), ())

    def maker(self, family: str) -> Callable[[Iterable[Any]], Any]:
        """Return the function that makes an object of a family from values in the order of `HELD`."""
        return self._makers[family]

    def stats_maker(self, family: str) -> Callable[[Iterable[Any]], Any]:
        """Return the function that makes counters from values in the order of `COUNTERS`."""
        return self._stats[family]

    def overview(self) -> Overview:
        """Return an overview without any known value."""
        overview: Overview = self._overview(())
        return overview


class UnrecordedPart(Part[Any]):
    """A family that the history does not have: never read. It notes that a rule asked for it."""

    __slots__ = ("_name", "_reads")
    _name: str
    _reads: FieldReads

    def __init__(self, name: str, reads: FieldReads) -> None:
        super().__init__()
        object.__setattr__(self, "_name", name)
        object.__setattr__(self, "_reads", reads)

    def age(self, now: Instant) -> float | None:
        """There never was a reading."""
        self._reads.note(self._name)
        return super().age(now)


class NoOutcomes(Sequence[ProbeOutcome]):
    """The outcomes of probes, which the history does not have; it notes that a rule asked for them."""

    def __init__(self, reads: FieldReads) -> None:
        self._reads = reads

    def __len__(self) -> int:
        self._reads.note(PROBES)
        return 0

    def __getitem__(self, _: Any) -> Any:
        self._reads.note(PROBES)
        raise IndexError


class NoBands(Baselines):
    """The bands of that time, which the history does not have: it holds those of now, which know what came later."""

    __slots__ = ("_reads",)
    _reads: FieldReads

    def __init__(self, reads: FieldReads) -> None:
        super().__init__()
        object.__setattr__(self, "_reads", reads)

    def of(self, *_: str) -> NotYet:
        """There is no band."""
        self._reads.note(USUAL)
        return NotYet(NoBand.NO_HISTORY_READ)


def _lacking(kind: type[Any], held: Iterable[str], family: str, reads: FieldReads) -> type[Any]:
    """Return a subclass whose fields other than `held` have their defaults, and note that they were read."""
    absent = [each for each in fields(kind) if each.name not in held]
    body: dict[str, Any] = {each.name: _absent(_default(each), f"{family}.{each.name}", reads) for each in absent}
    # Every read of a setting reads this too. The setting itself is noted.
    if "settings_known" in body:
        body["settings_known"] = True
    return _subclass(kind, held, body)


def _counting(held: Iterable[str], family: str, reads: FieldReads) -> type[Any]:
    body: dict[str, Any] = {}
    for each in fields(MessageStats):
        if each.name in _STANDS_FOR:
            body[each.name] = _standing_in(_STANDS_FOR[each.name], f"{family}.{each.name}", reads)
        elif each.name not in held:
            body[each.name] = _absent(None, f"{family}.{each.name}", reads)
    read = attrgetter(*held)

    # All counters are read to notice a restart, which the recorded ones show as well.
    def recorded(self: Any) -> Any:
        return read(self)

    body["all_counters"] = recorded
    return _subclass(MessageStats, held, body)


def _subclass(kind: type[Any], held: Iterable[str], body: dict[str, Any]) -> type[Any]:
    names = tuple(held)
    values = attrgetter(*names) if names else lambda _: ()
    body |= {
        "__slots__": (),
        "__eq__": lambda self, other: self.__class__ is other.__class__ and values(self) == values(other),
        "__hash__": lambda self: hash(values(self)),
    }
    return type(f"Recorded{kind.__name__}", (kind,), body)


def _maker(kind: type[Any], names: Iterable[str]) -> Callable[[Iterable[Any]], Any]:
    """Return a function that sets the given fields only: `__init__` would set forty."""
    order, new = tuple(names), cast("Any", kind).__new__
    setters = [getattr(kind, name).__set__ for name in order]

    def make(values: Iterable[Any]) -> Any:
        made = new(kind)
        for put, value in zip(setters, values, strict=True):
            put(made, value)
        return made

    return make


def _absent(value: Any, name: str, reads: FieldReads) -> property:
    def read(_: Any) -> Any:
        reads.note(name)
        return value

    return property(read, _ignore)


def _standing_in(other: str, name: str, reads: FieldReads) -> property:
    def read(self: Any) -> Any:
        reads.note(name)
        return getattr(self, other)

    return property(read, _ignore)


def _ignore(_: Any, __: Any) -> None:
    """`dataclasses.replace` sets every field."""


def _default(each: Field[Any]) -> Any:
    if each.default_factory is not MISSING:
        return each.default_factory()
    return None if each.default is MISSING else each.default
