"""Sends the metrics at an interval, in a thread of its own."""

import logging
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from ackscope import __version__
from ackscope.clock import Clock, Instant
from ackscope.errors import ConfigError, MissingPart
from ackscope.log import get_logger
from exporter.otlp.settings import OtlpSettings

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics.export import MetricExporter

log = get_logger(__name__)

_SECONDS = 10.0
_PER_REQUEST = 5000

# It logs every failed attempt; the sender logs a problem when it appears and when it is over.
logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)


class OtlpStats(NamedTuple):
    """Figures of the export.

    Attributes:
        last_success: when the collector last accepted all metrics; None before.
    """

    successes: int = 0
    failures: int = 0
    last_success: Instant | None = None


def require_sdk() -> None:
    """Check that the extra is installed.

    Raises:
        MissingPart: it is not.
    """
    try:
        import opentelemetry.exporter.otlp.proto.http.metric_exporter  # noqa: F401, PLC0415  an extra
    except ModuleNotFoundError as error:
        raise MissingPart(f"{error.name} is not installed; install the extra: pip install 'ackscope[otlp]'") from None


class OtlpSender:
    """Sends the text of a page as OTLP.

    Args:
        settings: where to, and how often.
        page: makes the text of `/metrics`.
        instance: what identifies this exporter, `service.instance.id`.
        clock: gives the times.
    """

    def __init__(self, settings: OtlpSettings, page: Callable[[], str], instance: str, clock: Clock) -> None:
        self._settings, self._page, self._instance, self._clock = settings, page, instance, clock
        self._began = clock.now().wall
        self._stats, self._problem = OtlpStats(), False
        self._exporter: MetricExporter | None = None
        self._made_with: tuple[OtlpSettings, dict[str, str]] | None = None
        self._wake, self._ending = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="otlp", daemon=True)

    @property
    def stats(self) -> OtlpStats | None:
        """Figures for metrics; None if nothing is sent."""
        return None if self._settings.endpoint is None else self._stats

    def start(self) -> None:
        """Start sending."""
        self._thread.start()

    def stop(self) -> None:
        """Stop; a request in progress is abandoned after a moment."""
        self._ending.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(2.0)

    def apply(self, settings: OtlpSettings) -> None:
        """Use other settings from now on; the certificates are read again."""
        self._settings, self._exporter = settings, None
        self._wake.set()

    def send(self) -> bool:
        """Send once; whether the collector accepted everything."""
        # Imported here, because the package is optional (extra `otlp`).
        from opentelemetry.sdk.metrics.export import MetricExportResult  # noqa: PLC0415  see above

        from exporter.otlp.convert import convert  # noqa: PLC0415  see above

        settings = self._settings
        exporter = self._current_exporter(settings)
        now = self._clock.now()
        # A collector refuses what ends before its beginning, as after a clock was set back.
        self._began = min(self._began, now.wall)
        data = convert(self._page(), self._attributes(settings.attributes), self._began, now.wall)
        accepted = exporter.export(data, timeout_millis=_SECONDS * 1000) is MetricExportResult.SUCCESS
        stats = self._stats
        if accepted:
            self._stats = stats._replace(successes=stats.successes + 1, last_success=self._clock.now())
        else:
            self._stats = stats._replace(failures=stats.failures + 1)
        if accepted is self._problem:
            self._problem = not accepted
            if accepted:
                log.info("OTLP endpoint accepts metrics again")
            else:
                log.warning("OTLP endpoint does not accept metrics", endpoint=settings.endpoint)
        return accepted

    def _current_exporter(self, settings: OtlpSettings) -> "MetricExporter":
        headers = {} if self._made_with is None else self._made_with[1]
        # A token file that is being replaced is read at the next export.
        with suppress(ConfigError):
            headers = settings.all_headers()
        if self._exporter is None or (settings, headers) != self._made_with:
            self._exporter, self._made_with = _exporter(settings, headers), (settings, headers)
        return self._exporter

    def _attributes(self, more: Mapping[str, str]) -> dict[str, str]:
        return {
            "service.name": "ackscope",
            "service.version": __version__,
            "service.instance.id": self._instance,
            **more,
        }

    def _run(self) -> None:
        while not self._ending.is_set():
            self._wake.wait(self._settings.interval if self._settings.endpoint is not None else None)
            self._wake.clear()
            if self._ending.is_set() or self._settings.endpoint is None:
                continue
            try:
                self.send()
            except Exception:  # Boundary: a defect must not end this thread.
                log.exception("OTLP export failed because of a bug")
                self._stats = self._stats._replace(failures=self._stats.failures + 1)


def _exporter(settings: OtlpSettings, headers: Mapping[str, str]) -> "MetricExporter":
    from opentelemetry.exporter.otlp.proto.http import Compression  # noqa: PLC0415  an extra
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter  # noqa: PLC0415  an extra

    return OTLPMetricExporter(
        endpoint=settings.endpoint,
        certificate_file=None if settings.ca_file is None else str(settings.ca_file),
        headers=dict(headers),
        timeout=_SECONDS,
        compression=Compression.Gzip,
        max_export_batch_size=_PER_REQUEST,
    )
