"""The page "History" in AppTest: empty, without history, with a story, with hostile names."""

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pandas as pd
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from ackscope.baselines import hour_of_week
from ackscope.measures import measure
from ackscope.tables import BASELINES, CHANGES
from dashboard.charts import history_charts
from dashboard.data import history_answers as reader
from dashboard.frames import history_frames
from dashboard.frames.minute_frames import RANGES, Axis
from dashboard.settings import NO_ROLLUPS, PageSettings
from dashboard.views.history import section
from tests.dashboard.answers import HOSTILE, Exporter
from tests.dashboard.history_files import document, moved, not_yet, put, row, write_answers, write_story
from tests.dashboard.page_text import errors, words
from tests.dashboard.rollup_files import queue_row, this_minute

Open = Callable[..., AppTest]

SCRIPT = """
from dataclasses import replace
from dashboard.frame import page_frame
from dashboard.pages import PAGES
page_frame.run([replace(page, path="") for page in PAGES if page.path == "history"])
"""


@pytest.fixture
def visit(monkeypatch: pytest.MonkeyPatch, exporter: Exporter) -> Open:
    """Run the page once: `visit(rollups, at="2026-03-01T12:04")`; other arguments are query parameters."""

    def run(root: Path, **query: str) -> AppTest:
        for name, value in PageSettings(exporter.url, root).to_environ().items():
            monkeypatch.setenv(name, value)
        st.cache_data.clear()
        st.cache_resource.clear()
        page = AppTest.from_string(SCRIPT, default_timeout=60)
        for name, value in query.items():
            page.query_params[name] = value
        return page.run()

    return run


def test_without_a_history_it_says_how_to_get_one(visit: Open, tmp_path: Path) -> None:
    """With the command and the folder; nothing is reported as healthy."""
    page = visit(tmp_path / "none")
    said = words(page)

    assert [] == errors(page)
    for text in (
        "The history has not been analysed yet",
        f"ackscope pipeline stream --landing DIR --rollups {tmp_path / 'none'}",
        "The reports have no queues yet",
    ):
        assert text in said


def test_without_rollups_it_says_how_to_get_a_history(visit: Open) -> None:
    """One sentence and one command, not a reason for each section."""
    page = visit(NO_ROLLUPS)
    said = words(page)

    assert [] == errors(page)
    assert "this page was started without --rollups" in said
    assert "ackscope pipeline stream --landing DIR --rollups DIR" in said
    assert "The history has not been analysed yet" not in said


def test_missing_results_have_a_reason(visit: Open, tmp_path: Path) -> None:
    """In each section; no number is made up."""
    write_answers(tmp_path, not_yet())
    page = visit(tmp_path)
    said = words(page)

    assert [] == errors(page)
    assert [] == list(page.metric)
    for text in (
        "Unknown: there are no probe messages in this time.",
        "Unknown: there is no data of the last two weeks.",
        "No findings in the last 30 days.",
        "Unknown whether any is active",
    ):
        assert text in said


def test_changes_start_with_their_cause(visit: Open, tmp_path: Path) -> None:
    """The first change with before and after; then the reports, each with its data range."""
    write_story(tmp_path)
    page = visit(tmp_path, around="1h")
    said = words(page)

    assert [] == errors(page)
    for text in (
        "First change: queue 'orders' in vhost '/'",
        "ack rate fell from 120/s to 0/s; messages ready rose from 3 to 9,000",
        "messages ready: 3 → 9,000 (90 times the scatter before, for 1 h 30 min so far)",
        "stuck-consumer (critical); its channel '10.0.0.7:4001': messages unacked rose from 3 to 50",
        "03:00 to 06:00 UTC (9 of 9)",
        "39 more;",
        "Calculation: 100 ms lies inside a bucket.",
        "In time: 99.75 % to 99.95 %",
        "inconclusive: between two buckets",
        "free disk of node 'orders': reaches its limit",
        "not yet: 2 of 4 days",
        "Data: 2026-03-02 00:00 to 2026-03-15 00:00 UTC, gaps of 5 h in total.",
        "▲ 2 times",
    ):
        assert text in said
    lists = [_ranked(page), _ranked(visit(tmp_path, around="1h", order="cause"))]

    assert [["invoices", "orders"], ["orders", "invoices"]] == lists


def _ranked(page: AppTest) -> list[str]:
    """The names of the changed objects, in the order of the list."""
    titles = [it.value for it in page.markdown if it.value.startswith("**")]
    return [name for title in titles for name in ("orders", "invoices") if f"queue '{name}'" in title]


