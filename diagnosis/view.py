"""All that a rule may see: readings that are fresh enough, and how their objects belong together."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ackscope.baselines import Band, Baselines, NoBand, NotYet
from ackscope.clock import Instant
from ackscope.records import ProbeOutcome
from ackscope.snapshot import Channel, Connection, Consumer, Queue
from diagnosis.differences import Readings
from diagnosis.latest import LatestReadings
from diagnosis.series import life
from diagnosis.thresholds import Thresholds
from diagnosis.window import Series, Timestamped, Window

_ROUND = 10.0
"""Seconds: parts that were read in one round are no farther apart."""

OWN_CLIENTS = ("ackscope-probe", "ackscope-verify")
"""How the names begin that connections of ours give themselves."""


@dataclass(frozen=True, slots=True)
class ConsumerPath:
    """One consumer of a queue, with its channel and connection where they are known."""

    consumer: Consumer
    channel: Channel | None
    connection: Connection | None


class View(LatestReadings):
    """One look at a window. Its lists are computed when first asked for, and kept for this look only.

    Lists hold what the latest fresh reading holds; they are empty where there is none, which `fresh` tells apart
    from a cluster that has none.
    """

    def __init__(
        self,
        window: Window,
        outcomes: Sequence[ProbeOutcome],
        now: Instant,
        thresholds: Thresholds,
        baselines: Baselines | None = None,
    ) -> None:
        super().__init__(window, outcomes, now, thresholds)
        self.baselines = baselines
        self.made: dict[Any, Any] = {}
        self._histories: dict[tuple[str, str], Series[Queue]] = {}

    def limits(self, queue: Queue) -> Thresholds:
        """The numbers that count for one queue, which settings may override by its name."""
        if not self.thresholds.overrides:
            return self.thresholds
        return self.thresholds.for_queue(queue.vhost, queue.name)

    def usual(self, kind: str, vhost: str, name: str, measure: str) -> Band | NotYet:
        """What is usual of a measure of an object at this hour of the week, or why that is not known.

        Measures, and names of objects that are no queues: `ackscope.tables.BASELINES`.
        """
        if self.baselines is None or self._outdated is not None:
            return self._outdated or NotYet(NoBand.NO_HISTORY_READ)
        return self.baselines.of(kind, vhost, name, measure)

    @cached_property
    def all_queues(self) -> tuple[Queue, ...]:
        """Queues that applications use, by their totals: those of the probes are left out."""
        return tuple(q for q in self.part("queues") if not q.name.startswith(self.thresholds.own_prefixes))

    @cached_property
    def queues(self) -> tuple[Queue, ...]:
        """Those of them whose statistics were read lately enough to judge by; of a large broker not all are."""
        return tuple(queue for queue in self.all_queues if not self._is_unread(queue))

    @cached_property
    def unread(self) -> tuple[Queue, ...]:
        """The others, as far as they hold messages: they are not judged."""
        return tuple(queue for queue in self.all_queues if queue.messages and self._is_unread(queue))

    @cached_property
    def messages(self) -> int:
        """Messages in all queues that applications use."""
        return sum(queue.messages or 0 for queue in self.all_queues)

    def any_queue(self, vhost: str | None, name: str) -> Queue | None:
        """A queue by its name, with its totals at least."""
        return self._all_by_key.get((vhost, name))

    def queue(self, vhost: str | None, name: str) -> Queue | None:
        """A queue by its name whose statistics can be judged."""
        return self._by_key.get((vhost, name))

    @cached_property
    def channels(self) -> tuple[Channel, ...]:
        """Channels that applications use: those of the probes are left out, of which some are nacked by design."""
        known = self.part("connections")
        own = {connection.name for connection in known if is_own(connection)}
        channels = tuple(channel for channel in self.part("channels") if channel.connection_name not in own)
        if not self._behind:
            return channels
        # A probe that connected anew since would look like somebody's.
        names = {connection.name for connection in known}
        return tuple(channel for channel in channels if channel.connection_name in names)

    @cached_property
    def _behind(self) -> bool:
        """Connections were read so long before channels that whose a new channel is, cannot be told."""
        ages = self.age("connections"), self.age("channels")
        return None not in ages and (ages[0] or 0.0) - (ages[1] or 0.0) > _ROUND

    @cached_property
    def connections(self) -> tuple[Connection, ...]:
        """Connections of applications: those of the probes are left out."""
        return tuple(connection for connection in self.part("connections") if not is_own(connection))

    def history(self, queue: Queue) -> Series[Queue]:
        """A queue at each distinct reading of its present life, oldest first, the latest last."""
        known = self._histories.get(queue.key)
        if known is None:
            known = life(_distinct(_unbroken(self._queue_readings.of(queue.key))))
            self._histories[queue.key] = known
        return known

    def moved(self, queue: Queue, counter: str) -> bool:
        """Whether a counter moved within the last interval; cheap, to spare healthy queues the whole history."""
        if queue.details_at is not None:
            latest_two = self.history(queue)[-2:]
            return len(latest_two) < 2 or getattr(latest_two[0].value.stats, counter) != getattr(queue.stats, counter)
        before = self._queue_readings.ago(queue.key, self.thresholds.interval)
        return before is None or getattr(before.stats, counter) != getattr(queue.stats, counter)

    def channel_history(self, name: str) -> Series[Channel]:
        """A channel at each distinct reading of its present life, oldest first, the latest last."""
        return life(_unbroken([(at, known.get(name)) for at, known in self._channel_readings]))

    def connection_history(self, name: str) -> Series[Connection]:
        """A connection at each distinct reading in a row that holds it, oldest first; the last half minute."""
        return _unbroken([(at, known.get(name)) for at, known in self._connection_readings])

    @property
    def channels_before(self) -> Instant | None:
        """When channels were first read in this window: one that is not in that reading began later."""
        return self._channel_readings[0][0] if self._channel_readings else None

    def links(self, queue: Queue) -> tuple[ConsumerPath, ...]:
        """The consumers of a queue, each with its channel and connection, in a fixed order."""
        return self._links.get(queue.key, ())

    def queues_served(self, channel_name: str) -> int:
        """How many queues a channel consumes from; 0 where that is not known."""
        return len(self._served.get(channel_name, ()))

    def connection(self, name: str | None) -> Connection | None:
        """A connection by its name."""
        return self._connections_by_name.get(name or "")

    def connection_of(self, channel_name: str) -> str | None:
        """The name of the connection that a channel belongs to; None where that is not known."""
        return self._connection_names.get(channel_name)

    @cached_property
    def _outdated(self) -> NotYet | None:
        """Why no band may be used, where none may."""
        known = self.baselines
        return None if known is None else known.outdated(self.now.wall, self.thresholds.usual.oldest)

    @cached_property
    def _all_by_key(self) -> dict[tuple[str | None, str], Queue]:
        return {queue.key: queue for queue in self.all_queues}

    @cached_property
    def _by_key(self) -> dict[tuple[str | None, str], Queue]:
        return {queue.key: queue for queue in self.queues}

    @cached_property
    def _connection_names(self) -> dict[str, str | None]:
        return {channel.name: channel.connection_name for channel in self.part("channels")}

    @cached_property
    def _connections_by_name(self) -> dict[str, Connection]:
        return {connection.name: connection for connection in self.connections}

    @cached_property
    def _served(self) -> dict[str, set[tuple[str, str]]]:
        served: dict[str, set[tuple[str, str]]] = {}
        for consumer in self.part("consumers"):
            served.setdefault(consumer.channel_name or "", set()).add((consumer.vhost, consumer.queue))
        return served

    @cached_property
    def _links(self) -> dict[tuple[str, str], tuple[ConsumerPath, ...]]:
        channels = {channel.name: channel for channel in self.channels}
        grouped: dict[tuple[str, str], list[ConsumerPath]] = {}
        for consumer in sorted(self.part("consumers"), key=lambda c: (c.channel_name or "", c.tag)):
            channel = channels.get(consumer.channel_name or "")
            name = consumer.connection_name or (channel.connection_name if channel else None)
            link = ConsumerPath(consumer, channel, self.connection(name))
            grouped.setdefault((consumer.vhost, consumer.queue), []).append(link)
        return {key: tuple(links) for key, links in grouped.items()}

    @cached_property
    def _queue_readings(self) -> Readings:
        return Readings(self.window.readings("queues"))

    @cached_property
    def _channel_readings(self) -> list[tuple[Instant, dict[str, Channel]]]:
        readings = self.window.readings("channels")
        return [(seen.at, {channel.name: channel for channel in seen.value}) for seen in readings]

    @cached_property
    def _connection_readings(self) -> list[tuple[Instant, dict[str, Connection]]]:
        readings = self.window.readings("connections")
        return [(seen.at, {connection.name: connection for connection in seen.value}) for seen in readings]

    def _is_unread(self, queue: Queue) -> bool:
        if queue.details_at is not None:
            return self.now.since(queue.details_at) > self.thresholds.data_age
        # Totals alone name no consumers; a queue that its broker knows nothing of has no totals either.
        return queue.consumers is None and queue.messages_ready is not None


def is_own(connection: Connection) -> bool:
    """Whether it belongs to a probe of ours, by the name that it gave itself."""
    return (connection.client_name or "").startswith(OWN_CLIENTS)


def _distinct(series: Series[Queue]) -> Series[Queue]:
    """One moment for each reading of the statistics, and that moment its own: polls between them tell totals only."""
    found: list[Timestamped[Queue]] = []
    for seen in series:
        at = seen.value.details_at or seen.at
        if not found or at != found[-1].at:
            found.append(Timestamped(at, seen.value))
    return tuple(found)


def _unbroken(readings: list[tuple[Instant, Any]]) -> Series[Any]:
    """The latest readings in a row that hold the object: one that was gone came back as another."""
    found: list[Timestamped[Any]] = []
    for at, value in readings:
        if value is None:
            found.clear()
        else:
            found.append(Timestamped(at, value))
    return tuple(found)
