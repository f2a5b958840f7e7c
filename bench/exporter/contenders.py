"""The contenders: no monitoring, rabbitmq_exporter, the official plugin with two endpoints, and ackscope."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass

from ackscope.errors import BrokerError
from bench.exporter.rabbitmq_exporter import rabbitmq_exporter
from bench.exporter.scraping import by_label, samples, scrape
from bench.exporting import exporting, wait_for
from lab.node import LabNode

OURS, RABBITMQ_EXPORTER, NOBODY = "ackscope", "rabbitmq_exporter", "nobody"
_FAMILIES = ("queue_coarse_metrics", "queue_consumer_count", "queue_metrics")
_TOTALS_WITHIN = 120.0
_VIEW_WITHIN = 30.0
"""Seconds to wait for a full view; after that the measurement starts without it."""
_SECOND_WITHIN = 120.0
"""Seconds to wait until the queues are read twice; then the exporter knows their cost, as in normal operation."""
_STEADY = 90.0
"""Seconds after the start in which families are read for the first and second time, which costs more than normal."""


@dataclass(frozen=True, slots=True)
class Running:
    """A running contender.

    Attributes:
        url: URL to scrape; None without monitoring.
        pid: of the exporter; None if the broker itself serves the metrics.
        full_view: seconds until all queues were read once; None if that took too long.
        totals_after: seconds until the totals of all queues were read; None if not measured separately.
    """

    url: str | None
    pid: int | None
    full_view: float | None
    totals_after: float | None = None


Contender = Callable[[LabNode, int], AbstractContextManager[Running]]
"""Starts a contender for a node with that many queues."""


@contextmanager
def nobody(_node: LabNode, _queues: int) -> Iterator[Running]:
    """No monitoring."""
    yield Running(None, None, None)


@contextmanager
def run_rabbitmq_exporter(node: LabNode, _queues: int) -> Iterator[Running]:
    """rabbitmq_exporter, which requests everything from the broker at every scrape."""
    with rabbitmq_exporter(node) as (base, pid):
        url = f"{base}/metrics"
        yield Running(url, pid, scrape(url).seconds)


@contextmanager
def per_object(node: LabNode, _queues: int) -> Iterator[Running]:
    """The plugin with samples of every object."""
    url = f"{node.prometheus}/metrics/per-object"
    yield Running(url, None, scrape(url).seconds)


@contextmanager
def detailed(node: LabNode, _queues: int) -> Iterator[Running]:
    """The plugin with only the families of queues."""
    url = f"{node.prometheus}/metrics/detailed?{'&'.join(f'family={name}' for name in _FAMILIES)}"
    yield Running(url, None, scrape(url).seconds)


def ackscope(interval: float, budget: float | None = None) -> Contender:
    """Return ackscope as a contender, with its poll interval and its budget in cores (None: the default)."""

    @contextmanager
    def run(node: LabNode, queues: int) -> Iterator[Running]:
        began = time.monotonic()
        # Without landing, because the others do not write history either.
        poll = {"interval": interval, **({} if budget is None else {"budget": budget})}
        root = {"poll": poll, "landing": {}}
        with exporting(node, probes=False, root=root) as exporter:
            url = f"{exporter.url}/metrics"
            totals = wait_for(lambda: _since(began, url, queues, totals_seen), "all queues in ackscope", _TOTALS_WITHIN)
            full = None
            with suppress(BrokerError):
                full = wait_for(lambda: _since(began, url, queues, details_seen), "all details", _VIEW_WITHIN)
            with suppress(BrokerError):
                wait_for(lambda: _since(began, url, 2, _readings), "the queues once more", _SECOND_WITHIN)
            time.sleep(max(0.0, began + _STEADY - time.monotonic()))
            yield Running(url, exporter.process.pid, full, totals)

    return run


def _since(began: float, url: str, most: int, seen: Callable[[str], float]) -> float | None:
    """Return the seconds since `began` if the count is reached; otherwise wait 0.5 s and return None."""
    if seen(scrape(url).text) >= most:
        return time.monotonic() - began
    time.sleep(0.5)
    return None


def totals_seen(text: str) -> float:
    """Number of queues whose totals were read."""
    return sum(value for _, value in samples(text, "rabbitmq_queues")) if _read(text, "queues") else 0


def details_seen(text: str) -> float:
    """Number of queues whose full statistics were read at least once."""
    detailed = samples(text, "ackscope_poll_detailed_queues")
    return sum(value for _, value in detailed) if detailed else totals_seen(text)


def _readings(text: str) -> float:
    """Number of attempts to read the queues."""
    return by_label(text, "ackscope_poll_attempts_total", "family").get("queues", 0.0)


def _read(text: str, family: str) -> bool:
    return family in by_label(text, "ackscope_poll_age_seconds", "family")
