"""What one cluster said lately: a few snapshots, close together now and spaced out towards the past.

Immutable and bounded: however often a snapshot is added, at most `LIMIT` are held, an object that did not change is
held once, and older snapshots keep queues and totals only. Where they are spaced out, a duration that is read off
them is understated (by less than half), never overstated.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from ackscope.clock import Instant
from ackscope.snapshot import FAMILIES, Part, Snapshot

LIMIT = 16
"""Snapshots held at most."""
RECENT = 6
"""The latest ones, which are never thinned: 25 s at a poll every 5 s."""
HORIZON = 600.0
"""Seconds of past that are worth holding of queues."""
TRAIL_STEP, TRAIL_HORIZON = 60.0, 7200.0
"""Of the cluster and its nodes a longer past is held, a reading a minute: for trends and for what grows slowly."""

_CLIENTS = ("connections", "channels")
_CLIENT_READINGS, _CLIENT_SECONDS = 4, 180.0
"""Of these, so many readings are held for so many seconds: a busy broker is asked for them seldom, and what comes and
goes is told by comparing readings."""

_UNREAD: Part[Any] = Part()

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Timestamped(Generic[T]):
    """One value and when its reading was complete."""

    at: Instant
    value: T


Series = tuple[Timestamped[T], ...]
"""The same thing at several moments, oldest first."""


@dataclass(frozen=True, slots=True)
class Window:
    """The snapshots of one cluster, oldest first.

    Attributes:
        trail: those of two hours, a minute apart, of which nothing but the cluster and its nodes is held.
    """

    cluster: str
    snapshots: tuple[Snapshot, ...] = ()
    trail: tuple[Snapshot, ...] = ()

    @classmethod
    def empty(cls, cluster: str) -> "Window":
        """A window that has seen nothing."""
        return cls(cluster)

    @property
    def latest(self) -> Snapshot | None:
        """The newest snapshot; None before the first."""
        return self.snapshots[-1] if self.snapshots else None

    @property
    def span(self) -> float:
        """Seconds from the oldest to the newest snapshot."""
        return self.snapshots[-1].taken.since(self.snapshots[0].taken) if self.snapshots else 0.0

    def add(self, snapshot: Snapshot) -> "Window":
        """This window with one more snapshot, thinned.

        A snapshot that read nothing anew replaces the latest one: it tells of errors, not of another moment.
        """
        latest = self.latest
        trail = _further(self.trail, snapshot)
        if latest is None:
            return replace(self, snapshots=(snapshot,), trail=trail)
        if all(snapshot.parts[name].at == latest.parts[name].at for name in FAMILIES):
            return replace(self, snapshots=(*self.snapshots[:-1], snapshot), trail=trail)
        return replace(self, snapshots=_thinned((*self.snapshots, _sharing(snapshot, latest))), trail=trail)

    def readings(self, family: str) -> Series[Any]:
        """The distinct good readings of one part, oldest first.

        A poll that failed repeats the part of the poll before; it is no further sample.
        """
        return _readings(self.snapshots, family)

    def trend(self, family: str) -> Series[Any]:
        """Readings of overview, nodes, memory, links or auth over two hours, about a minute apart, the latest last."""
        latest = self.snapshots[-1:]
        return _readings(
            (*(each for each in self.trail if not latest or each.taken != latest[0].taken), *latest), family
        )


def _readings(snapshots: tuple[Snapshot, ...], family: str) -> Series[Any]:
    found: list[Timestamped[Any]] = []
    for snapshot in snapshots:
        part = snapshot.parts[family]
        if part.at is not None and part.value is not None and (not found or part.at != found[-1].at):
            found.append(Timestamped(part.at, part.value))
    return tuple(found)


def _further(trail: tuple[Snapshot, ...], snapshot: Snapshot) -> tuple[Snapshot, ...]:
    if trail and snapshot.taken.since(trail[-1].taken) < TRAIL_STEP:
        return trail
    remaining = tuple(each for each in trail if snapshot.taken.since(each.taken) <= TRAIL_HORIZON)
    small = Snapshot(
        cluster=snapshot.cluster,
        taken=snapshot.taken,
        overview=snapshot.overview,
        nodes=snapshot.nodes,
        memory=snapshot.memory,
        links=snapshot.links,
        auth=snapshot.auth,
    )
    return (*remaining, small)


def _thinned(snapshots: tuple[Snapshot, ...]) -> tuple[Snapshot, ...]:
    """Keep the recent ones and, further back, gaps in proportion to age; the oldest reaches the horizon."""
    remaining = list(snapshots)
    now = remaining[-1].taken
    while len(remaining) > 2 and now.since(remaining[1].taken) >= HORIZON:
        del remaining[0]
    while len(remaining) > LIMIT:
        crowded = min(
            range(1, len(remaining) - RECENT),
            key=lambda i: remaining[i + 1].taken.since(remaining[i - 1].taken) / now.since(remaining[i - 1].taken),
        )
        del remaining[crowded]
    first = len(remaining) - RECENT - 1
    for index in range(first, -1, -1):
        clients = {name: _few(remaining[index], remaining[index + 1 :], name, now) for name in _CLIENTS}
        if index == first or any(remaining[index].parts[name] is not part for name, part in clients.items()):
            remaining[index] = _slim(remaining[index], clients)
    return tuple(remaining)


def _few(snapshot: Snapshot, later: Sequence[Snapshot], family: str, now: Instant) -> Part[Any]:
    """The part where too few readings of it are later than this one; empty else."""
    part = snapshot.parts[family]
    if part.at is None:
        return part
    moments = {at.mono for it in later if (at := it.parts[family].at) is not None} - {part.at.mono}
    few = len(moments) < _CLIENT_READINGS and now.since(part.at) <= _CLIENT_SECONDS
    return part if few else _UNREAD


def _slim(snapshot: Snapshot, clients: dict[str, Part[Any]]) -> Snapshot:
    """What rules compare over minutes; who was connected is asked of recent snapshots, or of the few that there are."""
    return Snapshot(
        connections=clients["connections"],
        channels=clients["channels"],
        cluster=snapshot.cluster,
        taken=snapshot.taken,
        overview=snapshot.overview,
        nodes=snapshot.nodes,
        queues=snapshot.queues,
        health=snapshot.health,
        exchanges=snapshot.exchanges,
        bindings=snapshot.bindings,
        auth=snapshot.auth,
        links=snapshot.links,
        hidden_queues=snapshot.hidden_queues,
    )


def _sharing(snapshot: Snapshot, before: Snapshot) -> Snapshot:
    """The same snapshot, with objects that did not change taken from the one before: most queues are idle."""
    return replace(
        snapshot,
        queues=_shared(snapshot.queues, before.queues),
        channels=_shared(snapshot.channels, before.channels),
        consumers=_shared(snapshot.consumers, before.consumers),
        connections=_shared(snapshot.connections, before.connections),
        exchanges=_shared(snapshot.exchanges, before.exchanges),
        bindings=_same(snapshot.bindings, before.bindings),
    )


def _same(part: Part[T], before: Part[T]) -> Part[T]:
    """The part with the very value of before where it is equal: what changes by the hour is held once."""
    equal = part.value is not before.value and part.value == before.value
    return replace(part, value=before.value) if equal else part


def _shared(part: Part[tuple[T, ...]], before: Part[tuple[T, ...]]) -> Part[tuple[T, ...]]:
    if part.at == before.at:
        return before if part == before else replace(part, value=before.value)
    if part.value is None or before.value is None:
        return part
    # By identity first: of a hundred thousand queues nearly all are the very objects of the poll before.
    held, here = set(map(id, before.value)), set(map(id, part.value))
    if here <= held:
        return part
    known = {_identity(item): item for item in before.value if id(item) not in here}
    shared = (item if id(item) in held or (old := known.get(_identity(item))) != item else old for item in part.value)
    return replace(part, value=tuple(shared))


def _identity(item: Any) -> Hashable:
    return (getattr(item, "vhost", None), getattr(item, "name", None), getattr(item, "tag", None))
