"""Incidents to plant in a simulated history: kind, time and object, and the ground truth."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from bench.pipeline.cluster import ClusterShape, Ints

CONSUMER_STOPS, CONSUMER_SLOWS, PUBLISHER_BURST = "consumer-stops", "consumer-slows", "publisher-burst"
REQUEUE_LOOP, DISK_SLOWS, NETWORK_SLOWS = "requeue-loop", "disk-slows", "network-slows"
MEMORY_ALARM, NODE_DIES, PREFETCH_TOO_SMALL = "memory-alarm", "node-dies", "prefetch-too-small"
DEPLOY_HALVES, BACKLOG_LEAK, DEAD_LETTERS = "deploy-halves", "backlog-leak", "dead-letters"

# Every kind -> minimum and maximum duration in minutes.
LENGTHS = {
    CONSUMER_STOPS: (45, 180),
    CONSUMER_SLOWS: (60, 240),
    PUBLISHER_BURST: (45, 180),
    REQUEUE_LOOP: (60, 240),
    DISK_SLOWS: (45, 240),
    NETWORK_SLOWS: (45, 240),
    MEMORY_ALARM: (45, 120),
    NODE_DIES: (45, 180),
    PREFETCH_TOO_SMALL: (90, 300),
    DEPLOY_HALVES: (120, 360),
    BACKLOG_LEAK: (240, 720),
    DEAD_LETTERS: (90, 360),
}

FED, CHAINED, LETTERED = {PUBLISHER_BURST}, {CONSUMER_STOPS, CONSUMER_SLOWS, DEPLOY_HALVES}, {DEAD_LETTERS}
# Kinds whose cause is not a queue.
OF_ALL = {DISK_SLOWS, NETWORK_SLOWS, MEMORY_ALARM, NODE_DIES}

# Share of the history without incidents, so that baselines can be learned.
LEAD = 0.3

FIRST_MEASURE = {
    CONSUMER_STOPS: "acked",
    CONSUMER_SLOWS: "acked",
    PUBLISHER_BURST: "published",
    REQUEUE_LOOP: "redelivered",
    DISK_SLOWS: "confirm_p50",
    NETWORK_SLOWS: "confirm_p50",
    MEMORY_ALARM: "mem_used",
    NODE_DIES: "down",
    PREFETCH_TOO_SMALL: "acked",
    DEPLOY_HALVES: "acked",
    BACKLOG_LEAK: "ready",
    DEAD_LETTERS: "redelivered",
}


@dataclass(frozen=True, slots=True)
class Planned:
    """A planned incident; minutes since the start of the history.

    Attributes:
        queue: index of the affected queue; -1 for incidents of a node or the cluster.
        node: index of the affected node; -1 for others.
        strength: 0 to 1, within the range of its kind.
    """

    kind: str
    began: int
    ended: int
    queue: int
    node: int
    strength: float


@dataclass(frozen=True, slots=True)
class AffectedObject:
    """An object, and the measure that changed."""

    kind: str
    vhost: str
    name: str
    measure: str


@dataclass(slots=True)
class Incident:
    """The ground truth of one incident.

    Attributes:
        began, ended: of the cause, ISO 8601 UTC, whole minutes.
        settled: when its backlog was drained; "" if not within the history.
        slope: it grows gradually, so that no minute of it is a step.
        causes: the object where it began; several if they are equivalent (the streams that wait for a disk).
        consequences: changes of other objects, at the same time or minutes later.
        everywhere: any object of the cluster may have been affected.
    """

    kind: str
    cluster: str
    began: str
    ended: str
    settled: str
    slope: bool
    everywhere: bool
    causes: list[AffectedObject] = field(default_factory=list)
    consequences: list[AffectedObject] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Return it as a dict for the JSON document."""
        return asdict(self)


