"""Gives rules the parts of the latest reading that are fresh enough, and their history."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from ackscope.clock import Instant
from ackscope.records import ProbeOutcome
from ackscope.snapshot import Alarm, HealthCheck, Node, Overview
from ackscope.topology import (
    AuthAttempts,
    Binding,
    Bindings,
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

_SELDOM = 5
"""Maximum age of a seldom-read part, as a multiple of `data_age`."""


class LatestReadings:
    """Lists of the objects in the latest fresh reading. A list is empty if that part is not fresh; see `fresh`."""

    def __init__(self, window: Window, outcomes: Sequence[ProbeOutcome], now: Instant, thresholds: Thresholds) -> None:
        self.window = window
        self.outcomes = outcomes
        self.now = now
        self.thresholds = thresholds

    def part(self, family: str) -> Any:
        """Return the value of a part by its name in the snapshot; an empty tuple if it is not fresh."""
        latest = self.window.latest
        value = latest.parts[family].value if latest is not None and self.fresh(family) else None
        return () if value is None else value

    def age(self, family: str) -> float | None:
        """Return the seconds since the last good reading of a part; None if there never was one."""
        latest = self.window.latest
        return latest.parts[family].age(self.now) if latest else None

    def error(self, family: str) -> str | None:
        """Return why the latest attempt to read a part failed; None if it did not fail."""
        latest = self.window.latest
        return latest.parts[family].error if latest else None

    def trend(self, family: str) -> Series[Any]:
        """Return readings over two hours, about a minute apart, of overview, nodes, memory, links or auth."""
        return self.window.trend(family)

    @property
    def version(self) -> tuple[int, int] | None:
        """Major and minor version of RabbitMQ; None while unknown."""
        return self.window.latest.version if self.window.latest else None

    @property
    def overview(self) -> Overview | None:
        """Overview of the cluster; None if it is not fresh."""
        value: Overview | tuple[()] = self.part("overview")
        return value or None

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """All nodes, including those that are down."""
        return tuple(self.part("nodes"))

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
    def checks(self) -> dict[str, HealthCheck]:
        """Health checks that returned a result, by name."""
        return {check.name: check for check in self.part("health") if check.ok is not None}

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
        return tuple(self.part("exchanges"))

    @cached_property
    def bindings(self) -> tuple[Binding, ...] | None:
        """All bindings except those of the default exchange; None if they are unknown or too many to hold."""
        value: Bindings | tuple[()] = self.part("bindings")
        return value.listed if isinstance(value, Bindings) else None

    @cached_property
    def vhosts(self) -> tuple[VHost, ...]:
        """All virtual hosts."""
        return tuple(self.part("vhosts"))

    @cached_property
    def policies(self) -> tuple[Policy, ...]:
        """Policies and operator policies."""
        return tuple(self.part("policies"))

    @cached_property
    def limits_set(self) -> tuple[Limit, ...]:
        """Limits of virtual hosts and users."""
        return tuple(self.part("limits"))

    @cached_property
    def bridges(self) -> tuple[Bridge, ...]:
        """Shovels and federation links."""
        return tuple(self.part("links"))

    @cached_property
    def features(self) -> tuple[Feature, ...]:
        """Feature flags and deprecated features."""
        return tuple(self.part("features"))

    @cached_property
    def auth(self) -> tuple[AuthAttempts, ...]:
        """Login attempts by node and protocol."""
        return tuple(self.part("auth"))

    @cached_property
    def memory(self) -> dict[str, NodeMemory]:
        """Memory breakdown of each node, by node name."""
        return {each.node: each for each in self.part("memory")}

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
        planned = latest.parts[family].every if latest is not None else None
        if planned is not None:
            return planned
        latest_two = self.window.readings(family)[-2:]
        return latest_two[-1].at.since(latest_two[0].at) if latest_two else 0.0


def _of(readings: Series[tuple[Node, ...]], name: str) -> Series[Node]:
    found = ((seen.at, next((node for node in seen.value if node.name == name), None)) for seen in readings)
    return tuple(Timestamped(at, node) for at, node in found if node is not None)
