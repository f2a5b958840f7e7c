"""What one cluster said lately: a few snapshots, close together now and spaced out towards the past.

Immutable and bounded: however often a snapshot is added, at most `LIMIT` are held, an object that did not change is
held once, and older snapshots keep queues and totals only. Where they are spaced out, a duration that is read off
them is understated (by less than half), never overstated.
"""

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from ackscope.clock import Instant
from ackscope.snapshot import FAMILIES, Part, Snapshot

LIMIT = 16
"""Snapshots held at most."""
RECENT = 6
"""The latest ones, which are never thinned: 25 s at a poll every 5 s."""
HORIZON = 600.0
"""Seconds of past that are worth holding; no rule looks further back."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Seen(Generic[T]):
    """One value and when its reading was complete."""

    at: Instant
    value: T


Series = tuple[Seen[T], ...]
"""The same thing at several moments, oldest first."""


@dataclass(frozen=True, slots=True)
class Window:
    """The snapshots of one cluster, oldest first."""

    cluster: str
    snapshots: tuple[Snapshot, ...] = ()

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
        if latest is None:
            return replace(self, snapshots=(snapshot,))
        if all(snapshot.parts[name].at == latest.parts[name].at for name in FAMILIES):
            return replace(self, snapshots=(*self.snapshots[:-1], snapshot))
        return replace(self, snapshots=_thinned((*self.snapshots, _sharing(snapshot, latest))))

    def readings(self, family: str) -> Series[Any]:
        """The distinct good readings of one part, oldest first.

        A poll that failed repeats the part of the poll before; it is no further sample.
        """
        found: list[Seen[Any]] = []
        for snapshot in self.snapshots:
            part = snapshot.parts[family]
            if part.at is not None and part.value is not None and (not found or part.at != found[-1].at):
                found.append(Seen(part.at, part.value))
        return tuple(found)


def _thinned(snapshots: tuple[Snapshot, ...]) -> tuple[Snapshot, ...]:
    """Keep the recent ones and, further back, gaps in proportion to age; the oldest reaches the horizon."""
    kept = list(snapshots)
    now = kept[-1].taken
    while len(kept) > 2 and now.since(kept[1].taken) >= HORIZON:
        del kept[0]
    while len(kept) > LIMIT:
        crowded = min(
            range(1, len(kept) - RECENT),
            key=lambda i: kept[i + 1].taken.since(kept[i - 1].taken) / now.since(kept[i - 1].taken),
        )
        del kept[crowded]
    if len(kept) > RECENT:
        kept[-RECENT - 1] = _slim(kept[-RECENT - 1])
    return tuple(kept)


def _slim(snapshot: Snapshot) -> Snapshot:
    """What rules compare over minutes; who was connected is asked of recent snapshots only."""
    return Snapshot(
        cluster=snapshot.cluster,
        taken=snapshot.taken,
        overview=snapshot.overview,
        queues=snapshot.queues,
        health=snapshot.health,
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
    )


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
