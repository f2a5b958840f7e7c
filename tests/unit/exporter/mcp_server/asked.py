"""An exporter that serves ten faults, each as a cluster of its own, over real HTTP."""

from contextlib import contextmanager
from dataclasses import replace

from diagnosis.engine import diagnose
from diagnosis.thresholds import Thresholds
from exporter.routes import RouteContext, make_routes
from exporter.runtime.state import StateStore
from exporter.web.http import Response
from exporter.web.server import HttpServer
from tests.unit.diagnosis.clients.test_channel_leak import leaking
from tests.unit.diagnosis.clients.test_connection_leak import accumulating
from tests.unit.diagnosis.clients.test_connection_limit_reached import limited
from tests.unit.diagnosis.clients.test_heartbeat_loss import silent
from tests.unit.diagnosis.cluster.test_node_down import dies
from tests.unit.diagnosis.cluster.test_quorum_queue_minority import loses
from tests.unit.diagnosis.consumers.test_zombie_connection import zombie
from tests.unit.diagnosis.nodes.machines import frame as machine
from tests.unit.diagnosis.nodes.test_memory_near_limit import GB
from tests.unit.diagnosis.pictures import film, stuck
from tests.unit.diagnosis.queues.films import flowing
from tests.unit.diagnosis.queues.films import frame as queues
from tests.unit.diagnosis.queues.test_maxlen_drop_head import dropping
from tests.unit.exporter.made import SetClock

DEAD_LETTERS = {"acked": 4.0, "rejected": 4.0, "arguments": {"x-dead-letter-exchange": "gone"}}
TEN = {
    "stuck-consumer": (stuck, 90),
    "dlx-missing": (lambda t: queues(flowing(t, **DEAD_LETTERS)), 65),
    "maxlen-drop-head": (lambda t: queues(dropping(t)), 75),
    "connection-leak": (accumulating, 30),
    "channel-leak": (leaking, 30),
    "connection-limit-reached": (lambda t: limited(t, value=0, connections=0, refused=1.0), 20),
    "heartbeat-loss": (silent, 35),
    "zombie-connection": (zombie, 200),
    "memory-near-limit": (machine(mem_used=9 * GB), 320),
    "node-down": (dies(), 90),
    "quorum-queue-minority": (loses(), 30),
}
"""Rule -> what the broker shows, and for how many seconds."""


class _NoMetrics:
    answers_at_once = None

    @staticmethod
    def respond(_):
        return Response(b"")


def serve(states, clock, web=None, **parts):
    """An HTTP server with the routes of an exporter."""
    context = RouteContext(
        state=states,
        exposition=_NoMetrics(),
        status=lambda: None,
        probe_page=lambda _: Response(b""),
        reload=lambda: None,
        clock=clock,
        management=lambda _: "http://10.0.0.1:15672",
        **parts,
    )
    server = HttpServer(("127.0.0.1", 0), make_routes(context), web)
    server.start()
    return server


def state_of(faults):
    """The state of an exporter whose clusters have these faults."""
    states = StateStore(faults)
    for name, (frame, until) in faults.items():
        window = film(frame, until=until)
        for snapshot in window.snapshots:
            states.put_snapshot(_named(snapshot, name))
        now = window.latest.taken
        verdict = diagnose(states.clusters()[name].window, (), now, Thresholds())
        states.put_verdict(verdict, 0.1, now)
    return states


def _named(snapshot, cluster):
    return replace(snapshot, cluster=cluster)


@contextmanager
def serving_faults(web=None, faults=None, **parts):
    """The address of an exporter with these faults."""
    server = serve(state_of(TEN if faults is None else faults), SetClock(), web, **parts)
    try:
        yield server.url
    finally:
        server.stop()
