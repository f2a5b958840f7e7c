import time

import pytest
import requests

from ackscope.clock import SystemClock
from exporter.app import App
from exporter.docs.metrics import sections
from exporter.settings import ExporterSettings
from tests.unit.exporter.broker.server import VERSIONS, broker, serve
from tests.unit.exporter.made import SetClock, eventually, promtool, small


def app(url, **chunks):
    """An exporter of one cluster on a free port, without probes."""
    clusters = {"shop": {"management": {"url": url}}}
    return App(
        ExporterSettings.model_validate({"listen": "127.0.0.1:0", "clusters": clusters, **chunks}), SystemClock()
    )


def get(exporter, path):
    """One request."""
    return requests.get(exporter.url + path, timeout=10)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_recorded_broker_is_served_whole(version, tmp_path):
    """Ready, metrics that promtool and the reference page know, findings, the snapshot, landing files."""
    with serve(broker(version)) as server:
        exporter = app(server.url, landing={"directory": tmp_path})
        exporter.start()
        try:
            eventually(lambda: get(exporter, "/-/ready").status_code == 200)
            text = get(exporter, "/metrics").text
            findings = get(exporter, "/api/v1/findings").json()["clusters"][0]
            snapshot = get(exporter, "/api/v1/snapshot").json()["clusters"][0]
            probes = get(exporter, "/api/v1/probes").json()["clusters"][0]
        finally:
            exporter.stop()
    documented = {spec.name for section in sections().values() for spec in section}
    shown = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}

    assert "" == promtool(text)
    assert shown <= documented
    assert 'rabbitmq_queue_messages{cluster="shop"' in text
    assert (version, []) == (findings["broker"], probes["probes"])
    assert findings["checked"]
    assert snapshot["overview"]["value"]["rabbitmq_version"] == version
    assert snapshot["ages"]["queues"] >= 0
    assert list(tmp_path.glob("queue_samples/cluster=shop/date=*/*.parquet"))


def test_a_broker_that_is_away_is_served_as_such():
    """Alive and ready: a refusal is an answer; no metric pretends to know."""
    exporter = app("http://u:hush@127.0.0.1:1")
    exporter.start()
    try:
        eventually(lambda: get(exporter, "/-/ready").status_code == 200)
        text, healthy = get(exporter, "/metrics").text, get(exporter, "/-/healthy")
        pages = "".join(get(exporter, f"/api/v1/{name}").text for name in ("findings", "snapshot", "probes"))
    finally:
        exporter.stop()

    assert 200 == healthy.status_code
    assert 'ackscope_poll_success{cluster="shop",family="overview"} 0\n' in text
    assert "ackscope_poll_age_seconds" not in text
    assert "rabbitmq_" not in text
    assert "hush" not in text + pages


def test_a_scrape_never_asks_the_broker():
    """Only the poller sends requests to the broker, however many scrapes there are."""
    with serve(broker("4.3.6")) as server:
        exporter = app(server.url, poll={"interval": 300})
        exporter.start()
        try:
            eventually(
                lambda: 'ackscope_poll_success{cluster="shop",family="health"} 1' in get(exporter, "/metrics").text
            )
            before = len(server.seen)
            for path in ("/metrics", "/api/v1/findings", "/api/v1/probes", "/api/v1/snapshot", "/-/ready", "/") * 5:
                get(exporter, path)
            after = len(server.seen)
        finally:
            exporter.stop()

    assert before == after


def test_a_stop_is_quick():
    """Within the five seconds that a supervisor is promised."""
    exporter = app("http://127.0.0.1:1")
    exporter.start()
    eventually(lambda: get(exporter, "/-/ready").status_code == 200)
    began = time.monotonic()
    exporter.stop()

    assert time.monotonic() - began < 5


def test_a_cluster_without_an_address_is_not_probed_on_demand():
    """Targets outside the configuration are not probed either."""
    exporter = app("http://127.0.0.1:1")
    exporter.start()
    try:
        blind = get(exporter, "/probe?probe=rtt&target=shop")
        unknown = get(exporter, "/probe?probe=rtt&target=127.0.0.1:5672")
    finally:
        exporter.stop()

    assert (404, 400) == (blind.status_code, unknown.status_code)
    assert "known: shop\n" in unknown.text


def test_a_poller_that_stalls_is_seen():
    """An unreachable broker does not stall the poller: its snapshots still come."""
    clock = SetClock()
    settings = {"listen": "127.0.0.1:0", "clusters": {"shop": {"management": {"url": "http://127.0.0.1:1"}}}}
    exporter = App(ExporterSettings.model_validate(settings), clock)
    exporter._state.put_snapshot(small("shop"))
    moving = exporter.is_healthy()
    clock.mono += 600
    unchanged = exporter.is_healthy()
    exporter.stop()

    assert (True, False) == (moving, unchanged)
