"""`/probe?module=NAME&target=HOST:PORT`: one reading of a broker, now, in the shape of the blackbox and snmp exporters.

Who asks chooses the broker, so credentials are sent only where the module allows it.
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
from exporter.asked import unknown
from exporter.broker.credentials import Credentials, credentials_from
from exporter.broker.settings import ManagementSettings
from exporter.broker.snapshot_builder import read_once
from exporter.collectors.choosing import Chooser
from exporter.collectors.settings import MetricsSettings
from exporter.compat.chosen import collectors_for
from exporter.execute import execute, report_metrics
from exporter.exposition import collector_sources
from exporter.http import Answer, Request
from exporter.live import polls
from exporter.metrics import Families
from exporter.negotiate import format_for
from exporter.one_shot_metrics import DURATION, SUCCESS
from exporter.render import END, Format, Written, buffers, write
from exporter.state import ClusterState
from exporter.targets.settings import ModuleSettings

TIMEOUT_HEADER = "x-prometheus-scrape-timeout-seconds"
_OFFSET, _SHORTEST, _LONGEST, _UNASKED = 0.5, 0.5, 60.0, 9.5
"""Seconds: what answering takes, the bounds of a reading, and what it gets where the client names no time."""

_REMEMBERED = 64
"""Targets whose choice of objects is remembered, the latest asked for: their remainders go on counting."""


@dataclass(slots=True)
class _Known:
    chooser: Chooser
    lock: threading.Lock = field(default_factory=threading.Lock)


class TargetPage:
    """Reads brokers on demand; safe for several requests at once.

    Args:
        modules: by name.
        metrics: caps and patterns, as of `/metrics`.
        clock: dates readings.
    """

    def __init__(self, modules: Mapping[str, ModuleSettings], metrics: MetricsSettings, clock: Clock) -> None:
        self._modules, self._metrics, self._clock = modules, metrics, clock
        self._free = {name: threading.BoundedSemaphore(module.at_once) for name, module in modules.items()}
        self._known: OrderedDict[tuple[str, str], _Known] = OrderedDict()
        self._lock = threading.Lock()
        self._granted: dict[str, Credentials] = {}

    def answer(self, request: Request) -> Answer:
        """Read the target, or say in a line why not."""
        name, target = request.query.get("module", ""), request.query.get("target", "")
        module = self._modules.get(name)
        if module is None:
            none = f"{name[:80]!r} is not known; the configuration has no modules"
            known = unknown(name, self._modules) if self._modules else none
            return _line(f"module={known}", HTTPStatus.BAD_REQUEST)
        try:
            settings = module.management(target)
        except UsageError as error:
            return _line(str(error), HTTPStatus.BAD_REQUEST)
        if not self._free[name].acquire(blocking=False):
            busy = f"module {name}: {module.at_once} under way, as many as may be at once; ask again later"
            return _line(busy, HTTPStatus.TOO_MANY_REQUESTS)
        try:
            began = self._clock.now()
            within = time_for_reading(request.headers.get(TIMEOUT_HEADER))
            where = settings.address().where
            granted = self._granted_to(name, module, settings)
            snapshot = read_once(where, settings, self._clock, within, module.asked, granted)
            taken = self._clock.now().since(began)
            families = self._families_of(snapshot, name, module.asked, taken)
        except AckscopeError as error:
            return _line(str(error), HTTPStatus.INTERNAL_SERVER_ERROR)
        finally:
            self._free[name].release()
        form = format_for(request.headers.get("accept", ""))
        end = [END] if form is Format.OPENMETRICS else []
        return Answer(b"".join([*buffers(families, form), *end]), form.value)

    def _families_of(self, snapshot: Snapshot, module: str, families: Iterable[str], seconds: float) -> list[Written]:
        known = self._remembered(module, snapshot.cluster)
        with known.lock:
            selection = known.chooser.choose([snapshot])
        collectors = collectors_for(self._metrics.names, with_detailed=self._metrics.detailed)
        made = execute(collector_sources([snapshot], selection, collectors), self._clock)
        states = {snapshot.cluster: ClusterState(window=Window.empty(snapshot.cluster).add(snapshot))}
        asked = [snapshot.parts[family] for family in families]
        own = Families((SUCCESS, DURATION))
        own.add(SUCCESS, {}, int(all(part.value is not None and part.error is None for part in asked)))
        own.add(DURATION, {}, seconds)
        now = self._clock.now()
        rest = [*own.result(), *polls.collect(states, {}, now), *report_metrics(made.reports)]
        return [*made.families, *write(rest)]

    def _granted_to(self, name: str, module: ModuleSettings, settings: ManagementSettings) -> Credentials | None:
        """What a module's readings share: a token is good for all of its targets, and for more than one reading."""
        if module.oauth2 is None:
            return None
        with self._lock:
            if name not in self._granted:
                self._granted[name] = credentials_from(settings, f"modules.{name}")
            return self._granted[name]

    def _remembered(self, module: str, target: str) -> _Known:
        with self._lock:
            known = self._known.pop((module, target), None) or _Known(Chooser(self._metrics))
            self._known[module, target] = known
            if len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
            return known


def time_for_reading(header: str | None) -> float:
    """Seconds that a reading may take, so that the answer comes before the scraper gives up."""
    try:
        told = float(header) - _OFFSET if header is not None else _UNASKED
    except ValueError:
        told = _UNASKED
    return _UNASKED if math.isnan(told) else min(_LONGEST, max(_SHORTEST, told))


def _line(text: str, status: HTTPStatus) -> Answer:
    return Answer(f"{text}\n".encode(), status=status)
