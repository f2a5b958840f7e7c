"""slow-consumer (B03): consumers hold all they may and acknowledge, but more slowly than messages are published.

By Little's law, counters alone give the time for which consumers hold a message. If it is far above the round trip that
the probe measures, the handler is slow; otherwise see prefetch-too-small.
"""

from collections.abc import Iterator

from ackscope.findings import Suppressed
from diagnosis.contract import RuleResult, View
from diagnosis.rules.consumers._shared.consumer_capacity import network_bound, saturated_queues, saturation_finding
from diagnosis.rules.consumers._shared.mqtt import mqtt_not_counted, slow_finding, slow_sessions
from diagnosis.rules.consumers._shared.objects import queue_subject
from diagnosis.rules.consumers._shared.sessions import unreported
from diagnosis.rules.consumers._shared.stream_readers import lagging_finding, readers_not_listed, worst_readers

NAME = "slow-consumer"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every queue that grows while its consumers work at capacity."""
    yield from unreported(view, NAME)
    yield from readers_not_listed(view, NAME)
    yield from mqtt_not_counted(view, NAME)
    yield from (slow_finding(view, NAME, found) for found in slow_sessions(view))
    yield from (lagging_finding(view, NAME, found) for found in worst_readers(view))
    for found in saturated_queues(view):
        by_network = network_bound(view, found)
        if by_network:
            continue
        if found.usual is not None:
            subject = queue_subject(found.queue)
            yield Suppressed(rule=NAME, subject=subject, reason="usual_backlog", facts=found.usual)
        else:
            facts = {"compared": found.compared, "round_trip_needed": by_network is None, "lag": None, "mqtt": False}
            yield saturation_finding(NAME, found, facts)
