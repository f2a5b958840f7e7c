"""The paths that the exporter serves."""

from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus

from ackscope.clock import Clock
from ackscope.errors import UsageError
from ackscope.snapshot import FAMILIES, Snapshot
from exporter import api
from exporter.asked import chosen
from exporter.exposition import Exposition
from exporter.http import JSON, Answer, Request, Route
from exporter.live.process import ProcessStatus
from exporter.reload import Reloaded
from exporter.state import ClusterState, State

_States = dict[str, ClusterState]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What the paths answer from.

    Attributes:
        state: what is known.
        exposition: the text of `/metrics`.
        status: how the probe process does; None where there is none.
        probe_page: runs a probe, or reads a broker, when it is asked.
        reload: reads the configuration again.
        clock: for ages.
    """

    state: State
    exposition: Exposition
    status: Callable[[], ProcessStatus | None]
    probe_page: Callable[[Request], Answer]
    reload: Callable[[], Reloaded]
    clock: Clock


def make_routes(parts: Parts) -> dict[str, Route]:
    """The table of paths, all but `/probe` answered from memory."""
    clock = parts.clock

    def document(make: Callable[[_States, Request], api.Document]) -> Callable[[Request], Answer]:
        def answer(request: Request) -> Answer:
            states = parts.state.clusters()
            try:
                names = chosen("cluster", request.query.get("cluster"), states)
                return Answer(api.as_json(make({name: states[name] for name in names}, request)), JSON)
            except UsageError as error:
                return Answer(f"{error}\n".encode(), status=HTTPStatus.BAD_REQUEST)

        return answer

    return {
        "/metrics": Route("metrics for Prometheus", parts.exposition.answer),
        "/api/v1/findings": Route(
            "what is wrong, why, and what to do (JSON); cluster=NAME for one of several",
            document(lambda states, _: api.findings(states, clock.now())),
        ),
        "/api/v1/probes": Route(
            "what the probes live through (JSON); cluster=NAME",
            document(lambda states, _: api.probes(states, parts.status(), clock.now())),
        ),
        "/api/v1/snapshot": Route(
            "what the brokers say of themselves (JSON); cluster=NAME, families=queues,nodes for a part of it",
            document(lambda states, request: api.snapshots(states, clock.now(), _families(request))),
        ),
        "/probe": Route(
            "one probe now: probe=NAME&target=CLUSTER, debug=true for its report and log; "
            "or one reading of a broker: module=NAME&target=HOST:PORT",
            parts.probe_page,
        ),
        "/-/healthy": Route("200 while the exporter lives", lambda _: Answer(b"alive\n")),
        "/-/reload": Route(
            "POST: read the configuration again; says what came of it", lambda _: _reload(parts), ("POST",)
        ),
        "/-/ready": Route("200 once every cluster was polled, well or not", lambda _: ready(parts.state)),
    }


def ready(state: State) -> Answer:
    """Whether every cluster has an answer, good or bad."""
    waiting = _waiting(state)
    if waiting:
        text = f"waiting for the first answer of: {', '.join(waiting)}\n"
        return Answer(text.encode(), status=HTTPStatus.SERVICE_UNAVAILABLE)
    return Answer(b"ready\n")


def is_ready(state: State) -> bool:
    """The same in a word."""
    return not _waiting(state)


def _reload(parts: Parts) -> Answer:
    done = parts.reload()
    status = HTTPStatus.OK if done.ok else HTTPStatus.INTERNAL_SERVER_ERROR
    return Answer(f"{done.line}\n".encode(), status=status)


def _waiting(state: State) -> list[str]:
    return [name for name, known in state.clusters().items() if not _answered(known.snapshot)]


def _families(request: Request) -> tuple[str, ...]:
    return chosen("families", request.query.get("families"), FAMILIES)


def _answered(snapshot: Snapshot | None) -> bool:
    parts = snapshot.parts.values() if snapshot else ()
    return any(part.at is not None or part.error is not None for part in parts)