def test_a_time_without_data_is_unknown(visit: Open, tmp_path: Path) -> None:
    """A time with data and without changes is reported as such."""
    write_story(tmp_path)

    assert "Unknown: no data from 2026-01-01 09:00" in words(visit(tmp_path, at="2026-01-01T12:00"))
    quiet = f"{this_minute() - timedelta(hours=12):%Y-%m-%dT%H:%M}"
    assert "No changes from" in words(visit(tmp_path, at=quiet, around="1h"))


def test_time_and_choices_are_in_the_address(visit: Open, tmp_path: Path) -> None:
    """So that a link shows the same view to a colleague."""
    write_story(tmp_path)
    page = visit(tmp_path)
    page.selectbox(key="around-choice").set_value("12h").run()
    page.selectbox(key="worst-choice").set_value("confirm").run()
    page.selectbox(key="band-measure").set_value("acked").run()

    assert [] == errors(page)
    assert {"around": "12h", "by": "confirm", "measure": "acked"} == {
        name: page.query_params[name] for name in ("around", "by", "measure")
    }
    assert "No baseline yet: 2 of 3 days." in words(page)


def test_invalid_parameters_are_ignored(visit: Open, tmp_path: Path) -> None:
    """A time in the future means now."""
    write_story(tmp_path)
    page = visit(tmp_path, at="2999-01-01T00:00", around="century", by="size", measure="mood", range="aeon")

    assert [] == errors(page)
    assert "First change" in words(page)


def test_the_queue_of_the_address_is_shown_over_its_band(visit: Open, tmp_path: Path) -> None:
    """The number of points outside is in the text; the newest minute may be incomplete, and is not shown."""
    write_story(tmp_path)
    page = visit(tmp_path, queue="orders", vhost="/", range="1h")

    assert [] == errors(page)
    assert "Outside the band: 29 of" in words(page)


def test_a_damaged_file_is_named_and_hides_nothing_else(visit: Open, tmp_path: Path) -> None:
    """Changes cannot be read; the reports can."""
    write_story(tmp_path)
    broken = next((tmp_path / CHANGES.name).rglob("*.parquet"))
    broken.write_bytes(b"not parquet")
    page = visit(tmp_path)

    assert [] == errors(page)
    assert "Cannot read the history" in words(page)
    assert "In time: 99.75 % to 99.95 %" in words(page)


@pytest.mark.parametrize(
    ("text", "said"),
    [("{", "is not a report document"), ("[]", "is not a report document"), ('{"version": 9}', "has version 9")],
)
def test_an_invalid_report_document_is_named(visit: Open, tmp_path: Path, text: str, said: str) -> None:
    """The rest of the page works."""
    path = write_answers(tmp_path, document())
    path.write_text(text)
    page = visit(tmp_path)

    assert [] == errors(page)
    assert said in page.warning[0].value
    assert str(path) in page.warning[0].value


def test_reports_of_another_pipeline_version_are_accepted(visit: Open, tmp_path: Path) -> None:
    """A missing section says so."""
    write_answers(tmp_path, {"version": 1, "made_at": "2026-03-01T00:00:00Z"})
    page = visit(tmp_path)

    assert [] == errors(page)
    assert "Not available" in words(page)
    assert "stale: is `ackscope pipeline stream` running?" in words(page)


def test_names_with_markup_are_escaped_on_the_whole_page(visit: Open, tmp_path: Path) -> None:
    """No element passes a name to Markdown unescaped."""
    write_story(tmp_path, HOSTILE)
    page = visit(tmp_path, around="1h", queue=HOSTILE, vhost="/")
    bare = [
        element.value
        for kind in ("header", "subheader", "markdown", "caption", "error", "warning")
        for element in page.get(kind)
        if "<script>" in element.value and "`` " not in element.value
    ]

    assert [] == errors(page)
    assert [] == bare
    assert "First change: queue" in words(page)
    assert words(page).count("<script>") > 8


def test_changes_are_read_from_cataloged_files_only(tmp_path: Path) -> None:
    """A file that the catalog does not list is ignored."""
    put(tmp_path, CHANGES, [moved(30, "old", "ready", 1.0, 9.0)])
    put(tmp_path, CHANGES, [moved(30, "new", "ready", 1.0, 9.0)])
    end = this_minute()
    found = reader.changes(tmp_path, "shop", end - timedelta(hours=1), end)

    assert ["new"] == [it.name for it in found.shifts]
    assert (True, 0, None) == (found.analysed, found.hours_with_data, found.problem)


