"""The parts of the latest reading that are fresh enough to judge by, and their past."""

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
"""A part that is read seldom may be this many times as old as others, and no more."""


class LatestReadings:
    """Each list holds what the latest fresh reading holds; it is empty where there is none, which `fresh` tells."""

    def __init__(self, window: Window, outcomes: Sequence[ProbeOutcome], now: Instant, thresholds: Thresholds) -> None:
        self.window = window
        self.outcomes = outcomes
        self.now = now
        self.thresholds = thresholds

    def part(self, family: str) -> Any:
        """The value of a part by its name in the snapshot; an empty tuple where it is not fresh."""
        latest = self.window.latest
        value = latest.parts[family].value if latest is not None and self.fresh(family) else None
        return () if value is None else value

    def age(self, family: str) -> float | None:
        """Seconds since the last good reading of a part; None where there never was one."""
        latest = self.window.latest
        return latest.parts[family].age(self.now) if latest else None

    def error(self, family: str) -> str | None:
        """Why the latest attempt to read a part failed; None when it did not."""
        latest = self.window.latest
        return latest.parts[family].error if latest else None

    def trend(self, family: str) -> Series[Any]:
        """Readings over two hours, about a minute apart: overview, nodes, memory, links, auth."""
        return self.window.trend(family)

    @property
    def version(self) -> tuple[int, int] | None:
        """Major and minor version of RabbitMQ; None while unknown."""
        return self.window.latest.version if self.window.latest else None

    @property
    def overview(self) -> Overview | None:
        """The cluster as a whole; None where it was not read lately."""
        value: Overview | tuple[()] = self.part("overview")
        return value or None

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """All nodes, also those that are down."""
        return tuple(self.part("nodes"))

    def node(self, name: str | None) -> Node | None:
        """A node by its name."""
        return next((node for node in self.nodes if node.name == name), None)

    def node_history(self, name: str) -> Series[Node]:
        """A node at each reading of ten minutes, close together now and spaced out towards the past."""
        return _of(self.window.readings("nodes"), name)

    def node_trend(self, name: str) -> Series[Node]:
        """A node over two hours, about a minute apart."""
        return _of(self.trend("nodes"), name)

    @cached_property
    def checks(self) -> dict[str, HealthCheck]:
        """Health checks that gave an answer, by name."""
        return {check.name: check for check in self.part("health") if check.ok is not None}

    @property
    def alarm_check(self) -> HealthCheck | None:
        """The health check that lists resource alarms; None where it was not asked, or had no answer."""
        return self.checks.get("alarms")

    @cached_property
    def alarms(self) -> tuple[Alarm, ...]:
        """Resource alarms in force, by node."""
        alarms = self.alarm_check.alarms if self.alarm_check else ()
        return tuple(sorted(alarms, key=lambda alarm: (alarm.node, alarm.resource)))

    @cached_property
    def exchanges(self) -> tuple[Exchange, ...]:
        """All exchanges."""
        return tuple(self.part("exchanges"))

    @cached_property
    def bindings(self) -> tuple[Binding, ...] | None:
        """Each binding but those of the default exchange; None where they are not known or too many to hold."""
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
        """Logins by node and protocol."""
        return tuple(self.part("auth"))

    @cached_property
    def memory(self) -> dict[str, NodeMemory]:
        """Where the memory of each node goes."""
        return {each.node: each for each in self.part("memory")}

    def outcomes_of(self, probe: str) -> tuple[ProbeOutcome, ...]:
        """What the streams of one probe lived through, in a fixed order."""
        return tuple(sorted((o for o in self.outcomes if o.probe == probe), key=lambda o: (o.node, o.stream)))

    def fresh(self, family: str) -> bool:
        """Whether this part was read, lately enough to judge by.

        Of a large broker the parts that cost much are read less often, and of a calm one what seldom changes: they may
        be as old as two of their own intervals.
        """
        age, limit = self.age(family), self.thresholds.data_age
        if age is None or age <= limit:
            return age is not None
        return age <= min(2 * self._every(family), _SELDOM * limit)

    def _every(self, family: str) -> float:
        """Seconds between two readings: as planned or, where nothing is said of that, as the latest two were made."""
        latest = self.window.latest
        planned = latest.parts[family].every if latest is not None else None
        if planned is not None:
            return planned
        latest_two = self.window.readings(family)[-2:]
        return latest_two[-1].at.since(latest_two[0].at) if latest_two else 0.0


def _of(readings: Series[tuple[Node, ...]], name: str) -> Series[Node]:
    found = ((seen.at, next((node for node in seen.value if node.name == name), None)) for seen in readings)
    return tuple(Timestamped(at, node) for at, node in found if node is not None)
