"""The recent snapshots of one cluster; older ones are further apart.

A window is immutable and bounded: it holds at most `LIMIT` snapshots, shares objects that did not change, and drops
what rules do not compare over minutes from older snapshots. A duration measured over spaced-out snapshots is
understated (by less than half), never overstated.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from ackscope.clock import Instant
from ackscope.snapshot import FAMILIES, Connection, Overview, Part, Snapshot
from ackscope.topology import VHost
from diagnosis.endings import MOST, Ending, come_back, endings
from diagnosis.former_consumers import FormerConsumer, former_consumers
from diagnosis.left_clients import LeftClient, left_clients
from diagnosis.pauses import Pause, continued
from diagnosis.redating import Redating, by_one_clock

LIMIT = 16
"""Maximum number of snapshots."""
RECENT = 6
"""Number of latest snapshots that are never thinned: 25 s at a poll every 5 s."""
HORIZON = 600.0
"""Seconds of history that are held of queues."""
TRAIL_STEP, TRAIL_HORIZON = 60.0, 7200.0
"""Seconds between snapshots of the trail and its length: a longer history of the cluster and its nodes, for trends."""

_CLIENTS = ("connections", "channels", "processes")
_CLIENT_READINGS, _CLIENT_SECONDS = 4, 180.0
"""Readings of connections and channels that are held, and for how many seconds. A busy broker is asked for them seldom,
and rules compare several readings.
"""

_UNREAD: Part[Any] = Part()

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Timestamped(Generic[T]):
    """A value and the time at which its reading was complete."""

    at: Instant
    value: T


Series = tuple[Timestamped[T], ...]
"""Readings of the same thing over time, oldest first."""


@dataclass(frozen=True, slots=True)
class Window:
    """The snapshots of one cluster, oldest first.

    Attributes:
        trail: snapshots of two hours, a minute apart, with cluster and node data only.
        endings: the last readings of queues that ended since the oldest snapshot, oldest ending first.
        pauses: times since the oldest snapshot at which consumers took nothing although messages waited, oldest first.
        left: publishing clients that left within two hours and have not come back, in the order of leaving.
        former: consumers that ended within two hours while their channel or their queue stayed, in that order.
    """

    cluster: str
    snapshots: tuple[Snapshot, ...] = ()
    trail: tuple[Snapshot, ...] = ()
    endings: tuple[Ending, ...] = ()
    pauses: tuple[Pause, ...] = ()
    left: tuple[LeftClient, ...] = ()
    former: tuple[FormerConsumer, ...] = ()

    @classmethod
    def empty(cls, cluster: str) -> "Window":
        """Return a window without snapshots."""
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
        """Return this window with one more snapshot, thinned.

        A snapshot without new readings replaces the latest one, because it only adds errors. If the wall clock was set
        since the latest one, all times are moved by as much.
        """
        latest = self.latest
        if latest is not None and (seconds := snapshot.taken.wall_clock_step(latest.taken)):
            return self._redated(seconds).add(snapshot)
        snapshot = by_one_clock(snapshot, latest)
        trail = _further(self.trail, snapshot)
        if latest is None:
            return replace(self, snapshots=(snapshot,), trail=trail)
        if all(snapshot.parts[name].at == latest.parts[name].at for name in FAMILIES):
            return replace(self, snapshots=(*self.snapshots[:-1], snapshot), trail=trail)
        added = _sharing(snapshot, latest)
        thinned = _thinned((*self.snapshots, added))
        begin = (thinned[0].queues.at or thinned[0].taken).mono
        return replace(
            self,
            snapshots=thinned,
            trail=trail,
            endings=self._endings(added, begin),
            pauses=self._pauses(added, begin),
            left=self._left(added),
            former=self._former(added),
        )

    def now(self, now: Instant) -> Instant:
        """Return the present moment by the wall clock of the latest snapshot."""
        seconds = self.latest.taken.wall_clock_step(now) if self.latest is not None else 0.0
        return now.shifted(seconds) if seconds else now

    def _redated(self, seconds: float) -> "Window":
        redating = Redating(seconds)
        return replace(
            self,
            snapshots=redating.of(self.snapshots),
            trail=redating.of(self.trail),
            endings=redating.of(self.endings),
            pauses=redating.of(self.pauses),
            left=redating.of(self.left),
            former=redating.of(self.former),
        )

    def _endings(self, added: Snapshot, begin: float) -> tuple[Ending, ...]:
        """Return the endings up to an added snapshot, without those that no snapshot goes back to."""
        found = [each for each in self.endings if each.readings[-1][0].mono >= begin]
        part = added.queues
        readings = [(seen.at, seen.value) for seen in _readings(self.snapshots, "queues")]
        if part.at is not None and part.value is not None and readings and readings[-1][0] != part.at:
            found = [*come_back(found, part.at, readings[-1][1], part.value)]
            found += endings(readings, part.at, part.value)
        return tuple(found[-MOST:])

    def _pauses(self, added: Snapshot, begin: float) -> tuple[Pause, ...]:
        """Return the pauses up to an added snapshot, without those that no snapshot goes back to."""
        found = tuple(each for each in self.pauses if each.end.mono >= begin)
        lists = _two_lists(self.snapshots[-1].queues, added.queues)
        return found if lists is None else continued(found, *lists)

    def _left(self, added: Snapshot) -> tuple[LeftClient, ...]:
        """Return the clients that left up to an added snapshot."""
        found = tuple(each for each in self.left if added.taken.since(each.gone) <= TRAIL_HORIZON)
        latest = self.snapshots[-1]
        lists = _two_lists(latest.connections, added.connections)
        return found if lists is None else left_clients(found, *lists, latest.channels.value or ())

    def _former(self, added: Snapshot) -> tuple[FormerConsumer, ...]:
        """Return the former consumers up to an added snapshot."""
        found = tuple(each for each in self.former if added.taken.since(each.gone) <= TRAIL_HORIZON)
        latest = self.snapshots[-1]
        lists = _two_lists(latest.consumers, added.consumers)
        if lists is None:
            return found
        (_, before), after = lists
        known = latest.connections.value or (), added.channels.value or (), added.queues.value or ()
        return former_consumers(found, before, after, *known)

    def readings(self, family: str) -> Series[Any]:
        """Return the distinct good readings of one part, oldest first.

        A failed poll repeats the part of the previous poll, so it does not count as another reading.
        """
        return _readings(self.snapshots, family)

    def trend(self, family: str) -> Series[Any]:
        """Return readings of overview, nodes, memory, links or auth over two hours, about a minute apart."""
        latest = self.snapshots[-1:]
        return _readings(
            (*(each for each in self.trail if not latest or each.taken != latest[0].taken), *latest), family
        )


def _two_lists(before: Part[T], after: Part[T]) -> tuple[tuple[Instant, T], tuple[Instant, T]] | None:
    """Return time and value of a part in two snapshots; None if one of them is unread, or both are one reading."""
    if before.at is None or before.value is None or after.at is None or after.value is None or before.at == after.at:
        return None
    return (before.at, before.value), (after.at, after.value)


def _readings(snapshots: tuple[Snapshot, ...], family: str) -> Series[Any]:
    found: list[Timestamped[Any]] = []
    for snapshot in snapshots:
        part = getattr(snapshot, family)
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
        overview=_without_past(snapshot.overview),
        nodes=snapshot.nodes,
        memory=snapshot.memory,
        links=snapshot.links,
        auth=snapshot.auth,
    )
    return (*remaining, small)


def _without_past(part: Part[Overview]) -> Part[Overview]:
    value = part.value
    return part if value is None or value.past is None else replace(part, value=replace(value, past=None))


def _thinned(snapshots: tuple[Snapshot, ...]) -> tuple[Snapshot, ...]:
    """Keep the recent snapshots, and older ones with gaps proportional to their age, back to the horizon."""
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
        if index == first or any(getattr(remaining[index], name) is not part for name, part in clients.items()):
            remaining[index] = _slim(remaining[index], clients)
    return tuple(remaining)


def _few(snapshot: Snapshot, later: Sequence[Snapshot], family: str, now: Instant) -> Part[Any]:
    """Return the part if it is among its latest readings and not too old, else an empty part."""
    part: Part[Any] = getattr(snapshot, family)
    if part.at is None:
        return part
    moments = {at.mono for it in later if (at := getattr(it, family).at) is not None} - {part.at.mono}
    few = len(moments) < _CLIENT_READINGS and now.since(part.at) <= _CLIENT_SECONDS
    return part if few else _UNREAD


def _slim(snapshot: Snapshot, clients: dict[str, Part[Any]]) -> Snapshot:
    """Reduce an older snapshot to the parts that rules compare over minutes, and to the given clients."""
    return Snapshot(
        connections=clients["connections"],
        channels=clients["channels"],
        processes=clients["processes"],
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
        limits=snapshot.limits,
        sessions=snapshot.sessions,
        streams=snapshot.streams,
        prometheus=snapshot.prometheus,
        exchange_publishes=snapshot.exchange_publishes,
        # Rules ask later which one was down; readings in which all of them run are dropped.
        vhosts=snapshot.vhosts if _any_down(snapshot.vhosts) else _UNREAD,
        hidden_queues=snapshot.hidden_queues,
    )


def _any_down(part: Part[tuple[VHost, ...]]) -> bool:
    return any(state != "running" for each in part.value or () for state in each.cluster_state.values())


def _sharing(snapshot: Snapshot, before: Snapshot) -> Snapshot:
    """Return the snapshot with unchanged objects shared with the previous one; most queues are idle."""
    return replace(
        snapshot,
        queues=_shared(snapshot.queues, before.queues),
        channels=_shared(snapshot.channels, before.channels),
        consumers=_shared(snapshot.consumers, before.consumers),
        connections=_shared(_quiet(snapshot.connections, before.connections), before.connections),
        exchanges=_shared(snapshot.exchanges, before.exchanges),
        bindings=_same(snapshot.bindings, before.bindings),
    )


def _quiet(part: Part[tuple[Connection, ...]], before: Part[tuple[Connection, ...]]) -> Part[tuple[Connection, ...]]:
    """Return the part with the time since when clients that were sent something have themselves sent nothing.

    Readings of connections go back half a minute, and heartbeats are often a minute apart. Connections with
    nothing to send are left as they are, so that they cost nothing; their silence is then understated.
    """
    if part.value is None or before.value is None or before.at is None or part.at == before.at:
        return part
    earlier, at = {each.name: each for each in before.value}, before.at
    return replace(part, value=tuple(_quiet_since(each, earlier.get(each.name), at) for each in part.value))


def _quiet_since(connection: Connection, earlier: Connection | None, at: Instant) -> Connection:
    if earlier is None or not connection.heartbeat or connection.recv_oct is None:
        return connection
    if (connection.recv_oct, connection.connected_at) != (earlier.recv_oct, earlier.connected_at):
        return connection
    is_fed = connection.send_oct != earlier.send_oct
    goes_on = earlier.quiet_since is not None and connection.reductions != earlier.reductions
    return replace(connection, quiet_since=earlier.quiet_since or at) if is_fed or goes_on else connection


def _same(part: Part[T], before: Part[T]) -> Part[T]:
    """Return the part with the previous value object if both are equal, so that it is stored once."""
    equal = part.value is not before.value and part.value == before.value
    return replace(part, value=before.value) if equal else part


def _shared(part: Part[tuple[T, ...]], before: Part[tuple[T, ...]]) -> Part[tuple[T, ...]]:
    if part.at == before.at:
        return before if part == before else replace(part, value=before.value)
    if part.value is None or before.value is None:
        return part
    # Compare by identity first: of 100,000 queues nearly all are the same objects as in the previous poll.
    held, here = set(map(id, before.value)), set(map(id, part.value))
    if here <= held:
        return part
    known = {_identity(item): item for item in before.value if id(item) not in here}
    shared = (item if id(item) in held or (old := known.get(_identity(item))) != item else old for item in part.value)
    return replace(part, value=tuple(shared))


def _identity(item: Any) -> Hashable:
    return (getattr(item, "vhost", None), getattr(item, "name", None), getattr(item, "tag", None))