def test_a_band_is_that_of_its_hour() -> None:
    """Rates are per second; a minute without a value stays empty."""
    end = this_minute()
    axis = Axis(end - timedelta(minutes=3), end, 1)
    minutes = pd.DataFrame([queue_row(axis.start, "q", 7), queue_row(end - timedelta(minutes=1), "q", 9)])
    numbers = {hour_of_week(at.timestamp()) for at in axis.points}
    bands = pd.DataFrame(
        [
            row(BASELINES, hour_of_week=it, measure="published", scope="hour-of-day", low=1.0, middle=2.0, high=3.0)
            for it in numbers
        ]
    )
    lines = history_frames.with_band(minutes, bands, axis, "published")

    assert [10.0, 10.0] == [lines["value"].iloc[0], lines["value"].iloc[2]]
    assert pd.isna(lines["value"].iloc[1])
    assert [1.0, 2.0, 3.0] == list(lines[["low", "middle", "high"]].iloc[0])
    assert history_frames.missing_band_reason(bands, "published") is None
    assert "no history of this queue" == history_frames.missing_band_reason(bands, "ready")


def test_a_band_of_latency_is_drawn_in_milliseconds() -> None:
    """The axis starts at zero, and values outside have a mark of their own."""
    axis = Axis.until(this_minute(), RANGES["15m"])
    lines = pd.DataFrame({"value": 0.2, "low": 0.0, "middle": 0.05, "high": 0.1}, index=axis.points)
    figure = history_charts.band(lines, axis, measure("confirm_p99"))
    seen, outside = (next(it for it in figure.data if it.name == name) for name in ("actual", "outside"))

    assert 200.0 == seen.y[0] == outside.y[0]
    assert ("tozero", "ms") == (figure.layout.yaxis.rangemode, figure.layout.yaxis.title.text)
    assert "diamond-open" == outside.marker.symbol


@pytest.mark.parametrize(
    ("value", "text"), [(None, "\N{EN DASH}"), (1.0, "100 %"), (0.99999, "99.999 %"), (0.999996, "99.999 %")]
)
def test_a_share_is_never_rounded_up_to_100(value: float | None, text: str) -> None:
    """99.9996 % is not 100 %."""
    assert text == section.share(value)


def test_the_synthetic_document_is_json() -> None:
    """With the version that the dashboard expects."""
    assert json.loads(json.dumps(document()))["version"] == reader.VERSION


def test_the_last_backtest_is_shown(visit: Open, tmp_path: Path) -> None:
    """The settings side by side, the proposal as configuration, and what cannot be replayed; names stay names."""
    score = {"begins": 78, "false": 40, "false_a_week": 20.0, "found": 4, "lost": 14, "flapping": 3, "again": 33}
    times = {"earlier_seconds": -180.0, "later_seconds": 0.0, "latest_seconds": 0.0, "values": {}}
    made = {
        "version": 1,
        "cluster": "shop",
        "made_at": "2026-03-15T00:00:00Z",
        "asked": {"rules": ["queue-overload"]},
        "data": {"first": "2026-03-01T00:00:00Z", "last": "2026-03-14T00:00:00Z"},
        "settings": [{"setting": "present", **score, **times}, {"setting": HOSTILE, **score, **times, "false": 17}],
        "meaning": "begins: a warning or worse began.",
        "configuration": "diagnosis:\n  overrides: []",
        "told": [f"{HOSTILE}: not replayable: needs connections"],
    }
    write_story(tmp_path)
    path = tmp_path / reader.BACKTEST_FOLDER / "shop.json"
    path.parent.mkdir()
    path.write_text(json.dumps(made))
    page = visit(tmp_path)
    said = words(page)

    assert [] == errors(page)
    for text in ("Backtest: other thresholds", "begins: a warning", "needs connections", "window.hurt=1"):
        assert text in said
    assert ["diagnosis:\n  overrides: []"] == [it.value for it in page.code if "overrides" in it.value]


def test_a_damaged_backtest_is_reported(visit: Open, tmp_path: Path) -> None:
    """With the command that makes another; the rest of the page is there."""
    write_story(tmp_path)
    path = tmp_path / reader.BACKTEST_FOLDER / "shop.json"
    path.parent.mkdir()
    path.write_text("{")
    said = words(visit(tmp_path))

    assert "recreate it with ackscope pipeline backtest" in said.replace("`", "")
