"""Gives rules the parts of the latest reading that are fresh enough, and their history."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, TypeVar

from ackscope.amqp10 import AmqpSession
from ackscope.clock import Instant
from ackscope.records import ProbeOutcome
from ackscope.second_source import MetricsReading
from ackscope.snapshot import (
    Alarm,
    Channel,
    Connection,
    Consumer,
    HealthCheck,
    Node,
    Overview,
    Part,
    Queue,
    Snapshot,
)
from ackscope.streams import StreamClients
from ackscope.topology import (
    AuthAttempts,
    Binding,
    Exchange,
    Feature,
    Limit,
    NodeMemory,
    Policy,
    VHost,
)
from ackscope.topology import Link as Bridge
from diagnosis.thresholds import Thresholds
from diagnosis.window import Series, Timestamped, Window

T = TypeVar("T")

_SELDOM = 5
"""Maximum age of a seldom-read part, as a multiple of `data_age`."""


class LatestReadings:
    """Lists of the objects in the latest fresh reading. A list is empty if that part is not fresh; see `fresh`."""

    def __init__(self, window: Window, outcomes: Sequence[ProbeOutcome], now: Instant, thresholds: Thresholds) -> None:
        self.window = window
        self.outcomes = outcomes
        self.now = now
        self.thresholds = thresholds

    def _value(self, family: str, part: Callable[[Snapshot], Part[T]]) -> T | None:
        latest = self.window.latest
        return part(latest).value if latest is not None and self.fresh(family) else None

    def age(self, family: str) -> float | None:
        """Return the seconds since the last good reading of a part; None if there never was one."""
        latest = self.window.latest
        return getattr(latest, family).age(self.now) if latest else None

    def error(self, family: str) -> str | None:
        """Return why the latest attempt to read a part failed; None if it did not fail."""
        latest = self.window.latest
        return latest.parts[family].error if latest else None

    def trend(self, family: str) -> Series[Any]:
        """Return readings over two hours, about a minute apart, of overview, nodes, memory, links or auth."""
        return self.window.trend(family)

    @cached_property
    def version(self) -> tuple[int, int] | None:
        """Major and minor version of RabbitMQ; None while unknown."""
        return self.window.latest.version if self.window.latest else None

    @property
    def has_native_amqp10(self) -> bool:
        """Whether AMQP 1.0 sessions are no channels and have no counters, as from 4.0 on; also while it is unknown."""
        return self.version is None or self.version >= (4, 0)

    @property
    def metrics(self) -> MetricsReading | None:
        """How the Prometheus endpoints of the nodes were read; None if they are not, or not recently enough."""
        latest = self.window.latest
        age = latest.prometheus.age(self.now) if latest is not None else None
        if latest is None or age is None:
            return None
        return latest.prometheus.value if age <= _SELDOM * self.thresholds.data_age else None

    @property
    def overview(self) -> Overview | None:
        """Overview of the cluster; None if it is not fresh."""
        return self._value("overview", lambda each: each.overview)

    @property
    def broker_wall(self) -> float:
        """The present time by the broker's clock, seconds since 1970; by ours as long as the difference is unknown."""
        return self.now.wall + ((self.overview.clock_offset if self.overview else None) or 0.0)

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """All nodes, including those that are down."""
        return self._value("nodes", lambda each: each.nodes) or ()

    def node(self, name: str | None) -> Node | None:
        """A node by its name."""
        return next((node for node in self.nodes if node.name == name), None)

    def node_history(self, name: str) -> Series[Node]:
        """Return a node at each reading of the last ten minutes; older readings are further apart."""
        return _of(self.window.readings("nodes"), name)

    def node_trend(self, name: str) -> Series[Node]:
        """Return the readings of a node over two hours, about a minute apart."""
        return _of(self.trend("nodes"), name)

    @cached_property
    def requested_checks(self) -> tuple[HealthCheck, ...]:
        """Health checks, also those that returned no result."""
        return self._value("health", lambda each: each.health) or ()

    @cached_property
    def every_queue(self) -> tuple[Queue, ...]:
        """All queues, with those of the probes."""
        return self._value("queues", lambda each: each.queues) or ()

    @cached_property
    def every_connection(self) -> tuple[Connection, ...]:
        """All connections, with those of the probes."""
        return self._value("connections", lambda each: each.connections) or ()

    @cached_property
    def every_channel(self) -> tuple[Channel, ...]:
        """All channels, with those of the probes."""
        return self._value("channels", lambda each: each.channels) or ()

    @cached_property
    def sessions(self) -> tuple[AmqpSession, ...]:
        """AMQP 1.0 sessions of all connections."""
        return self._value("sessions", lambda each: each.sessions) or ()

    @property
    def streams(self) -> StreamClients | None:
        """Clients that use the stream protocol; None if they were not read."""
        return self._value("streams", lambda each: each.streams)

    @cached_property
    def every_consumer(self) -> tuple[Consumer, ...]:
        """All consumers, with those of the probes."""
        return self._value("consumers", lambda each: each.consumers) or ()

    @cached_property
    def checks(self) -> dict[str, HealthCheck]:
        """Health checks that returned a result, by name."""
        return {check.name: check for check in self.requested_checks if check.ok is not None}

    @property
    def alarm_check(self) -> HealthCheck | None:
        """The health check that lists resource alarms; None if it was not requested or not answered."""
        return self.checks.get("alarms")

    @cached_property
    def alarms(self) -> tuple[Alarm, ...]:
        """Resource alarms in force, sorted by node."""
        alarms = self.alarm_check.alarms if self.alarm_check else ()
        return tuple(sorted(alarms, key=lambda alarm: (alarm.node, alarm.resource)))

    @cached_property
    def exchanges(self) -> tuple[Exchange, ...]:
        """All exchanges."""
        return self._value("exchanges", lambda each: each.exchanges) or ()

    @cached_property
    def bindings(self) -> tuple[Binding, ...] | None:
        """All bindings except those of the default exchange; None if they are unknown or too many to hold."""
        value = self._value("bindings", lambda each: each.bindings)
        return None if value is None else value.listed

    @cached_property
    def vhosts(self) -> tuple[VHost, ...]:
        """All virtual hosts."""
        return self._value("vhosts", lambda each: each.vhosts) or ()

    @cached_property
    def policies(self) -> tuple[Policy, ...]:
        """Policies and operator policies."""
        return self._value("policies", lambda each: each.policies) or ()

    @cached_property
    def limits_set(self) -> tuple[Limit, ...]:
        """Limits of virtual hosts and users."""
        return self._value("limits", lambda each: each.limits) or ()

    @cached_property
    def bridges(self) -> tuple[Bridge, ...]:
        """Shovels and federation links."""
        return self._value("links", lambda each: each.links) or ()

    @cached_property
    def features(self) -> tuple[Feature, ...]:
        """Feature flags and deprecated features."""
        return self._value("features", lambda each: each.features) or ()

    @cached_property
    def auth(self) -> tuple[AuthAttempts, ...]:
        """Login attempts by node and protocol."""
        return self._value("auth", lambda each: each.auth) or ()

    @cached_property
    def memory(self) -> dict[str, NodeMemory]:
        """Memory breakdown of each node, by node name."""
        return {each.node: each for each in self._value("memory", lambda each: each.memory) or ()}

    def outcomes_of(self, probe: str) -> tuple[ProbeOutcome, ...]:
        """Return the outcomes of all streams of one probe, sorted by node and stream."""
        return tuple(sorted((o for o in self.outcomes if o.probe == probe), key=lambda o: (o.node, o.stream)))

    def fresh(self, family: str) -> bool:
        """Return whether this part was read recently enough to judge by.

        Costly parts of a large broker, and parts of a quiet one that seldom change, are read less often. Those may be
        as old as two of their own intervals.
        """
        age, limit = self.age(family), self.thresholds.data_age
        if age is None or age <= limit:
            return age is not None
        return age <= min(2 * self._every(family), _SELDOM * limit)

    def _every(self, family: str) -> float:
        """Return the planned seconds between readings of a part, else those between its latest two readings."""
        latest = self.window.latest
        planned: float | None = getattr(latest, family).every if latest is not None else None
        if planned is not None:
            return planned
        latest_two = self.window.readings(family)[-2:]
        return latest_two[-1].at.since(latest_two[0].at) if latest_two else 0.0


def _of(readings: Series[tuple[Node, ...]], name: str) -> Series[Node]:
    found = ((seen.at, next((node for node in seen.value if node.name == name), None)) for seen in readings)
    return tuple(Timestamped(at, node) for at, node in found if node is not None)
