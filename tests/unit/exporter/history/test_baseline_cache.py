import logging
from pathlib import Path

import pytest

from ackscope import manifest
from ackscope.baselines import Baselines
from exporter.exposition.encode import render
from exporter.exposition.live import history
from exporter.history.baseline_cache import BaselineCache
from exporter.history.settings import HistorySettings
from exporter.history.status import PipelineLag, read_lag
from tests.unit.exporter.history.shelf import HOUR, row, say, shelve, unknown
from tests.unit.exporter.made import NOW, WALL, SetClock, eventually, promtool

STAMP = "2023-11-14T22:13:20Z"
"""`WALL` in the format of the status file."""


def past(root, *clusters, clock=None):
    """Return a baseline cache of these clusters that does not refresh by itself."""
    return BaselineCache(HistorySettings(rollups=root), clusters or ("shop",), clock or SetClock())


def high(known):
    """Return the upper edge of the only band."""
    return known.of("shop").of("queue", "/", "orders", "ready").high


def values(known, now=NOW):
    """Metric name and label values -> value."""
    families = history.collect(known.counts(), now)
    return {(it.name, *it.labels.values()): it.value for family in families for it in family.samples}


def test_without_a_folder_nothing_is_known():
    """There is no metric of baselines either."""
    known = past(None)
    known.refresh()

    assert known.of("shop") is None
    assert {} == values(known)


def test_what_the_pipeline_made_is_known_and_reported(tmp_path):
    """Bands by what they were made of, their age, and how far the pipeline is behind."""
    shelve(tmp_path, row(), row("published"), unknown())
    say(tmp_path, lag_seconds=7.5, updated_at=STAMP)
    known = past(tmp_path, "shop", "other")
    known.refresh()

    assert 9.0 == high(known)
    assert Baselines() == known.of("other")
    assert {
        ("ackscope_pipeline_lag_seconds",): 7.5,
        ("ackscope_baseline_age_seconds", "shop"): 3600,
        ("ackscope_baseline_bands", "shop", "hour-of-week"): 2,
        ("ackscope_baseline_bands", "shop", "not-yet"): 1,
    } == values(known)
    assert "" == promtool(render(history.collect(known.counts(), NOW)))


def test_bands_are_read_again_when_they_change_and_no_more_often(tmp_path, monkeypatch):
    """The catalog is asked once a minute, a file that is known never again."""
    clock, requested = SetClock(), []
    before = manifest.read
    monkeypatch.setattr(manifest, "read", lambda *words: (requested.append(clock.mono), before(*words))[1])
    shelve(tmp_path, row())
    known = past(tmp_path, clock=clock)
    known.refresh()
    first = known.of("shop")
    shelve(tmp_path, row(high=12.0), digest="two", number=2)
    clock.mono += 30
    known.refresh()
    same = known.of("shop")
    clock.mono += 31
    known.refresh()
    changed = high(known)
    clock.mono += 61
    again = known.of("shop")
    known.refresh()

    assert same is first
    assert 12.0 == changed
    assert known.of("shop") is again
    assert [1000.0, 1000.0, 1061.0, 1061.0, 1122.0] == requested


def test_the_next_hour_has_bands_of_its_own(tmp_path):
    """They are read as soon as it begins."""
    clock = SetClock()
    shelve(tmp_path, row())
    known = past(tmp_path, clock=clock)
    known.refresh()
    shelve(tmp_path, row(hour=HOUR + 1, high=20.0), hour=HOUR + 1, number=2)
    clock.mono += 3600 - WALL % 3600
    known.refresh()

    assert (HOUR + 1, 20.0) == (known.of("shop").hour_of_week, high(known))


@pytest.mark.parametrize("text", [b"{", b"[]", b'{"version": 9}'], ids=["broken", "other", "newer"])
def test_a_catalog_that_cannot_be_read_leaves_what_was_known(tmp_path, caplog, text):
    """One line in the log, not one a minute; and one when it is well again."""
    clock = SetClock()
    shelve(tmp_path, row())
    known = past(tmp_path, clock=clock)
    known.refresh()
    place = manifest.manifest_path(tmp_path, "shop")
    good = place.read_bytes()
    place.write_bytes(text)
    with caplog.at_level(logging.INFO):
        for _ in range(3):
            clock.mono += 61
            known.refresh()
        meanwhile = high(known)
        place.write_bytes(good)
        clock.mono += 61
        known.refresh()
    logged = [record.msg for record in caplog.records]

    assert 9.0 == meanwhile
    assert ["history unavailable", "history available again"] == [it["event"] for it in logged]
    assert ["shop", "shop"] == [it["source"] for it in logged]
    assert logged[0]["error"].startswith(f"{place}: ")
    assert 3600 + 4 * 61 == values(known, clock.now())["ackscope_baseline_age_seconds", "shop"]


