"""Recording of what the exporter requests from a small broker with traffic."""

import time
from contextlib import suppress

from ackscope.errors import BrokerError
from ackscope.snapshot import FAMILIES
from bench.bench import progress
from bench.exporter.busy import busy_broker
from bench.exporter.recording import Recording, record_queues, recording_proxy
from bench.exporter.scraping import by_label, scrape
from bench.exporting import exporting_cluster, wait_for

_QUEUES, _BUSY = 100, 10
_WITHIN = 90.0


def record(version: str) -> tuple[Recording, str]:
    """Run an exporter on a lab broker until it has read every family.

    Returns the responses, and the exact version of the broker.

    Raises:
        BrokerError: the broker or the exporter did not start.
    """
    recording = Recording()
    with busy_broker(version, _QUEUES, _BUSY) as lab:
        progress(f"{lab.broker}: recording")
        management = lab.nodes[0].management
        with (
            recording_proxy(management, recording) as base,
            exporting_cluster({"management": {"url": base.replace("//", "//guest:guest@")}}) as exporter,
        ):
            wait_for(lambda: _all_read(f"{exporter.url}/metrics"), "every family read", _WITHIN)
            time.sleep(1)
        record_queues(management, recording)
        return recording, lab.broker


def _all_read(url: str) -> bool:
    """Return whether every family of the management API was tried at least once."""
    with suppress(BrokerError):
        tried = by_label(scrape(url).text, "ackscope_poll_attempts_total", "family")
        return all(tried.get(family) for family in FAMILIES)
    return False
