"""Finding events of a simulated history: those of incidents, and unrelated ones."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa

from ackscope.tables import FINDING_EVENTS
from bench.pipeline import incident_plan as kinds
from bench.pipeline.cluster import ClusterShape
from bench.pipeline.incident_plan import Planned

# Share of the incidents that diagnosis finds, some minutes late.
FOUND = 0.7

# Unrelated findings per week.
_A_WEEK = 25

_RULES = {
    kinds.CONSUMER_STOPS: "no-consumer",
    kinds.CONSUMER_SLOWS: "slow-consumer",
    kinds.PUBLISHER_BURST: "queue-overload",
    kinds.REQUEUE_LOOP: "requeue-loop",
    kinds.DISK_SLOWS: "slow-disk",
    kinds.NETWORK_SLOWS: "probe-path-slow",
    kinds.MEMORY_ALARM: "memory-alarm",
    kinds.NODE_DIES: "node-down",
    kinds.PREFETCH_TOO_SMALL: "prefetch-too-small",
    kinds.DEPLOY_HALVES: "slow-consumer",
    kinds.BACKLOG_LEAK: "queue-overload",
    kinds.DEAD_LETTERS: "dlq-filling",
}
_OTHERS = ("connection-churn", "publisher-silent", "stale-head", "consumer-flapping", "polling-consumer")


def events(
    dice: np.random.Generator,
    shape: ClusterShape,
    plan: Sequence[Planned],
    settled: Mapping[Planned, int],
    start: int,
    total: int,
) -> pa.Table:
    """Return rows of `finding_events`, in order of time."""
    rows = []
    for planned in plan:
        if dice.random() < FOUND:
            began = planned.began + int(dice.integers(1, 7))
            ended = settled.get(planned, total) + int(dice.integers(1, 4))
            rows += _pair(shape, planned, _RULES[planned.kind], "critical", start, began, ended)
    for _ in range(dice.poisson(_A_WEEK * total / 10080)):
        began = int(dice.integers(0, total))
        ended = began + int(dice.exponential(90)) + 2
        other = Planned("", began, ended, int(dice.integers(0, len(shape))), -1, 0.0)
        rows += _pair(shape, other, str(dice.choice(_OTHERS)), "warning", start, began, ended)
    rows = [row for row in rows if row["at"] < datetime.fromtimestamp(start + total * 60, UTC)]
    rows.sort(key=lambda row: row["at"])
    schema = pa.schema(
        [("at", pa.timestamp("us", tz="UTC")), *((name, pa.string()) for name in FINDING_EVENTS.names[1:])]
    )
    return pa.Table.from_pylist(rows, schema=schema)


def _pair(
    shape: ClusterShape, planned: Planned, rule: str, severity: str, start: int, began: int, ended: int
) -> list[dict[str, Any]]:
    queue, node = planned.queue, planned.node
    if planned.kind == kinds.DEAD_LETTERS and shape.dead[queue] >= 0:
        queue = int(shape.dead[queue])
    kind, vhost, name = "cluster", "", ""
    if queue >= 0:
        kind, vhost, name = "queue", shape.vhosts[queue], shape.names[queue]
    elif node >= 0:
        kind, name = "node", shape.node_names[node]
    since = datetime.fromtimestamp(start + planned.began * 60, UTC)
    return [
        {
            "at": datetime.fromtimestamp(start + minute * 60, UTC),
            "rule": rule,
            "event": event,
            "severity": severity,
            "severity_before": None,
            "kind": kind,
            "vhost": vhost,
            "name": name,
            "node": None,
            "since": since.isoformat(),
            "summary": f"{rule}: {kind} {name}".strip(),
        }
        for event, minute in (("began", began), ("ended", ended))
    ]
