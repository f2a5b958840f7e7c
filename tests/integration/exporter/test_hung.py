import signal
import threading
import time

import psutil
import pytest
import requests

from ackscope.clock import SystemClock
from exporter.broker.families import FAMILIES, FetchMode
from exporter.broker.settings import ManagementSettings
from exporter.polling.poller import Poller
from exporter.polling.settings import PollSettings
from lab.cluster import start_lab
from tests.integration.exporter.running import eventually

pytestmark = [pytest.mark.integration, pytest.mark.slow]

INTERVAL = 1.0
HUNG_SECONDS = 35.0
SETTLED_SECONDS = 15.0
"""After this time hanging endpoints are known and skipped."""
TIMEOUT = 4.0
ANSWERS = 2.0
"""An endpoint that takes longer than this hangs with the node."""


def answers(lab):
    """The families that the first node still answers, requested next to the poller; only one of the health checks."""

    def ask(path, found):
        try:
            found.append(requests.get(lab.nodes[0].management + path, timeout=ANSWERS).ok)
        except requests.RequestException:
            found.append(False)

    found = {name: [] for name in FAMILIES}
    threads = []
    for name, family in FAMILIES.items():
        paths = ("/api/health/checks/alarms",) if family.mode is FetchMode.HEALTH_CHECKS else family.paths
        for path in paths:
            # A family of several endpoints is read if all existing ones answer; disabled plugins answer too.
            url = path.replace("{node}", lab.nodes[0].name)
            threads.append(threading.Thread(target=ask, args=(url, found[name])))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {name for name, statuses in found.items() if all(statuses)}


def ages(poller):
    """Family -> seconds since its last good reading."""
    now = SystemClock().now()
    return {name: part.age(now) for name, part in poller.latest.parts.items()}


def test_a_node_that_hangs_delays_only_what_needs_it():
    """What the broker still answers stays fresh, requests do not pile up, and it recovers without intervention."""
    with start_lab("4.3", 3) as lab:
        settings = ManagementSettings(url=lab.nodes[0].management, timeout=TIMEOUT)
        poller = Poller("shop", settings, PollSettings(interval=INTERVAL, budget=0.2), SystemClock(), lambda _: None)
        own = psutil.Process()
        before = len(own.net_connections())
        poller.start()
        try:
            eventually(lambda: all(part.value is not None for part in poller.latest.parts.values()))
            lab.processes[2].signal(signal.SIGSTOP)
            hung_at = time.monotonic()
            time.sleep(TIMEOUT)
            fresh = answers(lab)
            time.sleep(max(0.0, hung_at + SETTLED_SECONDS - time.monotonic()))
            worst = dict.fromkeys(fresh, 0.0)
            threads = sockets = 0
            while time.monotonic() < hung_at + HUNG_SECONDS:
                time.sleep(0.5)
                worst = {name: max(age, ages(poller)[name]) for name, age in worst.items()}
                threads = max(threads, len(poller.threads))
                sockets = max(sockets, len(own.net_connections()) - before)
            during, memory = poller.latest, own.memory_info().rss
            with pytest.raises(requests.RequestException):
                requests.get(f"{lab.nodes[0].management}/api/overview", timeout=ANSWERS)
            lab.processes[2].signal(signal.SIGCONT)
            back_at = time.monotonic()
            eventually(lambda: all(part.error is None for part in poller.latest.parts.values()))
            eventually(
                lambda: all(age < 3 * INTERVAL for name, age in ages(poller).items() if not FAMILIES[name].min_interval)
            )
            recovered = time.monotonic() - back_at
            after = own.memory_info().rss
        finally:
            lab.processes[2].signal(signal.SIGCONT)
            poller.stop()

    assert {"health", "policies", "limits", "features"} <= fresh
    assert "overview" not in fresh
    for name, age in worst.items():
        assert age < max(FAMILIES[name].min_interval, INTERVAL) + TIMEOUT + 5, name
    assert during.overview.value is not None
    assert "no full answer" in during.overview.error
    assert len(during.nodes.value) == 3
    assert threads <= len(FAMILIES) + 1
    assert sockets <= len(FAMILIES) + 1
    assert recovered < 2 * TIMEOUT + 10
    assert after < memory * 1.1
