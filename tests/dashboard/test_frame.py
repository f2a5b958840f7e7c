"""The frame of every page: cluster, time range, health light and search; and the page "Fleet"."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from ackscope.clock import Instant, SystemClock
from ackscope.findings import Severity
from ackscope.records import ProbeState, Quantiles
from dashboard.data.exporter_client import ExporterClient
from dashboard.data.model import ExporterState
from dashboard.format.escape import literal, visible
from dashboard.format.timezones import Zone
from dashboard.frame import cluster_choice, health_light
from dashboard.frames import search_hits
from dashboard.frames.minute_frames import RANGES, Axis, Range
from tests.dashboard import answers
from tests.dashboard.answers import HOSTILE, Cluster, Exporter
from tests.dashboard.broker_lists import shop
from tests.dashboard.page_text import errors, words

Open = Callable[..., AppTest]
NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
INFO = replace(answers.overflow(), severity=Severity.INFO)
SEVERAL = (
    answers.healthy("billing"),
    answers.healthy("notes", findings=(INFO,)),
    answers.healthy("old", age=600.0),
    answers.healthy("full", findings=(answers.overflow(),)),
    answers.healthy("worse", findings=(answers.overflow(),) * 2),
    answers.sick("shop"),
)
WORST_FIRST = ["shop", "worse", "full", "old", "notes", "billing"]


def state_of(exporter: Exporter, *clusters: Cluster) -> tuple[ExporterState, Instant]:
    """The state of the exporter with these clusters, and now."""
    exporter.clusters = clusters
    return ExporterClient(exporter.url).read(), SystemClock().now()


def test_clusters_are_listed_the_worst_first(exporter: Exporter) -> None:
    """Stale data is worse than a hint; clusters in the same state keep their order."""
    state, now = state_of(exporter, *SEVERAL, answers.healthy("zoo"))
    ranked = cluster_choice.worst_first(state.clusters, state, now)

    assert [*WORST_FIRST, "zoo"] == list(ranked)
    assert "2 warnings" == ranked["worse"].text


def test_the_picker_names_the_state_of_each_cluster(visit: Open, exporter: Exporter) -> None:
    """A cluster that the address does not know is reported."""
    exporter.clusters = SEVERAL
    page = visit("queues", exporter.url, cluster="nowhere")
    picker = page.selectbox(key="cluster-choice")

    assert [] == errors(page)
    assert "shop: 1 critical, 1 warning" == picker.options[0]
    assert "billing: Nothing wrong found" == picker.options[-1]
    assert "shop" == picker.value
    assert "Unknown cluster in the address" in words(page)


@pytest.mark.parametrize(
    ("changes", "data", "probes"),
    [
        ({}, "data 3 s old", "2 probes fine"),
        ({"age": 95.0}, "data 1 min old (stale)", "2 probes fine"),
        ({"age": None}, "no data yet", "2 probes fine"),
        ({"error": "refused"}, "broker unreachable", "2 probes fine"),
        ({"probes_up": False}, "data 3 s old", "probes down"),
        ({"probes_age": 95.0}, "data 3 s old", "probes stale"),
        ({"probes": ()}, "data 3 s old", "no probes"),
        ({"probes": (answers.probe(doubtful="late"),)}, "data 3 s old", "1 of 1 probe doubtful"),
        (
            {"probes": (answers.probe(), answers.probe(state=ProbeState.FAILED, reason="refused"))},
            "data 3 s old",
            "1 of 2 probes cannot measure",
        ),
    ],
)
def test_the_light_says_what_is_old_or_missing(
    exporter: Exporter, changes: dict[str, Any], data: str, probes: str
) -> None:
    """In words; the reason is one click away."""
    state, _ = state_of(exporter, answers.healthy(**changes))
    now = state.findings.received
    assert now is not None
    lights = (health_light.data_light(state, "shop", now), health_light.probe_light(state, "shop", now))

    assert [data, probes] == [light.words for light in lights]


def test_an_unreachable_exporter_outshines_everything(visit: Open, exporter: Exporter) -> None:
    """On every page."""
    exporter.raw = {"/api/v1/findings": (503, b"")}
    page = visit("nodes", exporter.url)

    assert [] == errors(page)
    assert "Exporter unreachable: HTTP status 503 at /api/v1/findings" in words(page)


def test_a_fixed_range_is_used_as_it_is() -> None:
    """A live one moves with the time."""
    fixed = Range.between(NOON, NOON + timedelta(minutes=61))
    later = NOON + timedelta(days=9, seconds=40)

    assert (NOON, NOON + timedelta(minutes=61)) == fixed.at(later) == Axis.until(later, fixed).utc
    assert (NOON + timedelta(days=9, minutes=-60), NOON + timedelta(days=9)) == RANGES["1h"].at(later)
    assert "from 2026-03-01 13:00 to 14:01 CET" == fixed.words(Zone("Europe/Berlin"))
    assert "in the last 1 hour" == RANGES["1h"].words()


@given(minutes=st.integers(5, 7 * 1440))
def test_a_fixed_range_has_few_points_that_cover_it(minutes: int) -> None:
    """At most 180, and less than one step more than the range."""
    end = NOON + timedelta(minutes=minutes)
    axis = Axis.until(end, Range.between(NOON, end))

    assert len(axis.points) <= 180
    assert end <= axis.end < end + timedelta(minutes=axis.step)


@pytest.mark.parametrize("path", ["queues", "history", "fleet"])
def test_every_page_has_the_range_of_the_address(visit: Open, exporter: Exporter, path: str) -> None:
    """A long one is truncated to 7 days; the button makes it live again."""
    start = SystemClock().now().utc.replace(second=0, microsecond=0) - timedelta(days=20)
    times = {"from": f"{start:%Y-%m-%dT%H:%M}", "to": f"{start + timedelta(days=9):%Y-%m-%dT%H:%M}"}
    page = visit(path, exporter.url, **times)

    assert [] == errors(page)
    shown = page.selectbox(key="range-choice").options[0]
    assert f"{start:%Y-%m-%d %H:%M} to {start + timedelta(days=7):%Y-%m-%d %H:%M} UTC" == shown
    page.button(key="clear-range").click().run()
    assert "1h" == page.selectbox(key="range-choice").value
    assert {"from", "to"}.isdisjoint(page.query_params)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ({"until": "2026-03-01T12:00", "hours": "1h"}, {"from": "2026-03-01T11:00", "to": "2026-03-01T12:00"}),
        ({"until": "2026-03-01T12:00"}, {"from": "2026-03-01T06:00", "to": "2026-03-01T12:00"}),
        ({"hours": "24h"}, {"range": "24h"}),
        ({"hours": "9y", "until": "never"}, {}),
    ],
)
def test_older_links_to_the_timeline_lead_to_the_same_time(
    visit: Open, exporter: Exporter, older: dict[str, str], newer: dict[str, str]
) -> None:
    """Their parameters are replaced by those of all pages."""
    page = visit("timeline", exporter.url, **older)

    assert [] == errors(page)
    assert newer == {name: "".join(value) for name, value in page.query_params.items() if name != "cluster"}


QUEUES = pd.DataFrame(
    {
        "vhost": ["/", "/", "eu", "/"],
        "name": ["orders", "orders.dead", "new-orders", HOSTILE],
        "messages_ready": [5, None, 900, 1],
    },
    dtype=object,
)
CONSUMERS = pd.DataFrame(
    {"queue": ["orders", "orders.dead", "stock"], "client": ["Worker-1", "Worker-1", ""], "host": ["10.1.4.17", "", ""]}
)
CONNECTIONS = pd.DataFrame(
    {
        "name": ["a", "b", "c"],
        "client_name": ["Worker-1", "cashier", None],
        "user": ["guest", "guest", "ann"],
        "peer_host": ["10.1.4.17", "10.9.9.9", "10.9.9.9"],
    },
    dtype=object,
)
REPORTED = (("shop", (answers.stuck("orders"),)), ("billing", (answers.overflow(),)))


def found(text: str, current: str = "shop") -> list[tuple[str, str]]:
    """Kind and text of the hits."""
    hits = search_hits.search(text, REPORTED, current, QUEUES, CONSUMERS, CONNECTIONS, ["rabbit@shop-1"])
    return [(hit.kind, hit.text) for hit in hits]


@pytest.mark.parametrize(
    ("text", "hits"),
    [
        ("orders.d", [("Queue", "orders.dead")]),
        ("WORKER", [("Client", "Worker-1")]),
        ("4.17", [("Host", "10.1.4.17")]),
        ("cashier", [("Client", "cashier")]),
        ("ann@", [("Client", "ann@10.9.9.9")]),
        ("shop-1", [("Node", "rabbit@shop-1")]),
        ("bill", [("Cluster", "billing")]),
        ("overflow", [("Finding", "pub-nacked-overflow")]),
        ("consumers acknowledged none", [("Finding", "stuck-consumer")]),
        ("new orders", [("Queue", "new-orders")]),
        (HOSTILE, [("Queue", HOSTILE)]),
        ("nowhere", []),
        ("[a]", [("Queue", HOSTILE)]),
    ],
)
def test_the_search_finds_each_kind(text: str, hits: list[tuple[str, str]]) -> None:
    """By parts of names in any case; a finding also by its sentence; a client that only publishes, too."""
    assert hits == found(text)


def test_the_search_works_without_a_chosen_cluster() -> None:
    """Its lists are empty then."""
    none = pd.DataFrame()

    hits = search_hits.search("bill", REPORTED, None, none, none, none, [])

    assert ["Cluster"] == [hit.kind for hit in hits]


def test_the_best_hits_come_first() -> None:
    """The name itself, then names that start with the text, then the fullest queue."""
    assert [("Queue", "orders"), ("Queue", "orders.dead"), ("Queue", "new-orders")] == found("orders")[1:]
    assert ("Finding", "stuck-consumer") == found("orders")[0]
    assert ["pub-nacked-overflow", "stuck-consumer"] == [name for _, name in found("", "billing")]


def test_the_search_leads_to_the_page_of_a_hit(visit: Open, exporter: Exporter) -> None:
    """Each hit is a link; hostile names are text."""
    exporter.clusters = (answers.sick(),)
    exporter.lists = {"shop": shop(HOSTILE, HOSTILE)}
    page = visit("nodes", exporter.url)
    page.button(key="search").click().run()

    assert [] == errors(page)
    assert "critical, queue 'orders.invoices'" in words(page)
    page.session_state["search-text"] = "window.hurt"
    page.button(key="search").click().run()
    assert [] == errors(page)
    assert [f"Queue {literal(HOSTILE)}"] == [link.proto.label for link in page.get("page_link")]


def test_the_fleet_has_a_row_per_cluster(visit: Open, exporter: Exporter) -> None:
    """The worst first; what is unknown is not zero."""
    slow = answers.probe("quorum", confirm=Quantiles(count=9, p50=0.001, p99=0.0755, max=0.1))
    exporter.clusters = (
        *SEVERAL,
        answers.healthy("slow", probes=(answers.probe(), slow)),
        Cluster(name="new", age=None),
    )
    page = visit("fleet", exporter.url)
    rows = page.dataframe[0].value.set_index("cluster")

    assert [] == errors(page)
    assert [*WORST_FIRST[:4], "new", *WORST_FIRST[4:], "slow"] == list(rows.index)
    assert "stuck-consumer: queue 'orders.invoices' in vhost '/' on rabbit@shop-2"[:40] == rows["worst"]["shop"][:40]
    assert ("CRITICAL", 161, 0, 12_845) == tuple(
        rows[name]["shop"] for name in ("state", "publish", "deliver", "ready")
    )
    assert rows["since"]["shop"].endswith(" min")
    assert 75.5 == rows["confirm"]["slow"]
    assert ("UNKNOWN", "none") == (rows["state"]["new"], rows["age"]["new"])
    assert rows[["publish", "deliver", "ready", "confirm"]].loc["new"].isna().all()
    assert "10 min (stale)" == rows["age"]["old"]


def test_hostile_clusters_are_only_text_in_the_fleet(visit: Open, exporter: Exporter, tmp_path: Path) -> None:
    """Nothing turns the direction of the text around."""
    exporter.clusters = (answers.hostile(HOSTILE), answers.healthy())
    page = visit("fleet", exporter.url, tmp_path)

    assert [] == errors(page)
    assert [visible(HOSTILE), "shop"] == list(page.dataframe[0].value["cluster"])
    assert "\u202e" not in "".join(page.selectbox(key="cluster-choice").options)
