"""`/api/v1/openapi.json`: the HTTP API, generated from the routes and from the types of their documents.

The types here describe what the functions of `exporter.api` make; `tests/unit/exporter/api/test_openapi.py` compares
them with real responses. Objects may get further fields in later versions.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, TypeAdapter
from typing_extensions import TypedDict

from ackscope import __version__
from ackscope.records import ProbeOutcome
from ackscope.reports import EndedReport, FindingReport, InconclusiveReport, SuppressedReport
from ackscope.snapshot import FAMILIES
from ackscope.triage import Triage
from exporter.api.bundle import BUNDLE_TYPE
from exporter.api.columns import LISTS
from exporter.api.object_series import SERIES_LISTS
from exporter.triage.route import TriageRequest
from exporter.web.http import JSON, TEXT, Request, Response, Routes
from probes.latency_layers import LatencyLayer

Document = dict[str, Any]
Point = tuple[float, float | None]
"""Seconds ago (negative numbers are the past), and the value."""


class FindingsEntry(TypedDict):
    """The findings of one cluster."""

    cluster: str
    broker: str | None
    age_seconds: float | None
    overdue_seconds: float | None
    findings: list[FindingReport]
    cannot_tell: list[InconclusiveReport]
    set_aside: list[SuppressedReport]
    checked: list[str]
    ended: list[EndedReport]


class FindingsDocument(TypedDict):
    """Findings of all clusters."""

    now: str
    clusters: list[FindingsEntry]
    triage_writable: bool


class ProbeProcessEntry(TypedDict):
    """State of the probe process."""

    up: bool
    restarts: int
    age_seconds: float | None


class ProbesEntry(TypedDict):
    """Probe results of one cluster."""

    cluster: str
    process: ProbeProcessEntry
    probes: list[ProbeOutcome]
    layers: list[LatencyLayer]


class ProbesDocument(TypedDict):
    """Probe results of all clusters."""

    now: str
    clusters: list[ProbesEntry]


class SeriesLine(TypedDict):
    """One recent series."""

    name: str
    unit: str
    value: float | None
    line: list[Point]


class SeriesDocument(TypedDict):
    """Series of one subject."""

    now: str
    lines: list[SeriesLine]


class VitalSign(SeriesLine):
    """A total of a cluster with its baseline."""

    usual: dict[str, Any] | None
    because: str | None


class SubjectLines(TypedDict):
    """Series of the subject of a finding."""

    kind: str
    vhost: str | None
    name: str
    lines: list[SeriesLine]


class TrendEntry(TypedDict):
    """Messages of a queue some minutes ago and now."""

    vhost: str
    name: str
    before: int
    now: int
    seconds: float


class VitalsEntry(TypedDict):
    """Throughput and backlog of one cluster."""

    cluster: str
    age_seconds: float | None
    signs: list[VitalSign]
    subjects: list[SubjectLines]
    trends: list[TrendEntry]


class VitalsDocument(TypedDict):
    """Throughput and backlog of all clusters."""

    now: str
    clusters: list[VitalsEntry]


class SnapshotEntry(TypedDict):
    """The latest snapshot of one broker; it also has an entry for each requested endpoint family."""

    cluster: str
    taken: dict[str, float]
    ages: dict[str, float | None]


class SnapshotsDocument(TypedDict):
    """The latest snapshot of every broker."""

    now: str
    clusters: list[SnapshotEntry]


Values = list[Any]


class ColumnsDocument(TypedDict):
    """One list of objects by columns."""

    now: str
    cluster: str
    list: str
    age_seconds: float | None
    error: str | None
    rows: int | None
    columns: dict[str, Values]


class ObjectLines(TypedDict):
    """Series of one object."""

    vhost: str | None
    name: str
    lines: list[SeriesLine]


AllLines = list[ObjectLines]


class TrendsDocument(TypedDict):
    """Series of some objects."""

    now: str
    cluster: str
    list: str
    objects: AllLines


class QueueSetting(TypedDict):
    """A setting of a queue; `by` is `argument` or `policy`."""

    name: str
    value: Any
    by: str


class QueueSettings(TypedDict):
    """The policies of a queue, and what is set by them or by its arguments."""

    policy: str | None
    operator_policy: str | None
    set: list[QueueSetting]


class QueueDocument(TypedDict):
    """One queue."""

    now: str
    cluster: str
    vhost: str
    name: str
    known: bool
    settings: QueueSettings | None
    lines: list[SeriesLine]
    usual: dict[str, dict[str, Any]]
    ledger: dict[str, Any]


class TriageSubject(TypedDict):
    """The subject of a finding with triage."""

    kind: str
    vhost: str | None
    name: str


class TriageEntry(TypedDict):
    """Triage of one finding; also the fields of `Triage`."""

    rule: str
    subject: TriageSubject
    present: bool
    acknowledged_at: str | None
    owner: str
    muted_until: str | None
    muted: bool


class ClusterTriage(TypedDict):
    """Triage of one cluster."""

    cluster: str
    triage: list[TriageEntry]


class TriageDocument(TypedDict):
    """Triage of all clusters."""

    now: str
    writable: bool
    clusters: list[ClusterTriage]


class TriageResult(TypedDict):
    """Triage of one finding after a change."""

    now: str
    triage: Triage


class DiscoveredEntry(TypedDict):
    """One object that was discovered."""

    namespace: str
    name: str
    cluster: str
    watched: bool
    reason: str | None
    management: str | None


class DiscoveryDocument(TypedDict):
    """State of discovery."""

    now: str
    enabled: bool
    complete: bool
    error: str | None
    age_seconds: float | None
    objects: list[DiscoveredEntry]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryParameter:
    """A query parameter.

    Attributes:
        choices: its values, if they are limited.
    """

    name: str
    about: str
    required: bool = False
    choices: tuple[str, ...] = ()
    example: str | None = None

    def document(self) -> Document:
        """As OpenAPI."""
        schema: Document = {"type": "string", **({"enum": list(self.choices)} if self.choices else {})}
        more = {} if self.example is None else {"example": self.example}
        return {
            "name": self.name,
            "in": "query",
            "description": self.about,
            "required": self.required,
            "schema": schema,
            **more,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiOperation:
    """What a path takes and returns.

    Attributes:
        returns: type of the document; None for another content.
        content_type: of the content without a type.
        errors: statuses with one line of text.
    """

    returns: Any = None
    parameters: tuple[QueryParameter, ...] = ()
    content_type: str = JSON
    errors: tuple[int, ...] = (400,)


_CLUSTERS = QueryParameter(name="cluster", about="names of clusters, separated by commas; all without it")
_ONE = QueryParameter(name="cluster", about="name of a cluster; needed if there are several")
_VHOST = QueryParameter(name="vhost", about="virtual host", example="/")

OPERATIONS: Mapping[str, ApiOperation] = {
    "/api/v1/findings": ApiOperation(returns=FindingsDocument, parameters=(_CLUSTERS,)),
    "/api/v1/triage": ApiOperation(returns=TriageDocument, parameters=(_CLUSTERS,)),
    "/api/v1/probes": ApiOperation(returns=ProbesDocument, parameters=(_CLUSTERS,)),
    "/api/v1/vitals": ApiOperation(returns=VitalsDocument, parameters=(_CLUSTERS,)),
    "/api/v1/series": ApiOperation(
        returns=SeriesDocument,
        parameters=(
            _ONE,
            QueryParameter(name="kind", about="kind of the subject", required=True, example="queue"),
            _VHOST,
            QueryParameter(name="name", about="name of the subject", required=True),
        ),
    ),
    "/api/v1/snapshot": ApiOperation(
        returns=SnapshotsDocument,
        parameters=(
            _CLUSTERS,
            QueryParameter(name="families", about=f"separated by commas: {', '.join(FAMILIES)}; all without it"),
        ),
    ),
    "/api/v1/columns": ApiOperation(
        returns=ColumnsDocument,
        parameters=(
            _ONE,
            QueryParameter(name="list", about="list of objects", required=True, choices=tuple(LISTS)),
            QueryParameter(name="columns", about="names of columns, separated by commas; all without it"),
        ),
    ),
    "/api/v1/trends": ApiOperation(
        returns=TrendsDocument,
        parameters=(
            _ONE,
            QueryParameter(name="list", about="list of objects", required=True, choices=SERIES_LISTS),
            QueryParameter(
                name="objects",
                about="JSON: `[[virtual host, name], ...]` for queues, names for the others",
                required=True,
                example='[["/", "orders"]]',
            ),
            QueryParameter(name="lines", about="names of series, separated by commas; all without it"),
        ),
    ),
    "/api/v1/queue": ApiOperation(
        returns=QueueDocument,
        parameters=(_ONE, _VHOST, QueryParameter(name="queue", about="name of the queue", required=True)),
    ),
    "/api/v1/bundle": ApiOperation(parameters=(_ONE,), content_type=BUNDLE_TYPE, errors=(400, 503)),
    "/api/v1/discovery": ApiOperation(returns=DiscoveryDocument, errors=()),
    "/api/v1/openapi.json": ApiOperation(returns=dict[str, Any], errors=()),
    "/-/healthy": ApiOperation(content_type=TEXT, errors=()),
    "/-/ready": ApiOperation(content_type=TEXT, errors=(503,)),
}
"""Path -> what it takes and returns."""

_TRIAGE_ERRORS = (400, 403, 404, 415, 500)
_REFERENCE = "#/components/schemas/{model}"


def openapi_document(routes: Routes) -> Document:
    """The document of those routes that have an entry in `OPERATIONS`."""
    schemas: Document = {}
    paths: Document = {}
    for path, operation in OPERATIONS.items():
        if path not in routes:
            continue
        returned = {"content": {operation.content_type.partition(";")[0]: _content(operation.returns, schemas)}}
        paths[path] = {
            "get": {
                "operationId": _identifier("get", path),
                "summary": routes[path].summary,
                "parameters": [it.document() for it in operation.parameters],
                "responses": {"200": {"description": "the document", **returned}, **_errors(operation.errors)},
            }
        }
    if "/api/v1/triage" in paths:
        paths["/api/v1/triage"]["post"] = {
            "operationId": "post_triage",
            "summary": "acknowledge, own or mute one finding",
            "requestBody": {"required": True, "content": {JSON: _content(TriageRequest, schemas)}},
            "responses": {
                "200": {"description": "the result", "content": {JSON: _content(TriageResult, schemas)}},
                **_errors(_TRIAGE_ERRORS),
            },
        }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "ackscope exporter",
            "version": __version__,
            "description": "Findings, probe results and broker data of RabbitMQ clusters. Objects may get more fields.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": {"login": {"type": "http", "scheme": "basic"}}},
        "security": [{}, {"login": []}],
    }


def openapi_page(routes: Callable[[], Routes], encode: Callable[[Document], bytes]) -> Callable[[Request], Response]:
    """The handler of the path; the document is made once."""
    made: list[bytes] = []

    def answer(_: Request) -> Response:
        if not made:
            made.append(encode(openapi_document(routes())))
        return Response(made[0], JSON)

    return answer


def _content(kind: Any, schemas: Document) -> Document:
    """The schema of a type; its parts are added to `schemas`."""
    if kind is None:
        return {"schema": {"type": "string"}}
    mode: Literal["validation", "serialization"] = (
        "validation" if isinstance(kind, type) and issubclass(kind, BaseModel) else "serialization"
    )
    schema = TypeAdapter(kind).json_schema(mode=mode, ref_template=_REFERENCE)
    schemas.update(schema.pop("$defs", {}))
    return {"schema": schema}


def _errors(statuses: tuple[int, ...]) -> Document:
    return {str(it): {"description": "one line of text that says what is wrong", "content": _LINE} for it in statuses}


_LINE = {"text/plain": {"schema": {"type": "string"}}}


def _identifier(method: str, path: str) -> str:
    words = path.removeprefix("/api/v1/").replace("/-/", "").replace(".", "_")
    return f"{method}_{words}"
