"""The layers of a confirm, as the exporter shows them: a target each, whatever node its queues are placed on. Pure."""

from collections.abc import Sequence
from dataclasses import replace

from ackscope.records import ProbeOutcome
from probes.layers import Layer, decompose

_NO_QUEUE = "network+channel"


def confirm_layers(outcomes: Sequence[ProbeOutcome]) -> list[Layer]:
    """The layers of each target of one cluster; `node` is the one that the target names, "" where it names none.

    Two queues on two nodes differ by more than a layer: where they are so placed, their differences are withheld.
    """
    targets: dict[str, list[ProbeOutcome]] = {}
    for outcome in outcomes:
        targets.setdefault(target_node(outcome), []).append(outcome)
    return [layer for node, mine in targets.items() for layer in _of_target(node, mine)]


def target_node(outcome: ProbeOutcome) -> str:
    """The node that the stream's target names; its queue may have a leader elsewhere."""
    if not outcome.queue:
        return outcome.node
    return outcome.queue.partition(f".{outcome.probe}.{outcome.stream}@")[2]


def _of_target(node: str, outcomes: Sequence[ProbeOutcome]) -> list[Layer]:
    found = decompose([replace(outcome, node=node) for outcome in outcomes])
    places = {outcome.node for outcome in outcomes if outcome.probe == "confirm" and outcome.queue and outcome.node}
    if len(places) < 2:
        return found
    because = f"its queues are on several nodes ({', '.join(sorted(places))}), which differ by more than a layer"
    return [
        layer if layer.name == _NO_QUEUE or layer.seconds is None else replace(layer, seconds=None, because=because)
        for layer in found
    ]
