import socket
from collections.abc import Iterator

import pytest

from ackscope.findings import Severity
from ackscope.records import ProbeState
from ackscope.snapshot import Alarm
from dashboard.data.exporter_client import ExporterClient as Client
from tests.dashboard import answers
from tests.dashboard.answers import Exporter


@pytest.fixture
def silent() -> Iterator[str]:
    """URL of a server that accepts connections and never responds."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def test_responses_become_dataclasses_of_the_kernel(exporter: Exporter) -> None:
    """Findings, probe outcomes, totals and nodes, typed."""
    exporter.clusters = (answers.sick(),)
    live = Client(exporter.url).read()

    assert live.findings.response
    assert live.probes.response
    assert live.snapshot.response
    found, probes, vitals = (feed.response.clusters[0] for feed in (live.findings, live.probes, live.snapshot))
    assert tuple(answers.sick().findings)[1].summary == found.findings[1].summary
    assert (1, 1, 0) == tuple(found.number(severity) for severity in Severity)
    assert ProbeState.FAILED in {outcome.state for outcome in probes.probes}
    assert answers.NODES == vitals.nodes.value
    assert 12_845 == vitals.overview.value.messages_ready


def test_alarms_of_nodes_and_health_checks_are_one_list(exporter: Exporter) -> None:
    """An alarm reported by both is listed once."""
    alarm = Alarm(node="rabbit@shop-1", resource="memory")
    exporter.clusters = (answers.healthy(alarms=(alarm, Alarm(node="rabbit@shop-2", resource="disk"))),)
    vitals = Client(exporter.url).read().snapshot.response

    assert vitals
    assert (alarm, Alarm(node="rabbit@shop-2", resource="disk")) == vitals.clusters[0].alarms


def test_a_refused_connection_has_the_error_of_the_operating_system() -> None:
    """With address and start time, without names of libraries; the other endpoints are not requested."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    live = Client(f"http://127.0.0.1:{port}").read()

    assert f"no answer from 127.0.0.1:{port} (connection refused)" == live.findings.outage.reason
    assert live.findings.outage.reason == live.probes.outage.reason == live.snapshot.outage.reason
    assert live.findings.response is None


def test_a_silent_server_costs_one_timeout(silent: str) -> None:
    """Not one per endpoint."""
    live = Client(silent, timeouts=(1.0, 0.05)).read()

    assert "connected, but no response in time" in live.findings.outage.reason
    assert live.findings.outage.reason == live.snapshot.outage.reason


def test_the_last_response_and_the_first_failure_stay(exporter: Exporter) -> None:
    """The outage starts at the first failure; the last data stays, with its time; recovery needs no restart."""
    client = Client(exporter.url)
    good = client.read()
    exporter.raw = {f"/api/v1/{name}": (503, b"not ready") for name in ("findings", "probes", "snapshot")}
    first, second = client.read(), client.read()
    exporter.raw = {}
    back = client.read()

    assert good.findings.response == second.findings.response
    assert good.findings.received == second.findings.received
    assert first.findings.outage == second.findings.outage
    assert "HTTP status 503 at /api/v1/findings" == second.findings.outage.reason
    assert back.findings.outage is None


def test_one_bad_document_does_not_hide_the_others(exporter: Exporter) -> None:
    """Findings are shown even if probe results cannot be read."""
    exporter.raw = {"/api/v1/probes": (200, b'{"now": "x", "clusters": [{"cluster": 7}]}')}
    live = Client(exporter.url).read()

    assert live.findings.outage is None
    assert live.snapshot.outage is None
    assert live.probes.outage.reason.startswith("/api/v1/probes: not the response of an exporter")


def test_another_web_server_is_not_an_exporter(exporter: Exporter) -> None:
    """A wrong URL is reported."""
    exporter.raw = {"/api/v1/findings": (200, b"<html>hello</html>")}

    assert "not the response of an exporter" in Client(exporter.url).read().findings.outage.reason


def test_fields_of_a_newer_exporter_are_ignored(exporter: Exporter) -> None:
    """Additional fields are not an error."""
    exporter.raw = {"/api/v1/findings": (200, b'{"now": "x", "later": 1, "clusters": [{"cluster": "a", "more": {}}]}')}
    live = Client(exporter.url).read()

    assert ("a",) == live.clusters


def test_a_proxy_of_the_environment_is_not_used(exporter: Exporter, monkeypatch: pytest.MonkeyPatch) -> None:
    """The exporter is on the local network; this request would fail with the proxy."""
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)

    assert Client(exporter.url).read().findings.outage is None


def test_its_clock_may_differ_from_ours(exporter: Exporter) -> None:
    """Ages are computed with the clock of the exporter."""
    exporter.raw = {"/api/v1/findings": (200, b'{"now": "2001-09-09T01:46:40Z", "clusters": []}')}
    feed = Client(exporter.url).read().findings

    assert feed.received
    assert 1_000_000_000 == feed.exporter_time(feed.received)
