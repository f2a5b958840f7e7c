"""All thresholds of diagnosis, one model for each group of rules.

The defaults come from a study of failure modes on live brokers of versions 3.10, 4.0 and 4.3, unless a threshold names
another source.
"""

import re
from collections.abc import Mapping
from typing import Any, Self

from pydantic import Field, ValidationError, field_validator, model_validator

from ackscope.settings import Seconds, Settings, pattern_problem
from diagnosis.thresholds.clients import ClientThresholds
from diagnosis.thresholds.cluster import ClusterThresholds
from diagnosis.thresholds.consumers import ConsumerThresholds
from diagnosis.thresholds.nodes import NodeThresholds
from diagnosis.thresholds.probing import ProbeThresholds
from diagnosis.thresholds.publishers import PublisherThresholds
from diagnosis.thresholds.queues import QueueThresholds
from diagnosis.thresholds.topology import TopologyThresholds
from diagnosis.thresholds.usual import UsualThresholds

GROUPS = ("publishers", "consumers", "queues", "nodes", "cluster", "clients", "topology", "probing", "usual")


def expression(pattern: str) -> str:
    """The pattern itself.

    Raises:
        ValueError: it is not a regular expression.
    """
    problem = pattern_problem(pattern)
    if problem is not None:
        raise ValueError(f"{pattern[:80]!r} is not a regular expression ({problem}); fix it")
    return pattern


class Override(Settings):
    """Other thresholds for some queues.

    Attributes:
        queues: regular expression that matches their names.
        vhosts: regular expression that matches their virtual hosts.
        values: group -> name -> value of each other threshold, as in `consumers: {stuck_for: 10m}`.
    """

    queues: str
    vhosts: str = ""
    values: dict[str, dict[str, Any]]

    _are_patterns = field_validator("queues", "vhosts")(expression)

    def covers(self, vhost: str, name: str) -> bool:
        """Whether it applies to this queue."""
        return bool(re.search(self.queues, name) and re.search(self.vhosts, vhost))


class Thresholds(Settings):
    """Settings of diagnosis (`diagnosis:` in the configuration).

    Attributes:
        data_age: Readings older than this are not used; several polls have failed by then.
        interval: Minimum time between two readings for a rate. The broker refreshes its statistics every 5 s, so closer
            readings may show no change, or two refreshes.
        early: A fault is reported as information after it has lasted this long; each rule has its own time for a
            warning.
        hold: A finding stays active for this long after its evidence was last seen, so that it does not flap.
        own_prefixes: Prefixes of the probes' queues, which are never the subject of a finding.
        benign_queue_patterns: Regular expressions that match names of queues without a consumer by design.
        overrides: Other thresholds for some queues. `queues` and `vhosts` are regular expressions that match their
            names, `values` the thresholds by group, as in `consumers: {stuck_for: 10m}`. If several match a queue, the
            last one applies.
    """

    data_age: Seconds = 60.0
    interval: Seconds = Field(default=8.0, gt=0)
    early: Seconds = Field(default=12.0, gt=0)
    hold: Seconds = 20.0
    own_prefixes: tuple[str, ...] = ("ackscope.probe.",)
    benign_queue_patterns: tuple[str, ...] = (r"(?i)(dlq|dlx|dead(?!line)|parking|delay|retry)",)
    publishers: PublisherThresholds = PublisherThresholds()
    consumers: ConsumerThresholds = ConsumerThresholds()
    queues: QueueThresholds = QueueThresholds()
    nodes: NodeThresholds = NodeThresholds()
    cluster: ClusterThresholds = ClusterThresholds()
    clients: ClientThresholds = ClientThresholds()
    topology: TopologyThresholds = TopologyThresholds()
    probing: ProbeThresholds = ProbeThresholds()
    usual: UsualThresholds = UsualThresholds()
    overrides: tuple[Override, ...] = Field(default=())

    @field_validator("benign_queue_patterns")
    @classmethod
    def _patterns(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(expression(pattern) for pattern in patterns)

    @model_validator(mode="after")
    def _not_negative(self) -> Self:
        groups: dict[str, Settings] = {"": self, **{f"{name}.": getattr(self, name) for name in GROUPS}}
        for prefix, group in groups.items():
            for name, value in group:
                if isinstance(value, int | float) and value < 0:
                    raise ValueError(f"{prefix}{name} is {value:g}; must be at least 0")
        return self

    @model_validator(mode="after")
    def _overrides_fit(self) -> Self:
        for override in self.overrides:
            try:
                self.changed(override.values)
            except ValidationError as error:
                first = error.errors()[0]
                where = ".".join(str(step) for step in first["loc"])
                raise ValueError(f"the override for queues {override.queues!r}: {where}: {first['msg']}") from None
        return self

    def changed(self, values: Mapping[str, Mapping[str, Any]]) -> Self:
        """A copy with some thresholds of some groups replaced.

        Raises:
            ValueError: a group or threshold does not exist, or a value is out of bounds.
        """
        unknown = sorted(set(values) - set(GROUPS))
        if unknown:
            raise ValueError(f"no group {unknown[0]!r} of thresholds; there are {', '.join(GROUPS)}")
        own: dict[str, Any] = {name: getattr(self, name) for name in type(self).model_fields if name not in values}
        groups = {name: {**getattr(self, name).model_dump(), **values[name]} for name in values}
        return type(self).model_validate({**own, "overrides": (), **groups})

    def for_queue(self, vhost: str, name: str) -> Self:
        """What counts for one queue."""
        found = self
        for override in self.overrides:
            if override.covers(vhost, name):
                found = found.changed(override.values)
        return found

    @classmethod
    def brief(cls) -> Self:
        """For an observation of less than a minute: rates and early findings need shorter times.

        The severity of a finding depends on the same times as in the exporter. A node may have been started before it
        is looked at, and nobody saw whether it ran before.
        """
        return cls(interval=4.0, early=4.0, nodes=NodeThresholds.brief())

    @classmethod
    def as_if_lasting(cls) -> Self:
        """Thresholds for two readings 6 to 10 s apart that assume that what they show has lasted for a long time.

        Used to find out what an early finding would become (`diagnosis/brief.py`).
        """
        groups = {name: cls.model_fields[name].default.as_if_lasting() for name in GROUPS}
        return cls(interval=4.0, early=4.0, **groups)