def plan(dice: np.random.Generator, shape: ClusterShape, minutes: int, incidents: int) -> tuple[Planned, ...]:
    """Incidents one after the other, in random order, each on an object that shows it.

    Each has its own part of the history, and is over after two thirds of it; kinds repeat after all have occurred. Time
    of day and day of week are random.

    Raises:
        ValueError: the history is too short for so many.
    """
    kinds = [kind for _ in range(-(-incidents // len(LENGTHS))) for kind in dice.permutation(list(LENGTHS))]
    start, used = round(minutes * LEAD), set[int]()
    stretch = (minutes - start) // max(incidents, 1)
    if incidents and stretch < 4 * 60:
        raise ValueError(f"{minutes} minutes are too few for {incidents} incidents; they need {incidents * 6} hours")
    found = []
    for number, kind in enumerate(map(str, kinds[:incidents])):
        low, high = LENGTHS[kind]
        length = min(int(dice.integers(low, high + 1)), stretch // 2)
        began = start + number * stretch + int(dice.integers(0, max(1, stretch * 2 // 3 - length)))
        # Not on a queue that is deleted before its backlog may be drained.
        queue = -1 if kind in OF_ALL else _queue(dice, shape, kind, used, began + 2 * length)
        used.add(queue)
        node = int(dice.integers(0, len(shape.node_names))) if kind in {MEMORY_ALARM, NODE_DIES} else -1
        found.append(Planned(kind, began, began + length, queue, node, float(dice.random())))
    return tuple(found)


def _queue(dice: np.random.Generator, shape: ClusterShape, kind: str, used: set[int], until: int) -> int:
    """Return a queue with some traffic that exists until `until`, and fits the kind if possible."""
    steady = (shape.born < 0) & (shape.removed > until) & (shape.consumers > 0) & (shape.nightly < 0)
    fed = np.isin(np.arange(len(shape)), shape.feeds[shape.feeds >= 0])
    own = steady & (shape.rate >= 0.5) & (shape.rate <= 100)
    candidates = own & ~fed
    if kind in CHAINED:
        candidates = own & (shape.feeds >= 0)
    elif kind in LETTERED:
        candidates = own & (shape.dead >= 0)
    free = np.array(sorted(used), dtype=np.int64)
    for mask in (candidates, own, steady):
        choice: Ints = np.setdiff1d(np.flatnonzero(mask), free)
        if len(choice):
            return int(dice.choice(choice))
    raise ValueError(f"no queue is left for {kind}: there are too few")


def incident(
    planned: Planned, shape: ClusterShape, cluster: str, times: tuple[str, str, str], streams: Sequence[AffectedObject]
) -> Incident:
    """The ground truth of a planned incident.

    Args:
        planned: the plan.
        shape: the cluster.
        cluster: its name.
        times: when it began, ended and was settled, ISO 8601.
        streams: the probe streams that it slows or fails.
    """
    began, ended, settled = times
    slope, everywhere = planned.kind == BACKLOG_LEAK, planned.kind in OF_ALL
    truth = Incident(planned.kind, cluster, began, ended, settled, slope=slope, everywhere=everywhere)
    queue, measure = planned.queue, FIRST_MEASURE[planned.kind]
    if planned.kind in {DISK_SLOWS, NETWORK_SLOWS}:
        truth.causes = list(streams)
    elif planned.node >= 0:
        truth.causes = [AffectedObject("node", "", shape.node_names[planned.node], measure)]
        truth.consequences = list(streams)
    if queue >= 0:
        truth.causes = [_queue_subject(shape, queue, measure)]
        truth.consequences = [_queue_subject(shape, other, "published") for other in shape.chain(queue)]
        if planned.kind == DEAD_LETTERS and shape.dead[queue] >= 0:
            truth.consequences.append(_queue_subject(shape, int(shape.dead[queue]), "ready"))
    return truth


def _queue_subject(shape: ClusterShape, queue: int, measure: str) -> AffectedObject:
    return AffectedObject("queue", shape.vhosts[queue], shape.names[queue], measure)
