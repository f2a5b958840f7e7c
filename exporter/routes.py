"""The paths that the exporter serves."""

from collections.abc import Callable
from http import HTTPStatus

from ackscope.clock import Clock
from ackscope.snapshot import Snapshot
from exporter import api
from exporter.exposition import Exposition
from exporter.http import JSON, Answer, Request, Route
from exporter.live.process import ProcessStatus
from exporter.probe_page import ProbePage
from exporter.render import CONTENT_TYPE
from exporter.state import State


def make_routes(
    state: State,
    exposition: Exposition,
    status: Callable[[], ProcessStatus | None],
    probe_page: ProbePage,
    clock: Clock,
) -> dict[str, Route]:
    """The table of paths, all but one answered from memory.

    Args:
        state: what is known.
        exposition: the text of `/metrics`.
        status: how the probe process does; None where there is none.
        probe_page: runs a probe when it is asked.
        clock: for ages.
    """

    def document(make: Callable[[], api.Document]) -> Callable[[Request], Answer]:
        return lambda _: Answer(api.as_json(make()), JSON)

    return {
        "/metrics": Route("metrics for Prometheus", lambda _: Answer(exposition.text().encode(), CONTENT_TYPE)),
        "/api/v1/findings": Route(
            "what is wrong, why, and what to do (JSON)",
            document(lambda: api.findings(state.clusters(), clock.now())),
        ),
        "/api/v1/probes": Route(
            "what the probes live through (JSON)",
            document(lambda: api.probes(state.clusters(), status(), clock.now())),
        ),
        "/api/v1/snapshot": Route(
            "what the brokers say of themselves (JSON)",
            document(lambda: api.snapshots(state.clusters(), clock.now())),
        ),
        "/probe": Route(
            "one probe now: probe=NAME&target=CLUSTER; debug=true for its report and log", probe_page.answer
        ),
        "/-/healthy": Route("200 while the exporter lives", lambda _: Answer(b"alive\n")),
        "/-/ready": Route("200 once every cluster was polled, well or not", lambda _: ready(state)),
    }


def ready(state: State) -> Answer:
    """Whether every cluster has an answer, good or bad."""
    waiting = [name for name, known in state.clusters().items() if not _answered(known.snapshot)]
    if waiting:
        text = f"waiting for the first answer of: {', '.join(waiting)}\n"
        return Answer(text.encode(), status=HTTPStatus.SERVICE_UNAVAILABLE)
    return Answer(b"ready\n")


def _answered(snapshot: Snapshot | None) -> bool:
    parts = snapshot.parts.values() if snapshot else ()
    return any(part.at is not None or part.error is not None for part in parts)
