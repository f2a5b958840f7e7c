"""Every page but the first, run as a viewer's session would: healthy, sick, empty, with hostile names."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.pages import PAGES
from tests.dashboard import answers
from tests.dashboard.answers import HOSTILE, Exporter
from tests.dashboard.broker_lists import shop
from tests.dashboard.page_text import errors, words

Open = Callable[..., AppTest]
LISTS = ("queues", "consumers", "redeliveries", "nodes", "topology")


@pytest.mark.parametrize("path", [page.path for page in PAGES if page.path])
def test_a_page_stands_without_an_exporter(visit: Open, path: str) -> None:
    """It says that nothing is known, and does not break."""
    page = visit(path, "http://127.0.0.1:1")

    assert [] == errors(page)
    assert words(page)


@pytest.mark.parametrize("path", [page.path for page in PAGES if page.path])
def test_a_page_stands_before_the_first_reading(visit: Open, exporter: Exporter, path: str) -> None:
    """The exporter answers, and knows no list yet."""
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


def test_what_hurts_is_first_among_the_queues(visit: Open, exporter: Exporter) -> None:
    """Then what is delivered again, then what is deep; the probes' own are left out."""
    exporter.clusters = (answers.sick(),)
    exporter.lists = {"shop": shop(many=20)}
    page = visit("queues", exporter.url)
    rows = page.dataframe[0].value

    assert [] == errors(page)
    assert ["orders.invoices", "retry.loop", "idle.00000"] == list(rows["queue"][:3])
    assert "stuck-consumer" == rows["finding"].iloc[0]
    assert 23 == len(rows)
    assert (12_418, 50, 13.9) == (rows["ready"].iloc[0], rows["unacked"].iloc[0], round(rows["growing"].iloc[0], 1))
    assert "23 queues" in words(page)


def test_ten_thousand_queues_are_found_in_a_keystroke(visit: Open, exporter: Exporter) -> None:
    """The first of those that match are shown, and how many there are is said."""
    exporter.lists = {"shop": shop(many=10_000)}
    page = visit("queues", exporter.url, find="idle.000[0-4]", sort="name")

    assert [] == errors(page)
    assert "10,003 queues, 50 match" in words(page)
    assert "idle.00000" == page.dataframe[0].value["queue"].iloc[0]
    assert 300 == len(visit("queues", exporter.url).dataframe[0].value)


def test_what_is_no_pattern_is_taken_as_words(visit: Open, exporter: Exporter) -> None:
    """With a note, and without an error."""
    exporter.lists = {"shop": shop()}
    page = visit("queues", exporter.url, find="orders[")

    assert [] == errors(page)
    assert "not a regular expression" in words(page)
    assert 0 == len(page.dataframe[0].value)


def test_one_queue_has_all_of_it(visit: Open, exporter: Exporter) -> None:
    """Its figures, what is wrong with it, and who consumes from it."""
    exporter.clusters = (answers.sick(),)
    exporter.lists = {"shop": shop()}
    page = visit("queues", exporter.url, queue="orders.invoices", vhost="/")
    said = words(page)

    assert [] == errors(page)
    for text in ("Ready: 12,418", "Published /s: 13.9", "Acked /s: 0.0", "stuck-consumer", "1 consumer"):
        assert text in said
    assert "pub-nacked-overflow" not in said
    assert ["invoice-worker"] == list(page.dataframe[0].value["client"])


def test_the_way_of_messages_begins_with_a_queue_of_the_users(visit: Open, exporter: Exporter) -> None:
    """Of the alphabet our probes' queues are the first: they come last."""
    exporter.lists = {"shop": shop()}
    page = visit("topology", exporter.url)

    assert [] == errors(page)
    (queues,) = (box for box in page.selectbox if box.label == "Queue")
    assert ("/", "orders.invoices") == queues.value
    assert "ackscope.probe" in queues.options[-1]


def test_a_queue_that_is_gone_is_said_to_be(visit: Open, exporter: Exporter) -> None:
    """A shared link outlives its queue."""
    exporter.lists = {"shop": shop()}
    page = visit("queues", exporter.url, queue="was.here")

    assert [] == errors(page)
    assert "it does not exist now" in words(page)


