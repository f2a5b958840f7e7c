"""`/api/v1/triage`: lists triage, and changes that of one finding."""

from dataclasses import asdict
from http import HTTPStatus
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from ackscope.clock import Clock
from ackscope.errors import DataError, UsageError
from ackscope.findings import Finding, flat
from ackscope.log import get_logger
from ackscope.triage import MAX_MUTE_SECONDS, MAX_NAME, MAX_REASON
from exporter.api import documents
from exporter.api.query_params import parse_names, unknown_name
from exporter.runtime.state import ClusterState, StateStore
from exporter.triage.store import TriageChange, TriageStore
from exporter.web.http import JSON, Request, Response

log = get_logger(__name__)

_Name = Annotated[str, StringConstraints(max_length=MAX_NAME, strip_whitespace=True)]
_Reason = Annotated[str, StringConstraints(max_length=MAX_REASON, strip_whitespace=True)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class _Subject(_Strict):
    kind: str
    name: str
    vhost: str | None = None
    # A client may send the subject as it got it. The node is no part of its identity.
    node: str | None = None


class TriageRequest(_Strict):
    """The body of a change of triage."""

    cluster: str
    rule: str
    subject: _Subject
    by: _Name = ""
    acknowledged: bool | None = None
    owner: _Name | None = None
    mute_seconds: float | None = Field(default=None, ge=0, le=MAX_MUTE_SECONDS, allow_inf_nan=False)
    reason: _Reason = ""

    @property
    def key(self) -> tuple[str, str, str, str]:
        """The identity of the finding."""
        return (self.rule, self.subject.kind, self.subject.vhost or "", self.subject.name)


class TriageRoute:
    """Handler of the path.

    Args:
        store: triage of all clusters.
        state: the present findings.
        clock: gives the times of changes.
    """

    def __init__(self, store: TriageStore, state: StateStore, clock: Clock) -> None:
        self._store, self._state, self._clock = store, state, clock

    def respond(self, request: Request) -> Response:
        """List the triage of each cluster, or change it."""
        try:
            return self._change(request) if request.method == "POST" else self._list(request)
        except UsageError as error:
            return _line(HTTPStatus.BAD_REQUEST, str(error))
        except DataError as error:
            return _line(HTTPStatus.INTERNAL_SERVER_ERROR, str(error))

    def _list(self, request: Request) -> Response:
        now, states = self._clock.now(), self._state.clusters()
        names = parse_names("cluster", request.query.get("cluster"), states)
        clusters = [{"cluster": name, "triage": self._entries(name, states[name], now.wall)} for name in names]
        return _json({"now": now.iso(), "writable": self._store.writable, "clusters": clusters})

    def _entries(self, name: str, state: ClusterState, wall: float) -> list[documents.Document]:
        present = {finding.key for finding in _findings(state)}
        return [
            {
                "rule": key[0],
                "subject": {"kind": key[1], "vhost": key[2] or None, "name": key[3]},
                "present": key in present,
                **asdict(triage),
                "muted": triage.muted_until is not None and not triage.ended(wall),
            }
            for key, triage in sorted(self._store.of(name).items())
        ]

    def _change(self, request: Request) -> Response:
        if not self._store.writable:
            return _line(HTTPStatus.FORBIDDEN, "findings cannot be acknowledged or muted: set triage.file, and restart")
        # Browsers send this type to another site only after asking it, and this server does not consent.
        if request.headers.get("content-type", "").partition(";")[0].strip() != JSON:
            return _line(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"send the change as {JSON}")
        try:
            body = TriageRequest.model_validate_json(request.body)
        except ValidationError as error:
            raise UsageError(_first(error)) from None
        states = self._state.clusters()
        if body.cluster not in states:
            raise UsageError(f"cluster={unknown_name(body.cluster, states)}")
        finding = next((it for it in _findings(states[body.cluster]) if it.key == body.key), None)
        if finding is None:
            return _line(HTTPStatus.NOT_FOUND, "this finding is not present; see /api/v1/findings")
        change = TriageChange(
            by=body.by,
            acknowledged=body.acknowledged,
            owner=body.owner,
            mute_seconds=body.mute_seconds,
            reason=body.reason,
        )
        now = self._clock.now()
        after = self._store.change(body.cluster, finding, change, now)
        log.info("triage changed", cluster=body.cluster, rule=body.rule, subject=str(finding.subject), by=body.by)
        return _json({"now": now.iso(), "triage": asdict(after)})


def _findings(state: ClusterState) -> list[Finding]:
    return flat(state.verdict.findings) if state.verdict else []


def _first(error: ValidationError) -> str:
    problem: Any = error.errors(include_url=False, include_input=False, include_context=False)[0]
    where = ".".join(str(word) for word in problem["loc"])
    return f"{where or 'body'}: {problem['msg'][0].lower()}{problem['msg'][1:]}"


def _json(document: documents.Document) -> Response:
    return Response(documents.as_json(document), JSON)


def _line(status: HTTPStatus, text: str) -> Response:
    return Response(f"{text}\n".encode(), status=status)
