"""The view that rules judge: readings that are fresh enough, and the links between their objects."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from math import inf
from typing import Any, TypeVar

from ackscope.amqp10 import AmqpSession
from ackscope.baselines import Band, Baselines, NoBand, NotYet
from ackscope.clock import Instant
from ackscope.records import ProbeOutcome
from ackscope.snapshot import Channel, Connection, Consumer, Queue
from ackscope.streams import StreamConsumer
from diagnosis.differences import Readings
from diagnosis.endings import Ending
from diagnosis.latest import LatestReadings
from diagnosis.series import last, life, span
from diagnosis.thresholds import Thresholds
from diagnosis.window import Series, Timestamped, Window

T = TypeVar("T")

_ROUND = 10.0
"""Seconds within which all parts of one round are read."""

OWN_CLIENTS = ("ackscope-probe", "ackscope-verify")
"""Prefixes of the client names of our own connections."""


@dataclass(frozen=True, slots=True)
class ConsumerPath:
    """One consumer of a queue, with its channel and connection if known.

    Attributes:
        session: its AMQP 1.0 session, if the broker reports one.
        stream: what the broker tells of it if it uses the stream protocol.
    """

    consumer: Consumer
    channel: Channel | None
    connection: Connection | None
    session: AmqpSession | None = None
    stream: StreamConsumer | None = None

    @property
    def is_uncounted(self) -> bool:
        """Whether the broker tells neither a channel nor a prefetch of it, as of consumers that use AMQP 1.0.

        The consumer of a local shovel has no channel either, but a prefetch.
        """
        return is_uncounted(self.consumer)


class View(LatestReadings):
    """A view of one window for one diagnosis. Its lists are computed on first use and cached in the view.

    Lists hold the objects of the latest fresh reading. An empty list means no objects or no fresh reading; `fresh`
    tells which.
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
        self._interrupted: dict[int, tuple[tuple[str, str], ...]] = {}

    def limits(self, queue: Queue) -> Thresholds:
        """Return the thresholds for one queue; settings may override them by queue name."""
        if not self.thresholds.overrides:
            return self.thresholds
        return self.thresholds.for_queue(queue.vhost, queue.name)

    def usual(self, kind: str, vhost: str, name: str, measure: str) -> Band | NotYet:
        """Return the band of a measure of an object for this hour of the week, or why there is none.

        See `ackscope.tables.BASELINES` for the measures, and for the names of objects other than queues.
        """
        if self.baselines is None or self._outdated is not None:
            return self._outdated or NotYet(NoBand.NO_HISTORY_READ)
        return self.baselines.of(kind, vhost, name, measure)

    @cached_property
    def all_queues(self) -> tuple[Queue, ...]:
        """Queues of applications, with at least their totals; those of the probes are left out."""
        return tuple(q for q in self.every_queue if not q.name.startswith(self.thresholds.own_prefixes))

    @cached_property
    def queues(self) -> tuple[Queue, ...]:
        """Queues of applications whose statistics are fresh; on a large broker not all are."""
        return tuple(queue for queue in self.all_queues if not self._is_unread(queue))

    @cached_property
    def unread(self) -> tuple[Queue, ...]:
        """Queues with messages whose statistics are not fresh; rules do not judge them."""
        return tuple(queue for queue in self.all_queues if queue.messages and self._is_unread(queue))

    @cached_property
    def messages(self) -> int:
        """Messages in all queues of applications."""
        return sum(queue.messages or 0 for queue in self.all_queues)

    def any_queue(self, vhost: str | None, name: str) -> Queue | None:
        """Return a queue by its name, with at least its totals; None without one."""
        return self._all_by_key.get((vhost, name))

    def queue(self, vhost: str | None, name: str) -> Queue | None:
        """Return a queue by its name if its statistics are fresh, else None."""
        return self._by_key.get((vhost, name))

    @cached_property
    def channels(self) -> tuple[Channel, ...]:
        """Channels of applications; those of the probes are left out, because some are nacked by design."""
        known = self.every_connection
        own = {connection.name for connection in known if is_own(connection)}
        channels = tuple(channel for channel in self.every_channel if channel.connection_name not in own)
        if not self._behind:
            return channels
        # A probe that reconnected since then would look like an application.
        names = {connection.name for connection in known}
        return tuple(channel for channel in channels if channel.connection_name in names)

    @cached_property
    def _behind(self) -> bool:
        """Whether connections were read so long before channels that the owner of a new channel is unknown."""
        ages = self.age("connections"), self.age("channels")
        return None not in ages and (ages[0] or 0.0) - (ages[1] or 0.0) > _ROUND

    @cached_property
    def connections(self) -> tuple[Connection, ...]:
        """Connections of applications; those of the probes are left out."""
        return tuple(connection for connection in self.every_connection if not is_own(connection))

    @property
    def reads_only_metrics(self) -> bool:
        """Whether only the Prometheus endpoints are read, and no management API."""
        return self.metrics is not None and self.metrics.alone

    @property
    def lists_no_clients(self) -> bool:
        """Whether the broker lists no clients, for lack of statistics, and its Prometheus endpoints have its queues."""
        if self.metrics is None or "queues" not in self.metrics.families:
            return False
        return self.metrics.alone or (self.overview is not None and self.overview.statistics is False)

    @property
    def counts_losses(self) -> bool:
        """Whether the Prometheus endpoints of a broker that lists no clients count what each exchange loses."""
        counted = self.metrics is not None and "exchanges" in self.metrics.families and self.fresh("exchanges")
        return counted and self.lists_no_clients

    def history(self, queue: Queue) -> Series[Queue]:
        """Return a queue at each distinct reading since it (or its counters) last restarted, oldest first."""
        known = self._histories.get(queue.key)
        if known is None:
            known = life(_distinct(_unbroken(self._queue_readings.of(queue.key)), _details_at))
            self._histories[queue.key] = known
        return known

    def gone_queues(self) -> tuple[Queue, ...]:
        """Return the queues that were deleted within the window, as they were read last, sorted by their keys."""
        return tuple(queue for _, queue in sorted(self._queue_readings.gone().items()))

    def recent(self, queue: Queue) -> Series[Queue]:
        """Return the latest readings of its history, over one interval at least; cheap, so busy queues need no more."""
        interval = self.thresholds.interval
        if queue.details_at is not None:
            return last(self.history(queue), interval)
        return last(life(_distinct(_unbroken(self._queue_readings.of(queue.key, interval)), _details_at)), interval)

    def interrupted_queues(self, least: int) -> tuple[tuple[str, str], ...]:
        """Return the keys of application queues whose counters and messages (so many or more) end between readings."""
        if least not in self._interrupted:
            self._interrupted[least] = self._interrupted_queues(least)
        return self._interrupted[least]

    def _interrupted_queues(self, least: int) -> tuple[tuple[str, str], ...]:
        ended = (key for key, found in self._endings.items() if any((it.queue.messages or 0) >= least for it in found))
        keys = self._queue_readings.interrupted(least).union(ended)
        return tuple(sorted(key for key in keys if not key[1].startswith(self.thresholds.own_prefixes)))

    def ended_queues(self, vhost: str) -> tuple[Ending, ...]:
        """Return the ends of application queues of a virtual host, also of the empty ones that were its last queues."""
        ended = (each for each in self.window.endings if each.queue.vhost == vhost)
        return tuple(each for each in ended if not each.queue.name.startswith(self.thresholds.own_prefixes))

    def presence(self, key: tuple[str, str]) -> list[tuple[Instant, Queue | None]]:
        """Return a queue at every reading of the list of queues, oldest first; None for readings without it.

        Readings around the end of a queue are among them, also if their snapshots are not held any more.
        """
        found = self._queue_readings.of(key)
        if key not in self._endings:
            return found
        merged = {at.mono: (at, queue) for at, queue in found}
        for ending in self._endings[key]:
            later = ((ending.after, ending.successor), *((ending.back,) if ending.back else ()))
            merged |= {at.mono: (at, queue) for at, queue in (*ending.readings, *later)}
        return [merged[moment] for moment in sorted(merged)]

    def listings(self, queue: Queue) -> Series[Queue]:
        """Return a queue at every reading of the list of queues that has it, oldest first."""
        return tuple(Timestamped(at, value) for at, value in self.presence(queue.key) if value is not None)

    def readings_of(self, queue: Queue) -> Series[Queue]:
        """Return a queue at each distinct reading, oldest first, also before a restart of its counters or a gap.

        After a start of its node, a queue is not listed for some seconds.
        """
        return _distinct(self.listings(queue), _details_at)

    def listed_since(self, queue: Queue) -> Instant | None:
        """Return the first reading since which a queue was in the list of queues each time; None if it is not now."""
        since = None
        for at, value in self._queue_readings.of(queue.key):
            since = None if value is None else since or at
        return since

    def longest_life(self, queue: Queue) -> float:
        """Return for how many seconds a queue can have existed; infinite if the first reading of the list has it."""
        return self._since_without(self.presence(queue.key))

    def moved(self, queue: Queue, counter: str) -> bool:
        """Return whether a counter changed within the last interval; cheap, so healthy queues need no history."""
        if queue.details_at is not None:
            latest_two = self.history(queue)[-2:]
            return len(latest_two) < 2 or getattr(latest_two[0].value.stats, counter) != getattr(queue.stats, counter)
        if not self.has_changed(queue):
            return not self._spans_interval
        before = self._queue_readings.ago(queue.key, self.thresholds.interval)
        return before is None or getattr(before.stats, counter) != getattr(queue.stats, counter)

    def has_changed(self, queue: Queue) -> bool:
        """Return whether a queue differs in any of the readings; cheap, so idle queues need no history."""
        return queue.key in self._changed

    def channel_history(self, name: str) -> Series[Channel]:
        """Return a channel at each reading since it was opened, oldest first."""
        return life(_unbroken([(at, known.get(name)) for at, known in self._channel_readings]))

    def longest_open(self, channel: Channel) -> float:
        """Return for how many seconds a channel can be open; infinite if the first reading of channels has its name."""
        return self._since_without((at, known.get(channel.name)) for at, known in self._channel_readings)

    def connection_history(self, name: str) -> Series[Connection]:
        """Return a connection at its latest consecutive readings, oldest first; they cover about half a minute."""
        return _unbroken([(at, known.get(name)) for at, known in self._connection_readings])

    @property
    def channels_before(self) -> Instant | None:
        """Time of the first reading of channels in this window; a channel not in it was opened later."""
        return self._channel_readings[0][0] if self._channel_readings else None

    def session_history(self, session: AmqpSession) -> Series[AmqpSession]:
        """Return an AMQP 1.0 session at each of its consecutive readings, oldest first."""
        series = _unbroken([(at, known.get(session.key)) for at, known in self._session_readings])
        return _distinct(series, lambda it: it.read_at)

    def stream_history(self, reader: StreamConsumer) -> Series[StreamConsumer]:
        """Return a consumer that uses the stream protocol at each of its consecutive readings, oldest first."""
        series = _unbroken([(at, known.get(reader.key)) for at, known in self._reader_readings])
        return tuple(seen for seen in series if seen.value.queue == reader.queue)

    def links(self, queue: Queue) -> tuple[ConsumerPath, ...]:
        """Return the consumers of a queue, each with its channel and connection, in a fixed order."""
        return self._links.get(queue.key, ())

    def has_uncounted(self, queue: Queue) -> bool:
        """Return whether a queue may have a consumer of AMQP 1.0: one with a session, or an uncounted one."""
        return bool(self._uncounted) and queue.key in self._uncounted

    @cached_property
    def uncounted_queues(self) -> tuple[Queue, ...]:
        """Those of `queues` that may have a consumer of AMQP 1.0, so that rules need not look at all consumers."""
        return tuple(queue for queue in self.queues if self.has_uncounted(queue))

    def queues_served(self, channel_name: str) -> int:
        """Return how many queues a channel consumes from; 0 if unknown."""
        return len(self._served.get(channel_name, ()))

    def queues_consumed(self, connection_name: str) -> frozenset[tuple[str, str]]:
        """Return virtual host and name of the queues that a connection consumes from; empty if unknown."""
        return self._consumed.get(connection_name, frozenset())

    def connection(self, name: str | None) -> Connection | None:
        """Return a connection by its name; None without one."""
        return self._connections_by_name.get(name or "")

    def connection_of(self, channel_name: str) -> str | None:
        """Return the name of the connection of a channel; None if unknown."""
        return self._connection_names.get(channel_name)

    @cached_property
    def _outdated(self) -> NotYet | None:
        """Why the baselines are too old to use; None if they can be used."""
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
        return {channel.name: channel.connection_name for channel in self.every_channel}

    @cached_property
    def _connections_by_name(self) -> dict[str, Connection]:
        return {connection.name: connection for connection in self.connections}

    @cached_property
    def _uncounted(self) -> frozenset[tuple[str, str]]:
        return frozenset(
            (each.vhost, each.queue)
            for each in self.every_consumer
            if each.session_number is not None or is_uncounted(each)
        )

    @cached_property
    def _served(self) -> dict[str, set[tuple[str, str]]]:
        served: dict[str, set[tuple[str, str]]] = {}
        for consumer in self.every_consumer:
            served.setdefault(consumer.channel_name or "", set()).add((consumer.vhost, consumer.queue))
        return served

    @cached_property
    def _consumed(self) -> dict[str, frozenset[tuple[str, str]]]:
        consumed: dict[str, set[tuple[str, str]]] = {}
        for consumer in self.every_consumer:
            consumed.setdefault(consumer.connection_name or "", set()).add((consumer.vhost, consumer.queue))
        return {name: frozenset(queues) for name, queues in consumed.items() if name}

    @cached_property
    def _links(self) -> dict[tuple[str, str], tuple[ConsumerPath, ...]]:
        channels = {channel.name: channel for channel in self.channels}
        sessions: dict[Any, AmqpSession] = {session.key: session for session in self.sessions}
        streams = self.streams.consumers if self.streams else None
        readers: dict[Any, StreamConsumer] = {reader.key: reader for reader in streams or ()}
        grouped: dict[tuple[str, str], list[ConsumerPath]] = {}
        for consumer in sorted(self.every_consumer, key=lambda c: (c.channel_name or "", c.tag)):
            channel = channels.get(consumer.channel_name or "")
            name = consumer.connection_name or (channel.connection_name if channel else None)
            session = sessions.get((name, consumer.session_number)) if consumer.session_number is not None else None
            reader = readers.get((name, consumer.subscription)) if consumer.subscription is not None else None
            link = ConsumerPath(consumer, channel, self.connection(name), session, reader)
            grouped.setdefault((consumer.vhost, consumer.queue), []).append(link)
        return {key: tuple(links) for key, links in grouped.items()}

    def _since_without(self, readings: Iterable[tuple[Instant, object]]) -> float:
        before = list(takewhile(lambda seen: seen[1] is None, readings))
        return self.now.since(before[-1][0]) if before else inf

    @cached_property
    def _queue_readings(self) -> Readings:
        return Readings(self.window.readings("queues"))

    @cached_property
    def _spans_interval(self) -> bool:
        return span(self.window.readings("queues")) >= self.thresholds.interval

    @cached_property
    def _changed(self) -> frozenset[tuple[str, str]]:
        return self._queue_readings.changed()

    @cached_property
    def _endings(self) -> dict[tuple[str, str], list[Ending]]:
        found: dict[tuple[str, str], list[Ending]] = {}
        for ending in self.window.endings:
            found.setdefault(ending.queue.key, []).append(ending)
        return found

    @cached_property
    def _channel_readings(self) -> list[tuple[Instant, dict[str, Channel]]]:
        readings = self.window.readings("channels")
        return [(seen.at, {channel.name: channel for channel in seen.value}) for seen in readings]

    @cached_property
    def _connection_readings(self) -> list[tuple[Instant, dict[str, Connection]]]:
        readings = self.window.readings("connections")
        return [(seen.at, {connection.name: connection for connection in seen.value}) for seen in readings]

    @cached_property
    def _session_readings(self) -> list[tuple[Instant, dict[tuple[str, int], AmqpSession]]]:
        readings = self.window.readings("sessions")
        return [(seen.at, {session.key: session for session in seen.value}) for seen in readings]

    @cached_property
    def _reader_readings(self) -> list[tuple[Instant, dict[tuple[str, int], StreamConsumer]]]:
        readings = self.window.readings("streams")
        return [(seen.at, {reader.key: reader for reader in seen.value.consumers or ()}) for seen in readings]

    def _is_unread(self, queue: Queue) -> bool:
        if queue.details_at is not None:
            return self.now.since(queue.details_at) > self.thresholds.data_age
        # A queue read by its totals only has no consumers field. A queue unknown to its broker has no totals either.
        return queue.consumers is None and queue.messages_ready is not None


def is_uncounted(consumer: Consumer) -> bool:
    """Return whether the broker tells neither a channel nor a prefetch of a consumer; see `ConsumerPath`."""
    return consumer.channel_name is None and not consumer.prefetch_count


def is_own(connection: Connection) -> bool:
    """Return whether a connection belongs to one of our probes, by its client name."""
    return (connection.client_name or "").startswith(OWN_CLIENTS)


def _details_at(queue: Queue) -> Instant | None:
    return queue.details_at


def _distinct(series: Series[T], read_at: Callable[[T], Instant | None]) -> Series[T]:
    """Return one entry per reading of an object itself, at its time; polls in between repeat it or part of it."""
    found: list[Timestamped[T]] = []
    for seen in series:
        at = read_at(seen.value)
        if at is None:
            found.append(seen)
        elif not found or at != found[-1].at:
            found.append(Timestamped(at, seen.value))
    return tuple(found)


def _unbroken(readings: list[tuple[Instant, Any]]) -> Series[Any]:
    """Return the latest consecutive readings that hold the object. An object that was gone counts as a new one."""
    found: list[Timestamped[Any]] = []
    for at, value in readings:
        if value is None:
            found.clear()
        else:
            found.append(Timestamped(at, value))
    return tuple(found)