def test_one_damaged_cluster_costs_no_other(tmp_path):
    """Each has a catalog of its own."""
    shelve(tmp_path, row(), cluster="shop")
    shelve(tmp_path, row(), cluster="other").write_bytes(b"")
    known = past(tmp_path, "other", "shop")
    known.refresh()

    assert 9.0 == high(known)
    assert known.of("other") is None


def test_lag_grows_while_the_pipeline_is_away(tmp_path):
    """It said so a minute ago; a clock that is behind makes it no smaller."""
    say(tmp_path, lag_seconds=7.5, updated_at=STAMP)
    lag = read_lag(tmp_path)

    assert PipelineLag(7.5, WALL) == lag
    assert (67.5, 7.5) == (lag.at(WALL + 60), lag.at(WALL - 60))


def test_of_several_jobs_the_latest_counts(tmp_path):
    """A fleet that is shared by jobs has a status file for each."""
    for name, lag in (("_status-a.json", 3.0), ("_status-b.json", 400.0)):
        say(tmp_path, lag_seconds=lag, updated_at=STAMP)
        (tmp_path / "_status.json").rename(tmp_path / name)

    assert PipelineLag(400.0, WALL) == read_lag(tmp_path)


@pytest.mark.parametrize(
    "status",
    [{}, {"updated_at": STAMP}, {"lag_seconds": None, "updated_at": STAMP}],
    ids=["bare", "older", "not known"],
)
def test_a_status_without_a_lag_reports_none(tmp_path, status):
    """A pipeline that knows of none."""
    say(tmp_path, **status)
    known = past(tmp_path)
    known.refresh()

    assert {} == values(known)


@pytest.mark.parametrize(
    "text",
    [b"{", b"[1]", b'{"lag_seconds": 1}', b'{"lag_seconds": 1, "updated_at": "soon"}', b'{"lag_seconds": "NaN"}'],
)
def test_a_status_that_is_none_is_one_line(tmp_path, caplog, text):
    """And no lag is reported."""
    (tmp_path / "_status.json").write_bytes(text)
    known = past(tmp_path)
    known.refresh()
    known.refresh()

    assert {} == values(known)
    assert 1 == len(caplog.records)
    assert "`ackscope pipeline stream` rewrites it" in caplog.text


def test_other_settings_count_at_once(tmp_path):
    """What was known of another folder is forgotten."""
    shelve(tmp_path / "one", row())
    shelve(tmp_path / "two", row(high=12.0))
    known = past(tmp_path / "one")
    known.refresh()
    known.apply(HistorySettings(rollups=tmp_path / "two"), ["shop"])
    between = known.of("shop")
    known.refresh()
    there = high(known)
    known.apply(HistorySettings(), ["shop"])
    known.refresh()

    assert between is None
    assert 12.0 == there
    assert known.of("shop") is None


def test_it_looks_by_itself_and_ends_when_it_is_reported(tmp_path):
    """In a thread of its own."""
    shelve(tmp_path, row())
    known = past(tmp_path)
    known.start()
    try:
        eventually(lambda: known.of("shop") is not None)
    finally:
        known.stop()

    assert 9.0 == high(known)


def test_a_defect_does_not_end_the_looking(tmp_path, monkeypatch, caplog):
    """It is logged with its traceback."""
    shelve(tmp_path, row())
    known, calls = past(tmp_path), []
    refresh = known.refresh

    def broken():
        calls.append(1)
        if len(calls) == 1:
            raise RuntimeError("a defect")
        refresh()

    monkeypatch.setattr(known, "refresh", broken)
    known.start()
    eventually(lambda: "reading the rollups failed" in caplog.text)
    known.apply(HistorySettings(rollups=Path(tmp_path)), ["shop"])
    try:
        eventually(lambda: known.of("shop") is not None)
    finally:
        known.stop()
