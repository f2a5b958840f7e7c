"""All pages except the first in AppTest: healthy, sick, empty, with hostile names."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.pages import PAGES
from dashboard.ui import cache
from dashboard.ui.layout import DashboardPage
from tests.dashboard import answers
from tests.dashboard.answers import HOSTILE, Exporter
from tests.dashboard.broker_lists import shop
from tests.dashboard.page_text import errors, html_table, words

Open = Callable[..., AppTest]
LISTS = ("queues", "consumers", "redeliveries", "nodes", "topology")


@pytest.mark.parametrize("shown", PAGES, ids=lambda page: page.title)
def test_a_page_works_without_an_exporter(visit: Open, shown: DashboardPage) -> None:
    """It has a heading, says in one line what it is for, and that there is no data."""
    page = visit(shown.path, "http://127.0.0.1:1")

    assert [] == errors(page)
    assert shown.title == page.title[0].value
    assert shown.meaning in {caption.value for caption in page.caption}
    assert "Exporter unreachable" in words(page)


@pytest.mark.parametrize("path", [page.path for page in PAGES if page.path])
def test_a_page_works_before_the_first_poll(visit: Open, exporter: Exporter, path: str) -> None:
    """The exporter responds, but has no lists yet."""
    page = visit(path, exporter.url)

    assert [] == errors(page)
    if path in LISTS:
        assert "data: not polled yet" in words(page)


@pytest.mark.parametrize("path", [page.path for page in PAGES if page.path])
def test_hostile_names_are_only_text(visit: Open, exporter: Exporter, rollups: Path, path: str) -> None:
    """On every page."""
    exporter.clusters = (answers.hostile(),)
    exporter.lists = {"shop": shop(HOSTILE, HOSTILE)}
    page = visit(path, exporter.url, rollups, queue=HOSTILE, vhost=HOSTILE)

    assert [] == errors(page)
    assert "\u202e" not in words(page)


def test_the_most_urgent_queues_come_first(visit: Open, exporter: Exporter) -> None:
    """Then redelivered messages, then depth; queues of probes are hidden."""
    exporter.clusters = (answers.sick(),)
    exporter.lists = {"shop": shop(many=20)}
    page = visit("queues", exporter.url)
    rows = html_table(page)

    assert [] == errors(page)
    assert ["orders.invoices", "retry.loop", "idle.00000"] == list(rows["Queue"][:3])
    assert "stuck-consumer" == rows["Finding"].iloc[0]
    assert 23 == len(rows)
    assert ["12,418", "50", "13.9"] == list(rows[["Ready", "Unacked", "Growing /s"]].iloc[0])
    assert "23 queues, and 1 of probes" in words(page)


def test_ten_thousand_queues_can_be_searched(visit: Open, exporter: Exporter) -> None:
    """The first matches are shown, with the number of all matches."""
    exporter.lists = {"shop": shop(many=10_000)}
    page = visit("queues", exporter.url, find="idle.000[0-4]", sort="name")

    assert [] == errors(page)
    assert "10,003 queues, and 1 of probes, 50 match" in words(page)
    assert "idle.00000" == html_table(page)["Queue"].iloc[0]
    assert 300 == len(html_table(visit("queues", exporter.url)))


def test_an_invalid_pattern_is_matched_as_text(visit: Open, exporter: Exporter) -> None:
    """With a note, and without an error."""
    exporter.lists = {"shop": shop()}
    page = visit("queues", exporter.url, find="orders[")

    assert [] == errors(page)
    assert "not a regular expression" in words(page)
    assert 0 == len(html_table(page))


def test_queue_details(visit: Open, exporter: Exporter) -> None:
    """Metrics, findings and consumers."""
    exporter.clusters = (answers.sick(),)
    exporter.lists = {"shop": shop()}
    page = visit("queues", exporter.url, queue="orders.invoices", vhost="/")
    said = words(page)

    assert [] == errors(page)
    for text in ("Ready: 12,418", "Published /s: 13.9", "Acked /s: 0.0", "stuck-consumer", "1 consumer"):
        assert text in said
    for text in (
        "stands still",
        "Unacked messages against prefetch",
        "Ledger, last 30 s",
        "No policy. Set: nothing.",
        "Where its messages come from and go to",
    ):
        assert text in said
    assert "pub-nacked-overflow" not in said
    flow, consumers = (table.value for table in page.dataframe)
    assert ["invoice-worker"] == list(consumers["client"])
    assert "exchange shop" in set(flow["from"])


def test_topology_starts_with_the_whole_virtual_host(visit: Open, exporter: Exporter) -> None:
    """Queues of probes come last, although they are first in the alphabet."""
    exporter.lists = {"shop": shop()}
    page = visit("topology", exporter.url)

    assert [] == errors(page)
    (queues,) = (box for box in page.selectbox if box.label == "Queue")
    assert ("", "orders.invoices") == (queues.value, queues.options[1])
    assert "ackscope.probe" in queues.options[-1]
    assert "Flow of messages in virtual host" in words(page)


def test_topology_of_one_queue(visit: Open, exporter: Exporter) -> None:
    """The address selects it; the lines are a table, too."""
    exporter.lists = {"shop": shop()}
    page = visit("topology", exporter.url, queue="orders.invoices", vhost="/")
    lines = page.dataframe[0].value

    assert [] == errors(page)
    assert "queue orders.invoices" in set(lines["to"])
    assert {"exchange shop", "exchange all"} <= set(lines["from"])
    assert "consumer invoice-worker" in set(lines["to"])


def test_a_deleted_queue_is_reported(visit: Open, exporter: Exporter) -> None:
    """A link may outlive its queue."""
    exporter.lists = {"shop": shop()}
    page = visit("queues", exporter.url, queue="was.here")

    assert [] == errors(page)
    assert "it does not exist now" in words(page)


def test_now_counts_the_queues_of_probes_beside_the_others(visit: Open, exporter: Exporter) -> None:
    """As the page Queues does."""
    exporter.lists = {"shop": shop()}
    said = words(visit("", exporter.url))

    assert "Queues: 213" in said
    assert "and 1 of probes" in said


def test_consumers_are_sorted_by_finding_and_share_of_prefetch(visit: Open, exporter: Exporter) -> None:
    """With the risks of how they consume."""
    exporter.clusters = (answers.sick(),)
    exporter.lists = {"shop": shop()}
    page = visit("consumers", exporter.url)
    rows, said = page.dataframe[0].value, words(page)

    assert [] == errors(page)
    first = rows.iloc[0]
    assert ("stuck-consumer", 100.0, ["full"]) == (first["finding"], first["held"], list(first["limits"]))
    assert ("invoice-worker", "10.1.4.17") == (first["client"], first["host"])
    assert {"automatic ack", "no limit", ""} == set(rows["hazard"])
    for text in ("Consumers: 3", "Full: 1", "No prefetch limit: 1", "Automatic ack: 1", "Not active: 1"):
        assert text in said


def test_a_search_shows_connections_that_only_publish(visit: Open, exporter: Exporter) -> None:
    """The whole list is that of consumers."""
    exporter.lists = {"shop": shop()}
    listed = visit("consumers", exporter.url)
    found = visit("consumers", exporter.url, find="till")
    said = words(found)

    assert [] == errors(listed) + errors(found)
    assert "connection" not in [each.value.split()[-1] for each in listed.subheader]
    assert "1 connection" in said
    row = found.dataframe[-1].value.iloc[0]
    assert ("till", 3.0, "blocked", "2 min ago") == (row["client"], row["published"], row["state"], row["connected"])


def test_redeliveries_name_queue_share_and_dead_letters(visit: Open, exporter: Exporter) -> None:
    """Requeue loops, and dead letters without a target."""
    exporter.lists = {"shop": shop()}
    page = visit("redeliveries", exporter.url)
    rows = page.dataframe[0].value

    assert [] == errors(page)
    assert (["retry.loop"], [100.0]) == (list(rows["queue"]), list(rows["ratio"]))
    assert "no queue is bound to it: dead letters are lost" in words(page)


def test_redeliveries_over_time_come_before_dead_letter_routes(visit: Open, exporter: Exporter) -> None:
    """A cluster with many routes would hide them."""
    exporter.lists = {"shop": shop()}
    names = [each.value for each in visit("redeliveries", exporter.url).subheader]

    assert names.index("Redeliveries over time") < names.index("Dead-letter routes")


def test_one_queue_has_a_heading_of_its_own(visit: Open, exporter: Exporter) -> None:
    """Not that of the list."""
    exporter.lists = {"shop": shop()}
    one = visit("queues", exporter.url, queue="retry.loop", vhost="/")

    assert ["Queue"] == [each.value for each in one.title]
    assert "all queues, most urgent first" not in words(one)


def test_a_column_of_findings_is_only_shown_with_findings(visit: Open, exporter: Exporter) -> None:
    """It would be the first and empty column of a phone."""
    exporter.lists = {"shop": shop()}
    queues, consumers = (visit(path, exporter.url) for path in ("queues", "consumers"))
    exporter.clusters = (answers.sick(findings=(answers.stuck("retry.loop"),)),)
    cache.exporter_state.clear()
    sick = visit("queues", exporter.url)

    assert "Finding" not in html_table(queues)
    assert "finding" not in consumers.dataframe[0].proto.column_order
    assert "Finding" in html_table(sick)


def test_nodes_show_how_close_their_limits_are(visit: Open, exporter: Exporter) -> None:
    """A value that this version does not report is not drawn as zero."""
    exporter.lists = {"shop": shop()}
    said = words(visit("nodes", exporter.url))

    for text in ("rabbit@shop-1", "up 25 h", "Run queue: 9 Erlang processes are waiting for 2 cores", "not running"):
        assert text in said
    assert "PARTITIONED from rabbit@shop-1" in said
    assert "Sockets: not reported by this version." in said


def test_semantics_shows_the_verify_report(visit: Open, exporter: Exporter, tmp_path: Path) -> None:
    """Without a report, how to create one; for another file, the error."""
    kept = tmp_path / "verified.json"
    row = {"name": "delivery-tags", "group": "delivery", "documented": "They grow.", "because": ""}
    rows = [
        {**row, "verdict": "holds", "observed": "they do"},
        {**row, "verdict": "differs", "observed": "they do not"},
    ]
    kept.write_text(json.dumps({"broker": "RabbitMQ 4.3.6", "rows": rows}))
    said = words(visit("semantics", exporter.url, None, kept))

    for text in ("RabbitMQ 4.3.6", "1 holds", "1 differs", "they do not"):
        assert text in said
    assert "ackscope verify --amqp URL --json" in words(visit("semantics", exporter.url))
    kept.write_text('{"rows": 5}')
    assert "not a report of `ackscope verify --json`" in words(visit("semantics", exporter.url, None, kept))


def test_a_probe_runs_on_demand(visit: Open, exporter: Exporter) -> None:
    """Its report is shown literally, and errors of the exporter are shown."""
    report = b"# report\nrtt p50 0.3 ms\n\n# log\nempty\n\n# run\nexit code 0, 2.0 s\n\n# metrics (all)\nx 1\n"
    exporter.raw["/probe"] = (200, report)
    page = visit("probe", exporter.url, probe="rtt")

    assert "/probe" not in exporter.asked
    page.button[-1].click().run()
    assert [] == errors(page)
    assert "rtt p50 0.3 ms" == page.code[0].value
    exporter.raw["/probe"] = (429, b"a probe is under way\n")
    page.button[-1].click().run()
    assert "a probe is under way" == page.code[0].value


def test_a_timeline_of_a_hundred_findings_fits_a_screen(visit: Open, exporter: Exporter) -> None:
    """One bar for the objects of a rule, at most ten rows; the last fifty entries, and the others behind a toggle."""
    moment = answers.ago(minutes=9)
    many = [replace(answers.stuck(f"q{number:03}"), since=moment) for number in range(100)]
    kinds = [replace(answers.stuck(f"k{number}"), since=moment, rule=f"rule-{number}") for number in range(20)]
    exporter.clusters = (answers.sick(findings=[*many, *kinds]),)
    page = visit("timeline", exporter.url)
    bars, entries = _bars(page), len(page.table[0].value)
    for key in ("all-timeline-rows", "all-timeline-entries"):
        page.toggle(key=key).set_value(True).run()

    assert [] == errors(page)
    assert (10, 50) == (bars, entries)
    assert (21, 120) == (_bars(page), len(page.table[0].value))
    assert "120 entries, latest first; 120 critical. Showing the last 50." not in words(page)


def _bars(page: AppTest) -> int:
    figure = json.loads(page.get("plotly_chart")[0].proto.spec)
    return sum(trace["type"] == "bar" for trace in figure["data"])


def test_a_note_is_stored_on_the_server(visit: Open, exporter: Exporter, tmp_path: Path) -> None:
    """With `--notes`; the next viewer sees it between the findings."""
    exporter.clusters = (answers.sick(),)
    kept = tmp_path / "notes.jsonl"
    page = visit("timeline", exporter.url, None, None, kept)
    page.text_area(key="note-text").input("restarted the worker")
    page.text_input(key="note-author").input("Kim")
    page.button[-1].click().run()
    said = words(visit("timeline", exporter.url, None, None, kept))

    assert [] == errors(page)
    for text in ("restarted the worker", "Kim", "stuck-consumer"):
        assert text in said
    assert "Notes are disabled" in words(visit("timeline", exporter.url))


def test_a_note_that_cannot_be_stored_stays_in_its_form(visit: Open, exporter: Exporter, tmp_path: Path) -> None:
    """With the reason; it is sent again by the same button, and then the form is empty."""
    folder = tmp_path / "full"
    folder.write_text("not a folder")
    page = visit("timeline", exporter.url, None, None, folder / "notes.jsonl")
    page.text_area(key="note-text").input("restarted the worker")
    page.button[-1].click().run()

    assert "Not saved: " in words(page)
    assert "restarted the worker" == page.text_area(key="note-text").value

    folder.unlink()
    page.button[-1].click().run()

    assert "Not saved: " not in words(page)
    assert "" == page.text_area(key="note-text").value
    assert "restarted the worker" in (folder / "notes.jsonl").read_text()
