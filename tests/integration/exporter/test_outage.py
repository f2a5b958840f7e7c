import time

import pytest

from lab.cluster import start_lab
from tests.integration.exporter.running import eventually, exporting

pytestmark = [pytest.mark.integration, pytest.mark.slow]

AGE = 'ackscope_poll_age_seconds{cluster="shop",family="overview"}'
SUCCESS = 'ackscope_poll_success{cluster="shop",family="overview"}'
MESSAGES = 'ackscope_cluster_messages{cluster="shop"}'
INTERVAL = 2


@pytest.mark.parametrize("broker", ["3.10", "4.3"])
def test_a_broker_that_dies_and_comes_back(broker, tmp_path):
    """Its last figures stay with a growing age, nothing crashes, and recovery needs nobody."""
    with start_lab(broker) as lab, exporting(lab.nodes[0], tmp_path, f"{INTERVAL}s") as exporter:
        stream = f'{{cluster="shop",probe="confirm",stream="classic",node="{lab.nodes[0].name}"}}'
        running, success = f"ackscope_probe_running{stream}", f"ackscope_probe_success{stream}"
        eventually(lambda: exporter.value(running) == 1 and exporter.value(success) == 1)
        eventually(lambda: exporter.value(MESSAGES) is not None)
        lab.kill(0)
        eventually(lambda: exporter.value(SUCCESS) == 0)
        first = exporter.value(AGE)
        grown = eventually(lambda: (age := exporter.value(AGE)) > first + 3 and age)
        during = exporter.get("/metrics").text
        eventually(lambda: exporter.value(running) == 0)
        alive = exporter.get("/-/healthy").status_code, exporter.get("/-/ready").status_code

        lab.restart(0)
        back = time.monotonic()
        eventually(lambda: exporter.value(SUCCESS) == 1 and exporter.value(AGE) < 2 * INTERVAL)
        polled = time.monotonic() - back
        eventually(lambda: exporter.value(running) == 1)
        probed = time.monotonic() - back
        restarts = exporter.value("ackscope_probe_process_restarts_total")
        code, _ = exporter.stop()
    log = exporter.log.read_text()

    assert grown > 3
    assert "rabbitmq_build_info{" in during
    assert (200, 200) == alive
    assert polled < 2 * INTERVAL + 2
    assert probed < 30
    assert (0, 0) == (restarts, code)
    assert "Traceback" not in log
    assert log.count("cluster unreachable") == 1
    assert log.count("cluster reachable again") == 1
