"""The HTTP routes of the exporter."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus

from ackscope.baselines import Baselines
from ackscope.clock import Clock
from ackscope.errors import UsageError
from ackscope.snapshot import FAMILIES, Snapshot
from diagnosis.text import MANAGEMENT
from diagnosis.thresholds import Thresholds
from exporter.api import documents
from exporter.api.bundle import BUNDLE_TYPE, DiagnosisBundle, pack_bundle
from exporter.api.columns import LISTS, columns
from exporter.api.discovery import discovery_document
from exporter.api.object_series import SERIES_LISTS, object_series, subject_series
from exporter.api.openapi import openapi_page
from exporter.api.query_params import parse_names, unknown_name
from exporter.api.queue_page import queue_document
from exporter.api.runbooks import alert_runbooks, runbook_page, runbooks
from exporter.api.vitals import vitals
from exporter.discovery.kubernetes import DiscoveryStatus
from exporter.exposition.live.process import SupervisedProcess
from exporter.exposition.page_cache import PageCache
from exporter.runtime.reloader import ReloadResult
from exporter.runtime.state import ClusterState, StateStore
from exporter.triage.route import TriageRoute
from exporter.triage.store import TriageStore
from exporter.web.http import JSON, Lane, Request, Response, Route

_States = dict[str, ClusterState]


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteContext:
    """What the routes read from.

    Attributes:
        state: latest state of every cluster.
        exposition: page cache of `/metrics`.
        status: status of the probe process; None if there is none.
        probe_page: handler of `/probe`.
        reload: reloads the configuration.
        clock: tells the time that ages are relative to.
        thresholds: thresholds of diagnosis in force now.
        baselines: cluster name -> baselines of the current hour, None if unknown.
        management: cluster name -> URL of its management API, without credentials, for commands.
        triage: what people say about findings.
        discovery: state of discovery.
    """

    state: StateStore
    exposition: PageCache
    status: Callable[[], SupervisedProcess | None]
    probe_page: Callable[[Request], Response]
    reload: Callable[[], ReloadResult]
    clock: Clock
    thresholds: Callable[[], Thresholds] = Thresholds
    baselines: Callable[[str], Baselines | None] = lambda _: None
    management: Callable[[str], str] = lambda _: MANAGEMENT
    triage: TriageStore = field(default_factory=TriageStore)
    discovery: Callable[[], DiscoveryStatus] = DiscoveryStatus


def make_routes(context: RouteContext) -> dict[str, Route]:
    """The routing table. Every path but `/probe` is answered from memory."""
    clock = context.clock

    def document(make: Callable[[_States, Request], documents.Document]) -> Callable[[Request], Response]:
        def answer(request: Request) -> Response:
            states = context.state.clusters()
            try:
                names = parse_names("cluster", request.query.get("cluster"), states)
                return Response(documents.as_json(make({name: states[name] for name in names}, request)), JSON)
            except UsageError as error:
                return Response(f"{error}\n".encode(), status=HTTPStatus.BAD_REQUEST)

        return answer

    routes: dict[str, Route] = {
        "/metrics": Route(
            "metrics for Prometheus",
            context.exposition.respond,
            lane=Lane.SCRAPE,
            at_once=context.exposition.answers_at_once,
        ),
        "/api/v1/findings": Route(
            "findings: what is wrong, why, and what to do (JSON); cluster=NAME limits it to one cluster",
            document(lambda states, _: documents.findings(states, clock.now(), context.management, context.triage)),
        ),
        "/api/v1/triage": Route(
            "what people say about findings (JSON); cluster=NAME. POST a JSON document to acknowledge, own or mute one",
            TriageRoute(context.triage, context.state, clock).respond,
            ("GET", "POST"),
        ),
        "/api/v1/probes": Route(
            "probe results: what clients experience (JSON); cluster=NAME",
            document(lambda states, _: documents.probes(states, context.status(), clock.now())),
        ),
        "/api/v1/vitals": Route(
            "throughput and backlog of each cluster with baselines, and sparklines of the subjects of findings "
            "(JSON); cluster=NAME",
            document(lambda states, _: vitals(states, clock.now(), context.baselines, context.thresholds())),
        ),
        "/api/v1/series": Route(
            "recent series of one subject (JSON): cluster=NAME&kind=queue&vhost=/&name=orders; kinds: queue, "
            "channel, node, cluster",
            lambda request: _series(context, request),
        ),
        "/api/v1/snapshot": Route(
            "latest snapshot of each broker (JSON); cluster=NAME, families=queues,nodes limits it to some endpoints",
            document(lambda states, request: documents.snapshots(states, clock.now(), _families(request))),
        ),
        "/api/v1/columns": Route(
            "one object list of one cluster as columns (JSON): cluster=NAME&list=queues&columns=vhost,name,messages",
            lambda request: _columns(context, request),
        ),
        "/api/v1/trends": Route(
            'recent series of some objects (JSON): cluster=NAME&list=queues&objects=[["VHOST","NAME"],...]; '
            "list=channels or nodes takes names; lines=ready,ack limits the series",
            lambda request: _of_cluster(context, request, _trends),
        ),
        "/api/v1/queue": Route(
            "one queue with its recent series, baselines and ledger (JSON): cluster=NAME&vhost=VHOST&queue=NAME",
            lambda request: _of_cluster(context, request, _queue),
        ),
        "/api/v1/bundle": Route(
            "diagnosis bundle of one cluster to download: cluster=NAME; replay it with ackscope diagnose --bundle FILE",
            lambda request: _bundle(context, request),
            lane=Lane.EXCLUSIVE,
        ),
        "/api/v1/discovery": Route(
            "what was discovered, and why some of it is not watched (JSON)",
            lambda _: Response(documents.as_json(discovery_document(context.discovery(), clock.now())), JSON),
        ),
        "/api/v1/openapi.json": Route(
            "this API as an OpenAPI document (JSON)", openapi_page(lambda: routes, documents.as_json)
        ),
        "/runbook": Route(
            "runbook of a rule: rule=NAME, or of an alert: alert=NAME; lists all without it",
            partial(runbook_page, runbooks(), alert_runbooks()),
        ),
        "/probe": Route(
            "run one probe now: probe=NAME&target=CLUSTER, debug=true adds report and log; or read one broker: "
            "module=NAME&target=HOST:PORT",
            context.probe_page,
            lane=Lane.OUTWARD,
            acts=True,
        ),
        "/-/healthy": Route("200 while the exporter runs", lambda _: Response(b"alive\n"), lane=Lane.NOW),
        "/-/reload": Route(
            "POST: reload the configuration; returns the result", lambda _: _reload(context), ("POST",), Lane.EXCLUSIVE
        ),
        "/-/ready": Route(
            "200 once every cluster has been polled, successfully or not",
            lambda _: ready(context.state),
            lane=Lane.NOW,
        ),
    }
    return routes


def ready(state: StateStore) -> Response:
    """200 if every cluster has been polled at least once, successfully or not; else 503."""
    waiting = _waiting(state)
    if waiting:
        text = f"waiting for the first poll of: {', '.join(waiting)}\n"
        return Response(text.encode(), status=HTTPStatus.SERVICE_UNAVAILABLE)
    return Response(b"ready\n")


def is_ready(state: StateStore) -> bool:
    """Whether every cluster has been polled at least once."""
    return not _waiting(state)


def _reload(context: RouteContext) -> Response:
    done = context.reload()
    status = HTTPStatus.OK if done.ok else HTTPStatus.INTERNAL_SERVER_ERROR
    return Response(f"{done.line}\n".encode(), status=status)


def _one(states: _States, request: Request) -> str:
    """Return the name of the requested cluster.

    Raises:
        UsageError: the name is unknown, or the request does not mean exactly one cluster.
    """
    names = parse_names("cluster", request.query.get("cluster"), states)
    if len(names) != 1:
        raise UsageError(f"cluster: choose one of {', '.join(states)}")
    return names[0]


def _columns(context: RouteContext, request: Request) -> Response:
    states = context.state.clusters()
    try:
        name = _one(states, request)
        (listed, *chunks) = parse_names("list", request.query.get("list"), LISTS)
        if chunks:
            raise UsageError(f"list: choose one of {', '.join(LISTS)}")  # noqa: TRY301  one place answers for all
        requested = request.query.get("columns")
        known, now = states[name], context.clock.now()
        return Response(documents.as_json(columns(known.window, listed, requested, now, known.queue_ages)), JSON)
    except UsageError as error:
        return _text(HTTPStatus.BAD_REQUEST, str(error))


def _series(context: RouteContext, request: Request) -> Response:
    states, now = context.state.clusters(), context.clock.now()
    try:
        window = states[_one(states, request)].window
        kind, name = (request.query.get(key) for key in ("kind", "name"))
        if not kind or name is None:
            raise UsageError("kind and name of the subject are missing")  # noqa: TRY301  one place answers for all
        lines = subject_series(window, now, kind, request.query.get("vhost"), name)
        return Response(documents.as_json({"now": now.iso(), "lines": lines}), JSON)
    except UsageError as error:
        return _text(HTTPStatus.BAD_REQUEST, str(error))


def _of_cluster(
    context: RouteContext, request: Request, make: Callable[[RouteContext, ClusterState, Request], documents.Document]
) -> Response:
    """A document about one cluster."""
    states = context.state.clusters()
    try:
        return Response(documents.as_json(make(context, states[_one(states, request)], request)), JSON)
    except UsageError as error:
        return _text(HTTPStatus.BAD_REQUEST, str(error))


def _trends(context: RouteContext, known: ClusterState, request: Request) -> documents.Document:
    listed = request.query.get("list", "")
    if listed not in SERIES_LISTS:
        raise UsageError(f"list={unknown_name(listed, SERIES_LISTS)}")
    query = request.query
    return object_series(known.window, listed, query.get("objects"), context.clock.now(), query.get("lines"))


def _queue(context: RouteContext, known: ClusterState, request: Request) -> documents.Document:
    name = request.query.get("queue")
    if not name:
        raise UsageError("queue: give the name of a queue")
    cluster, vhost = known.window.cluster, request.query.get("vhost", "/")
    bands, now = context.baselines(cluster), context.clock.now()
    return queue_document(known.window, vhost, name, now, bands, context.thresholds())


def _bundle(context: RouteContext, request: Request) -> Response:
    """The bundle of one cluster, packed from memory on request."""
    states = context.state.clusters()
    try:
        name = _one(states, request)
    except UsageError as error:
        return _text(HTTPStatus.BAD_REQUEST, str(error))
    known = states[name]
    if known.snapshot is None:
        return _text(HTTPStatus.SERVICE_UNAVAILABLE, "this cluster has not been polled yet; retry in a few seconds")
    now = context.clock.now()
    outcomes = tuple(known.latest_outcomes(now))
    bundle = DiagnosisBundle(
        window=known.window,
        outcomes=outcomes,
        now=now,
        thresholds=context.thresholds(),
        baselines=context.baselines(name),
    )
    file = f"{name}-{now.iso().replace(':', '')}.ackscope"
    quoted = "".join(letter if letter.isalnum() or letter in "-._" else "_" for letter in file)
    return Response(
        pack_bundle(bundle), BUNDLE_TYPE, headers=(("Content-Disposition", f'attachment; filename="{quoted}"'),)
    )


def _text(status: HTTPStatus, line: str) -> Response:
    return Response(f"{line}\n".encode(), status=status)


def _waiting(state: StateStore) -> list[str]:
    return [name for name, known in state.clusters().items() if not _answered(known.snapshot)]


def _families(request: Request) -> tuple[str, ...]:
    return parse_names("families", request.query.get("families"), FAMILIES)


def _answered(snapshot: Snapshot | None) -> bool:
    parts = snapshot.parts.values() if snapshot else ()
    return any(part.at is not None or part.error is not None for part in parts)
