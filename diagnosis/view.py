"""All that a rule may see: readings that are fresh enough, and how their objects belong together."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ackscope.clock import Instant
from ackscope.records import ProbeOutcome
from ackscope.snapshot import Alarm, Channel, Connection, Consumer, HealthCheck, Node, Queue
from diagnosis.series import life
from diagnosis.thresholds import Thresholds
from diagnosis.window import Seen, Series, Window

OWN_CLIENTS = ("ackscope-probe", "ackscope-verify")
"""How the names begin that connections of ours give themselves."""


_SELDOM = 5
"""A part that is read seldom may be this many times as old as others, and no more."""


@dataclass(frozen=True, slots=True)
class Link:
    """One consumer of a queue, with its channel and connection where they are known."""

    consumer: Consumer
    channel: Channel | None
    connection: Connection | None


class View:
    """One look at a window. Its lists are computed when first asked for, and kept for this look only.

    Lists hold what the latest fresh reading holds; they are empty where there is none, which `fresh` tells apart
    from a cluster that has none.
    """

    def __init__(self, window: Window, outcomes: Sequence[ProbeOutcome], now: Instant, thresholds: Thresholds) -> None:
        self.window = window
        self.outcomes = outcomes
        self.now = now
        self.thresholds = thresholds
        self._histories: dict[tuple[str, str], Series[Queue]] = {}

    def fresh(self, family: str) -> bool:
        """Whether this part was read, lately enough to judge by.

        Of a large broker the parts that cost much are read less often, and may be as old as two of their own intervals.
        """
        age, limit = self.age(family), self.thresholds.data_age
        if age is None or age <= limit:
            return age is not None
        lately = self.window.readings(family)[-2:]
        interval = lately[-1].at.since(lately[0].at) if lately else 0.0
        return age <= min(2 * interval, _SELDOM * limit)

    def age(self, family: str) -> float | None:
        """Seconds since the last good reading of a part; None where there never was one."""
        latest = self.window.latest
        return latest.parts[family].age(self.now) if latest else None

    @property
    def version(self) -> tuple[int, int] | None:
        """Major and minor version of RabbitMQ; None while unknown."""
        return self.window.latest.version if self.window.latest else None

    @cached_property
    def all_queues(self) -> tuple[Queue, ...]:
        """Queues that applications use, by their totals: those of the probes are left out."""
        return tuple(q for q in self._latest("queues") if not q.name.startswith(self.thresholds.own_prefixes))

    @cached_property
    def queues(self) -> tuple[Queue, ...]:
        """Those of them whose statistics were read lately enough to judge by; of a large broker not all are."""
        return tuple(queue for queue in self.all_queues if not self._is_unread(queue))

    @cached_property
    def unread(self) -> tuple[Queue, ...]:
        """The others, as far as they hold messages: they are not judged."""
        return tuple(queue for queue in self.all_queues if queue.messages and self._is_unread(queue))

    @cached_property
    def channels(self) -> tuple[Channel, ...]:
        """Channels that applications use: those of the probes are left out, of which some are nacked by design."""
        own = {connection.name for connection in self._latest("connections") if _is_own(connection)}
        return tuple(channel for channel in self._latest("channels") if channel.connection_name not in own)

    @cached_property
    def connections(self) -> tuple[Connection, ...]:
        """Connections of applications: those of the probes are left out."""
        return tuple(connection for connection in self._latest("connections") if not _is_own(connection))

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """All nodes, also those that are down."""
        return tuple(self._latest("nodes"))

    @cached_property
    def alarm_check(self) -> HealthCheck | None:
        """The health check that lists resource alarms; None where it was not asked, or had no answer."""
        checks: tuple[HealthCheck, ...] = self._latest("health")
        return next((check for check in checks if check.name == "alarms" and check.ok is not None), None)

    @cached_property
    def alarms(self) -> tuple[Alarm, ...]:
        """Resource alarms in force, by node."""
        alarms = self.alarm_check.alarms if self.alarm_check else ()
        return tuple(sorted(alarms, key=lambda alarm: (alarm.node, alarm.resource)))

    def history(self, queue: Queue) -> Series[Queue]:
        """A queue at each distinct reading of its present life, oldest first, the latest last."""
        known = self._histories.get(queue.key)
        if known is None:
            known = life(_distinct(_unbroken([(at, queues.get(queue.key)) for at, queues in self._queue_readings])))
            self._histories[queue.key] = known
        return known

    def moved(self, queue: Queue, counter: str) -> bool:
        """Whether a counter moved within the last interval; cheap, to spare healthy queues the whole history."""
        if queue.details_at is not None:
            lately = self.history(queue)[-2:]
            return len(lately) < 2 or getattr(lately[0].value.stats, counter) != getattr(queue.stats, counter)
        before = self._an_interval_ago.get(queue.key)
        return before is None or getattr(before.stats, counter) != getattr(queue.stats, counter)

    def channel_history(self, name: str) -> Series[Channel]:
        """A channel at each distinct reading of its present life, oldest first, the latest last."""
        return life(_unbroken([(at, known.get(name)) for at, known in self._channel_readings]))

    @property
    def channels_before(self) -> Instant | None:
        """When channels were first read in this window: one that is not in that reading began later."""
        return self._channel_readings[0][0] if self._channel_readings else None

    def links(self, queue: Queue) -> tuple[Link, ...]:
        """The consumers of a queue, each with its channel and connection, in a fixed order."""
        return self._links.get(queue.key, ())

    def queues_served(self, channel_name: str) -> int:
        """How many queues a channel consumes from; 0 where that is not known."""
        return len(self._served.get(channel_name, ()))

    def connection(self, name: str | None) -> Connection | None:
        """A connection by its name."""
        return self._connections_by_name.get(name or "")

    @cached_property
    def _connections_by_name(self) -> dict[str, Connection]:
        return {connection.name: connection for connection in self.connections}

    @cached_property
    def _served(self) -> dict[str, set[tuple[str, str]]]:
        served: dict[str, set[tuple[str, str]]] = {}
        for consumer in self._latest("consumers"):
            served.setdefault(consumer.channel_name or "", set()).add((consumer.vhost, consumer.queue))
        return served

    @cached_property
    def _links(self) -> dict[tuple[str, str], tuple[Link, ...]]:
        channels = {channel.name: channel for channel in self.channels}
        grouped: dict[tuple[str, str], list[Link]] = {}
        for consumer in sorted(self._latest("consumers"), key=lambda c: (c.channel_name or "", c.tag)):
            channel = channels.get(consumer.channel_name or "")
            name = consumer.connection_name or (channel.connection_name if channel else None)
            link = Link(consumer, channel, self.connection(name))
            grouped.setdefault((consumer.vhost, consumer.queue), []).append(link)
        return {key: tuple(links) for key, links in grouped.items()}

    @cached_property
    def _an_interval_ago(self) -> dict[tuple[str, str], Queue]:
        readings = self._queue_readings
        enough = (known for at, known in reversed(readings) if readings[-1][0].since(at) >= self.thresholds.interval)
        return next(enough, {})

    @cached_property
    def _queue_readings(self) -> list[tuple[Instant, dict[tuple[str, str], Queue]]]:
        return [(seen.at, {queue.key: queue for queue in seen.value}) for seen in self.window.readings("queues")]

    @cached_property
    def _channel_readings(self) -> list[tuple[Instant, dict[str, Channel]]]:
        readings = self.window.readings("channels")
        return [(seen.at, {channel.name: channel for channel in seen.value}) for seen in readings]

    def _is_unread(self, queue: Queue) -> bool:
        if queue.details_at is not None:
            return self.now.since(queue.details_at) > self.thresholds.data_age
        # Totals alone name no consumers; a queue that its broker knows nothing of has no totals either.
        return queue.consumers is None and queue.messages_ready is not None

    def _latest(self, family: str) -> Any:
        latest = self.window.latest
        value = latest.parts[family].value if latest is not None and self.fresh(family) else None
        return () if value is None else value


def _is_own(connection: Connection) -> bool:
    return (connection.client_name or "").startswith(OWN_CLIENTS)


def _distinct(series: Series[Queue]) -> Series[Queue]:
    """One moment for each reading of the statistics, and that moment its own: polls between them tell totals only."""
    found: list[Seen[Queue]] = []
    for seen in series:
        at = seen.value.details_at or seen.at
        if not found or at != found[-1].at:
            found.append(Seen(at, seen.value))
    return tuple(found)


def _unbroken(readings: list[tuple[Instant, Any]]) -> Series[Any]:
    """The latest readings in a row that hold the object: one that was gone came back as another."""
    found: list[Seen[Any]] = []
    for at, value in readings:
        if value is None:
            found.clear()
        else:
            found.append(Seen(at, value))
    return tuple(found)
