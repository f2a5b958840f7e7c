"""The exporter, asked over HTTP. A failure is an answer too: nothing here raises for what the other side does."""

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
"""Seconds to connect, and to wait for each byte: a page that waits is worse than one that says what is missing."""

NEIGHBOUR: dict[str, Any] = {"allow_redirects": False, "proxies": {"http": "", "https": ""}}
"""Options of every request: the exporter is near, so that a proxy of the environment is not meant for it."""

_FINDINGS = TypeAdapter(ExporterResponse[ClusterFindings])
_PROBES = TypeAdapter(ExporterResponse[ClusterProbes])
_SNAPSHOT = TypeAdapter(ExporterResponse[ClusterSnapshot])
_VITALS = TypeAdapter(ExporterResponse[ClusterVitals])
_SHOWN = {"families": "overview,nodes,health"}
"""The parts of a snapshot that the page shows: a list of 100,000 queues is not fetched to be left out."""


class ExporterClient:
    """One exporter and what it said last; many sessions of the page share it."""

    def __init__(self, url: str, clock: Clock | None = None, timeouts: tuple[float, float] = TIMEOUTS) -> None:
        self._where = urlsplit(url).netloc
        self._clock = clock or SystemClock()
        self._timeouts = timeouts
        self._lock = Lock()
        self._session = requests.Session()
        self._live = ExporterState(url=url)

    def read(self) -> ExporterState:
        """Ask for everything; what cannot be had keeps its last answer and says why."""
        with self._lock:
            last = self._live
            findings = self._ask("findings", _FINDINGS, last.findings)
            if findings.away and findings.away.reason.startswith("no answer"):
                # Four timeouts in a row would keep the reader waiting for one and the same news.
                probes = self._failed(last.probes, findings.away.reason)
                snapshot = self._failed(last.snapshot, findings.away.reason)
                vitals = self._failed(last.vitals, findings.away.reason)
            else:
                probes = self._ask("probes", _PROBES, last.probes)
                snapshot = self._ask("snapshot", _SNAPSHOT, last.snapshot, _SHOWN)
                vitals = self._ask("vitals", _VITALS, last.vitals)
            self._live = ExporterState(url=last.url, findings=findings, probes=probes, snapshot=snapshot, vitals=vitals)
            return self._live

    def _ask(
        self,
        name: str,
        answer: TypeAdapter[ExporterResponse[T]],
        last: Polled[T],
        query: Mapping[str, str] | None = None,
    ) -> Polled[T]:
        path = f"/api/v1/{name}"
        try:
            response = self._session.get(
                self._live.url + path,
                params=query,
                timeout=self._timeouts,
                **NEIGHBOUR,
            )
            if response.status_code != 200:
                return self._failed(last, f"HTTP status {response.status_code} at {path}")
            return Polled(answer=answer.validate_json(response.content), at=self._clock.now())
        except requests.RequestException as error:
            return self._failed(last, f"no answer from {self._where} ({_cause(error)})")
        except ValidationError as error:
            return self._failed(
                last, f"what {path} answers is not an exporter's answer of this version: {_first(error)}"
            )

    def _failed(self, last: Polled[T], reason: str) -> Polled[T]:
        since = last.away.since if last.away else self._clock.now()
        return Polled(answer=last.answer, at=last.at, away=Outage(reason=reason, since=since))


def failure(error: requests.RequestException) -> str:
    """Why there was no answer, in one phrase."""
    return f"no answer ({_cause(error)})"


def _cause(error: BaseException) -> str:
    """The operating system's own words, from under the layers of the HTTP library."""
    if isinstance(error, requests.ReadTimeout):
        return "connected, and then silence"
    if isinstance(error, requests.ConnectTimeout):
        return "the connection could not be made in time"
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, OSError) and seen.strerror:
            return seen.strerror.lower()
        inner = [part for part in seen.args if isinstance(part, BaseException)]
        seen = seen.__cause__ or seen.__context__ or getattr(seen, "reason", None) or (inner[0] if inner else None)
    return "the connection broke"


def _first(error: ValidationError) -> str:
    problem = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(word) for word in problem["loc"])
    return f"{where}: {problem['msg']}" if where else problem["msg"]
