"""`/probe?module=NAME&target=HOST:PORT`: reads a broker on demand, like blackbox and snmp exporter.

The caller chooses the broker, so credentials are only sent where the module allows it.
"""

import math
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus

from ackscope.clock import Clock
from ackscope.errors import AckscopeError, UsageError
from ackscope.snapshot import Snapshot
from diagnosis.window import Window
from exporter.api.query_params import unknown_name
from exporter.broker.credentials import Credentials, credentials_from
from exporter.broker.settings import ManagementSettings
from exporter.broker.snapshot_builder import read_once
from exporter.exposition.cardinality.top_k import TopK
from exporter.exposition.compat.select import collectors_for
from exporter.exposition.encode import END, EncodedFamily, Format, encode, negotiate_format, page_chunks
from exporter.exposition.execute import execute, report_metrics
from exporter.exposition.live import polls
from exporter.exposition.page_cache import collector_sources
from exporter.exposition.settings import MetricsSettings
from exporter.exposition.specs import MetricFamilies
from exporter.probes_host.ondemand_metrics import DURATION, SUCCESS
from exporter.runtime.state import ClusterState
from exporter.targets.settings import ModuleSettings
from exporter.web.http import Request, Response

TIMEOUT_HEADER = "x-prometheus-scrape-timeout-seconds"
_OFFSET, _SHORTEST, _LONGEST, _DEFAULT = 0.5, 0.5, 60.0, 9.5
"""In seconds: margin for the response, bounds of a read, and its default if the scraper sends no timeout."""

_REMEMBERED = 64
"""Number of recently read targets whose selection is remembered, so that their remainders keep counting."""


@dataclass(slots=True)
class _Choice:
    top_k: TopK
    lock: threading.Lock = field(default_factory=threading.Lock)


class TargetPage:
    """Reads brokers on demand. Thread-safe.

    Args:
        modules: name -> module.
        metrics: cardinality limits and patterns, as for `/metrics`.
        clock: gives the times of the reads.
    """

    def __init__(self, modules: Mapping[str, ModuleSettings], metrics: MetricsSettings, clock: Clock) -> None:
        self._modules, self._metrics, self._clock = modules, metrics, clock
        self._free = {name: threading.BoundedSemaphore(module.at_once) for name, module in modules.items()}
        self._choices: OrderedDict[tuple[str, str], _Choice] = OrderedDict()
        self._lock = threading.Lock()
        self._credentials: dict[str, Credentials] = {}

    def respond(self, request: Request) -> Response:
        """Read the target, or return a one-line error."""
        name, target = request.query.get("module", ""), request.query.get("target", "")
        module = self._modules.get(name)
        if module is None:
            none = f"{name[:80]!r} is unknown; no modules are configured"
            known = unknown_name(name, self._modules) if self._modules else none
            return _line(f"module={known}", HTTPStatus.BAD_REQUEST)
        try:
            settings = module.management(target)
        except UsageError as error:
            return _line(str(error), HTTPStatus.BAD_REQUEST)
        if not self._free[name].acquire(blocking=False):
            busy = f"module {name}: limit of {module.at_once} concurrent reads reached; retry later"
            return _line(busy, HTTPStatus.TOO_MANY_REQUESTS)
        try:
            began = self._clock.now()
            within = reading_timeout(request.headers.get(TIMEOUT_HEADER))
            where = settings.address().where
            credentials = self._credentials_for(name, module, settings)
            snapshot = read_once(where, settings, self._clock, within, module.all_families, credentials)
            elapsed = self._clock.now().since(began)
            families = self._families_of(snapshot, name, module.all_families, elapsed)
        except AckscopeError as error:
            return _line(str(error), HTTPStatus.INTERNAL_SERVER_ERROR)
        finally:
            self._free[name].release()
        form = negotiate_format(request.headers.get("accept", ""))
        end = [END] if form is Format.OPENMETRICS else []
        return Response(b"".join([*page_chunks(families, form), *end]), form.value)

    def _families_of(
        self, snapshot: Snapshot, module: str, families: Iterable[str], seconds: float
    ) -> list[EncodedFamily]:
        known = self._remembered(module, snapshot.cluster)
        with known.lock:
            selection = known.top_k.select([snapshot])
        collectors = collectors_for(self._metrics.names, with_detailed=self._metrics.detailed)
        made = execute(collector_sources([snapshot], selection, collectors), self._clock)
        states = {snapshot.cluster: ClusterState(window=Window.empty(snapshot.cluster).add(snapshot))}
        all_families = [snapshot.parts[family] for family in families]
        own = MetricFamilies((SUCCESS, DURATION))
        own.add(SUCCESS, {}, int(all(part.value is not None and part.error is None for part in all_families)))
        own.add(DURATION, {}, seconds)
        now = self._clock.now()
        rest = [*own.result(), *polls.collect(states, {}, now), *report_metrics(made.reports)]
        return [*made.families, *encode(rest)]

    def _credentials_for(self, name: str, module: ModuleSettings, settings: ManagementSettings) -> Credentials | None:
        """Return the OAuth 2 credentials that all reads of a module share: a token is valid for all of its targets."""
        if module.oauth2 is None:
            return None
        with self._lock:
            if name not in self._credentials:
                self._credentials[name] = credentials_from(settings, f"modules.{name}")
            return self._credentials[name]

    def _remembered(self, module: str, target: str) -> _Choice:
        with self._lock:
            known = self._choices.pop((module, target), None) or _Choice(TopK(self._metrics))
            self._choices[module, target] = known
            if len(self._choices) > _REMEMBERED:
                self._choices.popitem(last=False)
            return known


def reading_timeout(header: str | None) -> float:
    """Return the seconds that a read may take, so that the response arrives before the timeout of the scraper."""
    try:
        seconds = float(header) - _OFFSET if header is not None else _DEFAULT
    except ValueError:
        seconds = _DEFAULT
    return _DEFAULT if math.isnan(seconds) else min(_LONGEST, max(_SHORTEST, seconds))


def _line(text: str, status: HTTPStatus) -> Response:
    return Response(f"{text}\n".encode(), status=status)
