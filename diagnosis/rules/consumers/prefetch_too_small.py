"""prefetch-too-small (B04): fast consumers mostly wait for the network because they may hold too few messages.

To the broker this looks like a slow consumer: its prefetch is used up, and it acknowledges less than is published. The
difference is the round trip, which only a client can measure: the rtt probe. A shovel or federation link acknowledges
when its target confirms, so its hold time tells nothing about the network to its source.
"""

from collections.abc import Iterator

from ackscope.findings import Inconclusive, Suppressed
from diagnosis.contract import RuleResult, View
from diagnosis.rules.cluster._shared.link_flow import link_client
from diagnosis.rules.consumers._shared.consumer_capacity import network_bound, saturated_queues, saturation_finding
from diagnosis.rules.consumers._shared.objects import queue_subject

NAME = "prefetch-too-small"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every queue that grows while consumers with a small prefetch work at capacity."""
    unknown: list[str] = []
    for found in saturated_queues(view):
        if all(link_client(link.connection) for link in found.links):
            continue
        by_network = network_bound(view, found)
        if by_network and found.usual is not None:
            subject = queue_subject(found.queue)
            yield Suppressed(rule=NAME, subject=subject, reason="usual_backlog", facts=found.usual)
        elif by_network:
            yield saturation_finding(NAME, found, {})
        elif by_network is None and found.usual is None:
            unknown.append(found.queue.name)
    if unknown:
        yield Inconclusive(rule=NAME, reason="no_round_trip", facts={"queues": unknown})
