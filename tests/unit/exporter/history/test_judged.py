"""Baselines in the diagnoses of the exporter, of the commands and of bundles."""

from dataclasses import replace

import orjson
import pytest
import requests

from ackscope.__main__ import main
from ackscope.clock import SystemClock
from diagnosis.engine import diagnose
from diagnosis.thresholds import Thresholds
from exporter.api.bundle import DiagnosisBundle, pack_bundle, unpack_bundle
from exporter.app import App
from exporter.settings import ExporterSettings
from tests.unit.diagnosis.consumers.films import busy
from tests.unit.diagnosis.pictures import WALL, film
from tests.unit.diagnosis.usual.bands import NoBand, NotYet, band, known
from tests.unit.exporter.broker.server import broker, serve
from tests.unit.exporter.history.shelf import row, say, shelve
from tests.unit.exporter.made import eventually

NIGHTLY = known({"ready": band(0, 40_000), "acked": band(4, 6), "published": NotYet(NoBand.FEW_DAYS, 2)}, at=WALL + 200)


def seen(baselines, frame=busy):
    """Return a cluster in which one queue grows, and its baselines."""
    window = film(frame(), until=200)
    return DiagnosisBundle(
        window=window, outcomes=(), now=window.latest.taken, thresholds=Thresholds(), baselines=baselines
    )


def judged(bundle):
    """The verdict on a bundle."""
    return diagnose(bundle.window, bundle.outcomes, bundle.now, bundle.thresholds, baselines=bundle.baselines)


def test_a_bundle_is_judged_by_what_was_usual(tmp_path, capsys):
    """The diagnosis of the bundle is identical, also by the command."""
    bundle = seen(NIGHTLY)
    read = unpack_bundle(pack_bundle(bundle))
    file = tmp_path / "shop.ackscope"
    file.write_bytes(pack_bundle(bundle))
    code = main(["diagnose", "--bundle", str(file), "--json"])
    (document,) = orjson.loads(capsys.readouterr().out)["clusters"]

    assert judged(bundle) == judged(read)
    assert ["slow-consumer"] == [each.rule for each in judged(bundle).suppressed]
    assert ["slow-consumer"] == [each["rule"] for each in document["set_aside"]]
    assert "slow-consumer" not in [each["rule"] for each in document["findings"]]
    assert 0 == code
    assert "slow-consumer" in [each.rule for each in judged(seen(None)).findings]


def test_a_bundle_holds_the_bands_that_were_requested():
    """Of thousands of queues only the needed bands are included."""
    others = known({"ready": band(0, 1)}, of=("queue", "/", "other")).bands
    bundle = seen(replace(NIGHTLY, bands={**NIGHTLY.bands, **others}))
    read = unpack_bundle(pack_bundle(bundle)).baselines

    assert NIGHTLY == read


def test_a_bundle_without_history_has_none():
    """Also one of an older ackscope, which has no place for it."""
    assert unpack_bundle(pack_bundle(seen(None))).baselines is None


def test_the_exporter_judges_by_the_rollups_that_it_is_given(tmp_path):
    """Metrics show them; without the folder in the configuration they disappear."""
    now = SystemClock().now().wall
    shelve(tmp_path, *(row(hour=hour, made_at=now) for hour in range(168)), hour=0, hours=168)
    say(tmp_path, lag_seconds=2, updated_at=SystemClock().now().iso())
    with serve(broker("4.3.6")) as server:
        document = {"listen": "127.0.0.1:0", "clusters": {"shop": {"management": {"url": server.url}}}}
        settings = ExporterSettings.model_validate({**document, "history": {"rollups": str(tmp_path)}})
        exporter = App(settings, SystemClock(), lambda: ExporterSettings.model_validate(document))
        exporter.start()
        try:
            eventually(lambda: BANDS in page(exporter) and "ackscope_pipeline_lag_seconds " in page(exporter))
            bundle = exporter.url + "/api/v1/bundle"
            eventually(lambda: requests.get(bundle, timeout=10).status_code == 200)
            content = requests.get(bundle, timeout=10).content
            exporter.reload()
            eventually(lambda: BANDS not in page(exporter))
        finally:
            exporter.stop()

    assert now == pytest.approx(unpack_bundle(content).baselines.made_at, abs=0.001)


BANDS = 'ackscope_baseline_bands{cluster="shop",scope="hour-of-week"} 1\n'


def page(exporter):
    """Its metrics."""
    return requests.get(exporter.url + "/metrics", timeout=10).text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--cluster", "shop"], "--cluster: names a cluster of the rollups; give --rollups DIR too"),
        (
            ["--rollups", "{root}/none"],
            "--rollups: no rollups in {root}/none; give the directory that `ackscope pipeline` writes",
        ),
        (["--rollups", "{root}"], "--cluster: choose one of east, west"),
        (
            ["--rollups", "{root}", "--cluster", "shop"],
            "--cluster: no rollups of 'shop' in {root}; there are east, west",
        ),
    ],
    ids=["no folder", "empty", "several", "unknown"],
)
@pytest.mark.parametrize("command", ["diagnose", "bundle"])
def test_a_mistake_is_reported_before_anything_is_looked_at(tmp_path, capsys, command, words, message):
    """In one line, with what there is."""
    shelve(tmp_path, row(), cluster="west")
    shelve(tmp_path, row(), cluster="east")
    words = [word.format(root=tmp_path) for word in words]
    output = ["-o", str(tmp_path / "x.ackscope")] if command == "bundle" else []
    code = main([command, "--management", "http://127.0.0.1:1", *output, *words])

    assert 3 == code
    assert f"ackscope {command}: {message.format(root=tmp_path)}\n" == capsys.readouterr().err


def test_a_bundle_takes_no_rollups_beside(tmp_path, capsys):
    """It has its own."""
    code = main(["diagnose", "--bundle", "x", "--rollups", str(tmp_path)])

    assert 3 == code
    assert "remove --amqp, --watch, --rollups and --cluster" in capsys.readouterr().err