def test_consumers_stand_by_how_full_they_are(visit: Open, exporter: Exporter) -> None:
    """With what is dangerous in how they consume."""
    exporter.lists = {"shop": shop()}
    page = visit("consumers", exporter.url)
    rows, said = page.dataframe[0].value, words(page)

    assert [] == errors(page)
    assert (100.0, "invoice-worker", "10.1.4.17") == tuple(rows[["held", "client", "host"]].iloc[0])
    assert {"automatic ack", "no limit", ""} == set(rows["hazard"])
    for text in ("Consumers: 3", "Full: 1", "No prefetch limit: 1", "Automatic ack: 1", "Not active: 1"):
        assert text in said


def test_redeliveries_name_queue_share_and_dead_letters(visit: Open, exporter: Exporter) -> None:
    """What goes round, and dead letters that nobody gets."""
    exporter.lists = {"shop": shop()}
    page = visit("redeliveries", exporter.url)
    rows = page.dataframe[0].value

    assert [] == errors(page)
    assert (["retry.loop"], [100.0]) == (list(rows["queue"]), list(rows["ratio"]))
    assert "no queue is bound to it: dead letters are lost" in words(page)


def test_nodes_tell_how_near_their_limits_are(visit: Open, exporter: Exporter) -> None:
    """What is not told by a version is not drawn as nothing."""
    exporter.lists = {"shop": shop()}
    said = words(visit("nodes", exporter.url))

    for text in ("rabbit@shop-1", "up 25 h", "Run queue: 9 Erlang processes are waiting for 2 cores", "not running"):
        assert text in said
    assert "PARTITIONED from rabbit@shop-1" in said
    assert "Sockets: not reported by this version." in said


def test_semantics_shows_what_was_kept(visit: Open, exporter: Exporter, tmp_path: Path) -> None:
    """The document of `ackscope verify --json`; without one, how to get it; of another kind, why not."""
    kept = tmp_path / "verified.json"
    row = {"name": "delivery-tags", "group": "delivery", "documented": "They grow.", "because": ""}
    rows = [
        {**row, "verdict": "holds", "observed": "they do"},
        {**row, "verdict": "differs", "observed": "they do not"},
    ]
    kept.write_text(json.dumps({"broker": "RabbitMQ 4.3.6", "rows": rows}))
    said = words(visit("semantics", exporter.url, None, kept))

    for text in ("RabbitMQ 4.3.6", "1 holds", "1 differs", "holds: as documented", "they do not"):
        assert text in said
    assert "ackscope verify --amqp URL --json" in words(visit("semantics", exporter.url))
    kept.write_text('{"rows": 5}')
    assert "not a report of `ackscope verify --json`" in words(visit("semantics", exporter.url, None, kept))


def test_a_probe_is_run_when_it_is_asked_for(visit: Open, exporter: Exporter) -> None:
    """Only then; its report is shown as it is, and what the exporter refuses is said."""
    report = b"# report\nrtt p50 0.3 ms\n\n# log\nempty\n\n# run\nexit code 0, 2.0 s\n\n# metrics (all)\nx 1\n"
    exporter.raw["/probe"] = (200, report)
    page = visit("probe", exporter.url, probe="rtt")

    assert "/probe" not in exporter.asked
    page.button[0].click().run()
    assert [] == errors(page)
    assert "rtt p50 0.3 ms" == page.code[0].value
    exporter.raw["/probe"] = (429, b"a probe is under way\n")
    page.button[0].click().run()
    assert "a probe is under way" == page.code[0].value


def test_a_note_is_kept_on_the_server(visit: Open, exporter: Exporter, tmp_path: Path) -> None:
    """Where it was started with a file for them; the next viewer reads it beside what diagnosis told."""
    exporter.clusters = (answers.sick(),)
    kept = tmp_path / "notes.jsonl"
    page = visit("timeline", exporter.url, None, None, kept)
    page.text_area(key="note-text").input("restarted the worker")
    page.text_input(key="note-author").input("Kim")
    page.button[0].click().run()
    said = words(visit("timeline", exporter.url, None, None, kept))

    assert [] == errors(page)
    for text in ("restarted the worker", "Kim", "stuck-consumer"):
        assert text in said
    assert "Notes are disabled" in words(visit("timeline", exporter.url))
