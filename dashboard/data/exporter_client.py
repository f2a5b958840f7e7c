"""HTTP client of the exporter. Failures are part of the result: nothing here raises for network or server errors."""

from collections.abc import Mapping
from threading import Lock
from typing import Any, TypeVar
from urllib.parse import urlsplit

import requests
from pydantic import TypeAdapter, ValidationError

from ackscope.clock import Clock, SystemClock
from dashboard.data.model import (
    ClusterFindings,
    ClusterProbes,
    ClusterSnapshot,
    ClusterVitals,
    ExporterResponse,
    ExporterState,
    Outage,
    PerCluster,
    Polled,
)

T = TypeVar("T", bound=PerCluster)

TIMEOUTS = (1.0, 3.0)
"""Seconds to connect, and between bytes. They are short, so that a page shows what is missing instead of waiting."""

REQUEST_OPTIONS: dict[str, Any] = {"allow_redirects": False, "proxies": {"http": "", "https": ""}}
"""Options of every request: the exporter is on the local network, so proxies of the environment are ignored."""

_FINDINGS = TypeAdapter(ExporterResponse[ClusterFindings])
_PROBES = TypeAdapter(ExporterResponse[ClusterProbes])
_SNAPSHOT = TypeAdapter(ExporterResponse[ClusterSnapshot])
_VITALS = TypeAdapter(ExporterResponse[ClusterVitals])
# Request only the parts of the snapshot that the dashboard shows, without the list of up to 100,000 queues.
_SNAPSHOT_PARTS = {"families": "overview,nodes,health"}


class ExporterClient:
    """Client of one exporter with its last good responses; shared by all sessions of the dashboard."""

    def __init__(self, url: str, clock: Clock | None = None, timeouts: tuple[float, float] = TIMEOUTS) -> None:
        self._host = urlsplit(url).netloc
        self._clock = clock or SystemClock()
        self._timeouts = timeouts
        self._lock = Lock()
        self._session = requests.Session()
        self._live = ExporterState(url=url)

    def read(self) -> ExporterState:
        """Poll all endpoints; one that fails keeps its last good response and the reason."""
        with self._lock:
            last = self._live
            findings = self._poll("findings", _FINDINGS, last.findings)
            if findings.outage and findings.outage.reason.startswith("no answer"):
                # Do not try the other endpoints: four timeouts in a row would delay the page for the same error.
                probes = self._failed(last.probes, findings.outage.reason)
                snapshot = self._failed(last.snapshot, findings.outage.reason)
                vitals = self._failed(last.vitals, findings.outage.reason)
            else:
                probes = self._poll("probes", _PROBES, last.probes)
                snapshot = self._poll("snapshot", _SNAPSHOT, last.snapshot, _SNAPSHOT_PARTS)
                vitals = self._poll("vitals", _VITALS, last.vitals)
            self._live = ExporterState(url=last.url, findings=findings, probes=probes, snapshot=snapshot, vitals=vitals)
            return self._live

    def _poll(
        self,
        name: str,
        adapter: TypeAdapter[ExporterResponse[T]],
        last: Polled[T],
        query: Mapping[str, str] | None = None,
    ) -> Polled[T]:
        path = f"/api/v1/{name}"
        try:
            response = self._session.get(
                self._live.url + path,
                params=query,
                timeout=self._timeouts,
                **REQUEST_OPTIONS,
            )
            if response.status_code != 200:
                return self._failed(last, f"HTTP status {response.status_code} at {path}")
            return Polled(response=adapter.validate_json(response.content), received=self._clock.now())
        except requests.RequestException as error:
            return self._failed(last, f"no answer from {self._host} ({_cause(error)})")
        except ValidationError as error:
            return self._failed(last, f"{path}: not the response of an exporter of this version: {_first(error)}")

    def _failed(self, last: Polled[T], reason: str) -> Polled[T]:
        since = last.outage.since if last.outage else self._clock.now()
        return Polled(response=last.response, received=last.received, outage=Outage(reason=reason, since=since))


def failure(error: requests.RequestException) -> str:
    """Why a request failed, in one phrase."""
    return f"no answer ({_cause(error)})"


def _cause(error: BaseException) -> str:
    """The error text of the operating system, below the layers of the HTTP library."""
    if isinstance(error, requests.ReadTimeout):
        return "connected, but no response in time"
    if isinstance(error, requests.ConnectTimeout):
        return "connection timed out"
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, OSError) and seen.strerror:
            return seen.strerror.lower()
        inner = [part for part in seen.args if isinstance(part, BaseException)]
        seen = seen.__cause__ or seen.__context__ or getattr(seen, "reason", None) or (inner[0] if inner else None)
    return "connection closed"


def _first(error: ValidationError) -> str:
    problem = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(word) for word in problem["loc"])
    return f"{where}: {problem['msg']}" if where else problem["msg"]
