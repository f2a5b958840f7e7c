"""Download of a bundle: the exporter's own, without secrets, with the same diagnosis elsewhere."""

import gzip
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from ackscope.__main__ import main
from ackscope.snapshot import Part, Queue
from ackscope.topology import Link
from dashboard.data import bundle
from exporter.routes import RouteContext, make_routes
from exporter.runtime.state import StateStore
from exporter.web.http import Request
from tests.dashboard.answers import Exporter
from tests.unit.diagnosis.pictures import film, stuck
from tests.unit.exporter.made import SetClock, outcome

PLANTED = ("hush1", "hush2", "hush3", "hush4", "hush5")


def packed() -> bytes:
    """Bundle from the exporter's own code, of a cluster with a stuck consumer and secrets everywhere."""
    window = film(stuck, until=120)
    latest = window.latest
    state = StateStore([latest.cluster])
    for snapshot in window.snapshots:
        odd = Queue(
            vhost="/",
            name="amqp://u:hush1@host/x",
            arguments={"x-password": "hush2", "x-uri": "http://a:hush3@b"},
            messages_ready=0,
        )
        link = Link(kind="shovel", name="s", reason='cannot reach amqp://u:hush4@far:5672, said "no"')
        queues = replace(snapshot.queues, value=(*snapshot.queues.value, odd))
        state.put_snapshot(replace(snapshot, queues=queues, links=Part(value=(link,), at=snapshot.taken)))
    reported = outcome(reason="refused by amqp://probe:hush5@shop-3:5672")
    state.put_outcomes(latest.cluster, [reported], latest.taken)
    clock = SetClock(latest.taken.mono)
    page = SimpleNamespace(respond=None, answers_at_once=None)
    parts = RouteContext(state=state, exposition=page, status=None, probe_page=None, reload=None, clock=clock)
    return make_routes(parts)["/api/v1/bundle"].handle(Request({"cluster": latest.cluster})).body


def test_it_contains_no_secret_and_has_the_same_diagnosis(exporter: Exporter, tmp_path: Path, capsys) -> None:
    """The finding is there, with the exit code of its severity."""
    exporter.raw = {"/api/v1/bundle": (200, packed())}
    taken = bundle.read(exporter.url, "shop")
    text = gzip.decompress(taken.content).decode()
    path = tmp_path / taken.name
    path.write_bytes(taken.content)
    code = main(["diagnose", "--bundle", str(path)])

    assert None is taken.problem
    assert [] == [secret for secret in PLANTED if secret in text]
    assert "amqp://u:***@host/x" in text
    assert 2 == code
    assert "stuck-consumer" in capsys.readouterr().out


@pytest.mark.parametrize("status", [400, 503])
def test_a_failure_is_one_phrase(exporter: Exporter, status: int) -> None:
    """Nothing is raised."""
    exporter.raw = {"/api/v1/bundle": (status, b"no")}

    assert f"HTTP status {status} at /api/v1/bundle" == bundle.read(exporter.url, "shop").problem


def test_an_endless_response_is_aborted(exporter: Exporter, monkeypatch: pytest.MonkeyPatch) -> None:
    """The dashboard holds a bundle in memory."""
    monkeypatch.setattr(bundle, "MAX_BYTES", 1000)
    exporter.raw = {"/api/v1/bundle": (200, b"x" * 2_000)}
    taken = bundle.read(exporter.url, "shop")

    assert b"" == taken.content
    assert "use `ackscope bundle`" in taken.problem
