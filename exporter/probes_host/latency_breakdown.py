"""Latency breakdown of confirms per probe target, wherever its queues are located. Pure."""

from collections.abc import Sequence
from dataclasses import replace

from ackscope.records import ProbeOutcome
from probes.latency_layers import LatencyLayer, decompose

_NO_QUEUE = "network+channel"


def confirm_layers(outcomes: Sequence[ProbeOutcome]) -> list[LatencyLayer]:
    """Return the layers of each target of one cluster. `node` is the node that the target names, "" for none.

    If the queues of a target are on different nodes, their differences are withheld: more than one layer differs.
    """
    targets: dict[str, list[ProbeOutcome]] = {}
    for outcome in outcomes:
        targets.setdefault(target_node(outcome), []).append(outcome)
    return [layer for node, mine in targets.items() for layer in _of_target(node, mine)]


def target_node(outcome: ProbeOutcome) -> str:
    """Return the node that the target of a stream names, "" for none. The leader of its queue may be elsewhere."""
    if not outcome.queue:
        return outcome.node
    return outcome.queue.partition(f".{outcome.probe}.{outcome.stream}@")[2]


def _of_target(node: str, outcomes: Sequence[ProbeOutcome]) -> list[LatencyLayer]:
    found = decompose([replace(outcome, node=node) for outcome in outcomes])
    places = {outcome.node for outcome in outcomes if outcome.probe == "confirm" and outcome.queue and outcome.node}
    if len(places) < 2:
        return found
    because = f"its queues are on several nodes ({', '.join(sorted(places))}), so more than one layer differs"
    return [
        layer if layer.name == _NO_QUEUE or layer.seconds is None else replace(layer, seconds=None, because=because)
        for layer in found
    ]
