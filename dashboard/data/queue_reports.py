"""Details of single objects from the exporter: one queue with its ledger, and recent series of several.

Failures are part of the result.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeVar
from urllib.parse import quote

import orjson
import requests
from pydantic import TypeAdapter, ValidationError

from dashboard.data.exporter_client import REQUEST_OPTIONS, TIMEOUTS, failure
from dashboard.data.model import MetricSeries
from dashboard.format.readable import parse_iso

T = TypeVar("T")

_MAX_QUERY_BYTES = 20_000
"""The exporter accepts requests of up to 32 KiB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueBand:
    """Baseline band of one series of a queue in this hour of the week; all None, and a reason, if there is none."""

    low: float | None = None
    middle: float | None = None
    high: float | None = None
    scope: str = ""
    values: int = 0
    because: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueLedger:
    """Balance of the messages of a queue over some seconds; see `diagnosis.ledger`. All None if it is unknown.

    Attributes:
        because: reason code if it is unknown.
        proven_discarded, proven_vanished: lost messages that the delay between counters cannot explain.
    """

    because: str | None = None
    seconds: float | None = None
    arrived: int | None = None
    delivered: int | None = None
    acked: int | None = None
    auto: int | None = None
    redelivered: int | None = None
    discarded: int | None = None
    vanished: int | None = None
    discarded_error: int | None = None
    vanished_error: int | None = None
    stored: int | None = None
    proven_discarded: int | None = None
    proven_vanished: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetValue:
    """A setting of a queue; `by` is what sets the value that applies: `argument` or `policy`."""

    name: str
    value: Any
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PoliciesAndArguments:
    """What is set for a queue."""

    policy: str | None = None
    operator_policy: str | None = None
    set: tuple[SetValue, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueReport:
    """What the exporter knows of one queue (`/api/v1/queue`).

    Attributes:
        now: the exporter's clock when it responded, ISO 8601.
        known: the queue is in the latest list.
        settings: None if they are unknown, or the exporter is an older one.
        lines: recent series; points are seconds before `now`.
        usual: baseline band by series.
        problem: why there is no response; None if there is one.
    """

    now: str = ""
    known: bool = False
    settings: PoliciesAndArguments | None = None
    lines: tuple[MetricSeries, ...] = ()
    usual: dict[str, QueueBand] = field(default_factory=dict)
    ledger: QueueLedger = field(default_factory=QueueLedger)
    problem: str | None = None

    @property
    def at(self) -> datetime | None:
        """Time of the response in UTC; None without one."""
        wall = parse_iso(self.now)
        return None if wall is None else datetime.fromtimestamp(wall, UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectSeries:
    """Recent series of one object."""

    name: str
    vhost: str | None = None
    lines: tuple[MetricSeries, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesReport:
    """Recent series of some objects (`/api/v1/trends`); points are seconds before `now`, ISO 8601."""

    now: str = ""
    objects: tuple[ObjectSeries, ...] = ()
    problem: str | None = None

    @property
    def at(self) -> datetime | None:
        """Time of the response in UTC; None without one."""
        wall = parse_iso(self.now)
        return None if wall is None else datetime.fromtimestamp(wall, UTC)


_QUEUE, _SERIES = TypeAdapter(QueueReport), TypeAdapter(SeriesReport)


def queue(url: str, cluster: str, vhost: str, name: str) -> QueueReport:
    """Fetch one queue; never raises for network or server errors."""
    found = _get(url, "queue", {"cluster": cluster, "vhost": vhost, "queue": name}, _QUEUE)
    return QueueReport(problem=found) if isinstance(found, str) else found


def series(url: str, cluster: str, listed: str, objects: Sequence[Any], lines: Sequence[str] = ()) -> SeriesReport:
    """Fetch recent series of as many of these objects as one request may name; never raises for network errors.

    Args:
        url: URL of the exporter.
        cluster: name of the cluster.
        listed: queues, channels or nodes.
        objects: `(virtual host, name)` of queues, or names; the most important first.
        lines: names of series; empty means all.
    """
    named = list(objects)
    # Names may have up to 255 bytes.
    while _size(text := orjson.dumps(named).decode()) > _MAX_QUERY_BYTES:
        named = named[: len(named) * 3 // 4]
    if not named:
        return SeriesReport()
    query = {"cluster": cluster, "list": listed, "objects": text} | ({"lines": ",".join(lines)} if lines else {})
    found = _get(url, "trends", query, _SERIES)
    return SeriesReport(problem=found) if isinstance(found, str) else found


def _size(text: str) -> int:
    return len(quote(text, safe=""))


def _get(url: str, name: str, query: dict[str, str], adapter: TypeAdapter[T]) -> T | str:
    """The response, or why there is none."""
    path = f"/api/v1/{name}"
    try:
        response = requests.get(url + path, params=query, timeout=TIMEOUTS, **REQUEST_OPTIONS)
        if response.status_code != 200:
            return f"HTTP status {response.status_code} at {path}"
        return adapter.validate_json(response.content)
    except requests.RequestException as error:
        return failure(error)
    except ValidationError:
        return f"{path}: not the response of an exporter of this version"
