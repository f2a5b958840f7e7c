"""The paths that the exporter serves."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus

from ackscope.baselines import Baselines
from ackscope.clock import Clock
from ackscope.errors import UsageError
from ackscope.snapshot import FAMILIES, Snapshot
from diagnosis.thresholds import Thresholds
from exporter.api import documents
from exporter.api.bundle import BUNDLE_TYPE, DiagnosisBundle, pack_bundle
from exporter.api.columns import LISTS, columns
from exporter.api.query_params import parse_names
from exporter.api.runbooks import runbook_page, runbooks
from exporter.api.vitals import vitals
from exporter.exposition.live.process import ProbeProcessStatus
from exporter.exposition.page_cache import PageCache
from exporter.runtime.reloader import ReloadResult
from exporter.runtime.state import ClusterState, StateStore
from exporter.web.http import JSON, Request, Response, Route

_States = dict[str, ClusterState]


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteContext:
    """What the paths answer from.

    Attributes:
        state: what is known.
        exposition: the text of `/metrics`.
        status: how the probe process does; None where there is none.
        probe_page: runs a probe, or reads a broker, when it is asked.
        reload: reads the configuration again.
        clock: for ages.
        thresholds: what diagnosis judges by at this moment.
        usual: a cluster's name -> what is usual in it now.
    """

    state: StateStore
    exposition: PageCache
    status: Callable[[], ProbeProcessStatus | None]
    probe_page: Callable[[Request], Response]
    reload: Callable[[], ReloadResult]
    clock: Clock
    thresholds: Callable[[], Thresholds] = Thresholds
    usual: Callable[[str], Baselines | None] = lambda _: None


def make_routes(parts: RouteContext) -> dict[str, Route]:
    """The table of paths, all but `/probe` answered from memory."""
    clock = parts.clock
    # Of a large broker one takes a second or more of this process: not several side by side.
    packing = threading.Lock()

    def document(make: Callable[[_States, Request], documents.Document]) -> Callable[[Request], Response]:
        def answer(request: Request) -> Response:
            states = parts.state.clusters()
            try:
                names = parse_names("cluster", request.query.get("cluster"), states)
                return Response(documents.as_json(make({name: states[name] for name in names}, request)), JSON)
            except UsageError as error:
                return Response(f"{error}\n".encode(), status=HTTPStatus.BAD_REQUEST)

        return answer

    return {
        "/metrics": Route("metrics for Prometheus", parts.exposition.answer),
        "/api/v1/findings": Route(
            "what is wrong, why, and what to do (JSON); cluster=NAME for one of several",
            document(lambda states, _: documents.findings(states, clock.now())),
        ),
        "/api/v1/probes": Route(
            "what the probes live through (JSON); cluster=NAME",
            document(lambda states, _: documents.probes(states, parts.status(), clock.now())),
        ),
        "/api/v1/vitals": Route(
            "what goes through each cluster, against what is usual, and lines of what findings are about (JSON); "
            "cluster=NAME",
            document(lambda states, _: vitals(states, clock.now(), parts.usual, parts.thresholds())),
        ),
        "/api/v1/snapshot": Route(
            "what the brokers say of themselves (JSON); cluster=NAME, families=queues,nodes for a part of it",
            document(lambda states, request: documents.snapshots(states, clock.now(), _families(request))),
        ),
        "/api/v1/columns": Route(
            "one list of one cluster as columns (JSON): cluster=NAME&list=queues&columns=vhost,name,messages",
            lambda request: _columns(parts, request),
        ),
        "/api/v1/bundle": Route(
            "all that diagnosis knows of one cluster, to keep or hand on: cluster=NAME; "
            "judge it with ackscope diagnose --bundle FILE",
            lambda request: _bundle(parts, request, packing),
        ),
        "/runbook": Route(
            "what a finding means, and what to do: rule=NAME; the list of all without one",
            partial(runbook_page, runbooks()),
        ),
        "/probe": Route(
            "one probe now: probe=NAME&target=CLUSTER, debug=true for its report and log; "
            "or one reading of a broker: module=NAME&target=HOST:PORT",
            parts.probe_page,
        ),
        "/-/healthy": Route("200 while the exporter lives", lambda _: Response(b"alive\n")),
        "/-/reload": Route(
            "POST: read the configuration again; says what came of it", lambda _: _reload(parts), ("POST",)
        ),
        "/-/ready": Route("200 once every cluster was polled, well or not", lambda _: ready(parts.state)),
    }


def ready(state: StateStore) -> Response:
    """Whether every cluster has an answer, good or bad."""
    waiting = _waiting(state)
    if waiting:
        text = f"waiting for the first answer of: {', '.join(waiting)}\n"
        return Response(text.encode(), status=HTTPStatus.SERVICE_UNAVAILABLE)
    return Response(b"ready\n")


def is_ready(state: StateStore) -> bool:
    """The same in a word."""
    return not _waiting(state)


def _reload(parts: RouteContext) -> Response:
    done = parts.reload()
    status = HTTPStatus.OK if done.ok else HTTPStatus.INTERNAL_SERVER_ERROR
    return Response(f"{done.line}\n".encode(), status=status)


def _one(states: _States, request: Request) -> str:
    """The cluster that is asked for, where exactly one must be.

    Raises:
        UsageError: it is not known, or several are meant.
    """
    names = parse_names("cluster", request.query.get("cluster"), states)
    if len(names) != 1:
        raise UsageError(f"cluster: name one of {', '.join(states)}")
    return names[0]


def _columns(parts: RouteContext, request: Request) -> Response:
    states = parts.state.clusters()
    try:
        name = _one(states, request)
        (listed, *chunks) = parse_names("list", request.query.get("list"), LISTS)
        if chunks:
            raise UsageError(f"list: name one of {', '.join(LISTS)}")  # noqa: TRY301  one place answers for all
        requested = request.query.get("columns")
        return Response(documents.as_json(columns(states[name].window, listed, requested, parts.clock.now())), JSON)
    except UsageError as error:
        return _text(HTTPStatus.BAD_REQUEST, str(error))


def _bundle(parts: RouteContext, request: Request, packing: threading.Lock) -> Response:
    """The window of one cluster as a file; answered from memory, packed when it is asked for."""
    states = parts.state.clusters()
    try:
        name = _one(states, request)
    except UsageError as error:
        return _text(HTTPStatus.BAD_REQUEST, str(error))
    known = states[name]
    if known.snapshot is None:
        return _text(HTTPStatus.SERVICE_UNAVAILABLE, "nothing was read of this cluster yet; ask again in some seconds")
    outcomes, now = tuple(known.latest_outcomes()), parts.clock.now()
    bundle = DiagnosisBundle(
        window=known.window,
        outcomes=outcomes,
        now=now,
        thresholds=parts.thresholds(),
        baselines=parts.usual(name),
    )
    file = f"{name}-{now.iso().replace(':', '')}.ackscope"
    quoted = "".join(letter if letter.isalnum() or letter in "-._" else "_" for letter in file)
    with packing:
        content = pack_bundle(bundle)
    return Response(content, BUNDLE_TYPE, headers=(("Content-Disposition", f'attachment; filename="{quoted}"'),))


def _text(status: HTTPStatus, line: str) -> Response:
    return Response(f"{line}\n".encode(), status=status)


def _waiting(state: StateStore) -> list[str]:
    return [name for name, known in state.clusters().items() if not _answered(known.snapshot)]


def _families(request: Request) -> tuple[str, ...]:
    return parse_names("families", request.query.get("families"), FAMILIES)


def _answered(snapshot: Snapshot | None) -> bool:
    parts = snapshot.parts.values() if snapshot else ()
    return any(part.at is not None or part.error is not None for part in parts)
