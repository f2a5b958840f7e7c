from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from ackscope.records import ProbeState
from ackscope.reports import InconclusiveReport
from ackscope.snapshot import Alarm
from dashboard.data.model import ConfirmLayer
from dashboard.ui import cache, layout
from tests.dashboard import answers
from tests.dashboard.answers import Exporter
from tests.dashboard.page_text import errors, words

Open = Callable[..., AppTest]


def test_a_healthy_cluster_says_what_was_checked(exporter: Exporter, rollups: Path, open_page: Open) -> None:
    """With the number of rules, the age of the data, and the end of the history."""
    page = open_page(exporter.url, rollups)

    assert [] == errors(page)
    assert "Nothing wrong found" in page.header[0].value
    for text in (
        "6 rules evaluated on data ",
        ": 6 found nothing wrong.",
        "RabbitMQ 3.10.8",
        "broker data ",
        "probe data ",
        "history until",
        "Nodes running: 2 of 2",
        "confirm p99: 4.1 ms",
        "own error: send delay p99 0.31 ms",
        "ack batches: median 3, max 14 messages",
    ):
        assert text in words(page)


def test_a_finding_answers_the_four_questions(exporter: Exporter, rollups: Path, open_page: Open) -> None:
    """What is wrong, with what, since when, what to do: with evidence and cause."""
    exporter.clusters = (answers.sick(),)
    page = open_page(exporter.url, rollups)
    said = words(page)

    assert [] == errors(page)
    assert ":red[:material/error:] 1 critical, 1 warning" == page.header[0].value
    for text in (
        ":red-badge[:material/error: CRITICAL]",
        "queue 'orders.invoices' in vhost '/' on rabbit@shop-2",
        "29 min ago",
        "its 4 consumers hold 200 messages",
        "Cause: The client is connected",
        "more than 0",
    ):
        assert text in said
    shown = "<code>rabbitmqctl list_consumers -p / | grep -F -- orders.invoices</code>"
    assert 1 == sum(shown in it.proto.body for it in page.get("html"))
    assert said.index("stuck-consumer") < said.index("pub-nacked-overflow")


def test_the_browser_draws_the_findings_before_the_rest_arrives(
    exporter: Exporter, rollups: Path, open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One pause, in the first run of a session, once the findings are sent; without findings there is none."""
    pauses: list[float] = []
    monkeypatch.setattr(layout, "sleep", pauses.append)
    monkeypatch.setattr(layout, "DRAWING_SECONDS", 0.7)
    exporter.clusters = (answers.sick(),)
    page = open_page(exporter.url, rollups)
    page.run()
    paused = list(pauses)
    for clusters in ((), (answers.healthy(),)):
        exporter.clusters = clusters
        cache.exporter_state.clear()
        open_page(exporter.url, rollups)

    assert [] == errors(page)
    assert [0.7] == paused == pauses


def test_inconclusive_rules_are_listed(exporter: Exporter, rollups: Path, open_page: Open) -> None:
    """With the reason and the fix of the catalogue, also if the setup never allows to judge."""
    exporter.clusters = (answers.sick(),)
    said = words(open_page(exporter.url, rollups))

    for text in ("Inconclusive: ` memory-alarm `", "node figures are 40 s old", "Upgrade to 3.12"):
        assert text in said


def test_without_findings_the_rules_that_were_not_judged_are_named(
    exporter: Exporter, rollups: Path, open_page: Open
) -> None:
    """They are all that is left to read; next to findings, many of them are only counted."""
    gaps = tuple(
        InconclusiveReport(rule=f"rule-{number:02}", because="no policies", needs="a permission")
        for number in range(15)
    )
    exporter.clusters = (answers.healthy(inconclusive=gaps),)
    well = words(open_page(exporter.url, rollups))
    exporter.clusters = (answers.sick(inconclusive=gaps),)
    cache.exporter_state.clear()
    sick = words(open_page(exporter.url, rollups))

    assert f"Inconclusive: ` {', '.join(gap.rule for gap in gaps)} `" in well
    assert "15 rules inconclusive, all or in part" in sick


def test_what_ended_in_the_last_hour_is_listed(exporter: Exporter, rollups: Path, open_page: Open) -> None:
    """An alert may be over before somebody looks."""
    exporter.clusters = (answers.healthy(ended=(answers.ended(seconds_ago=180), answers.ended(seconds_ago=1300))),)
    page = open_page(exporter.url, rollups)
    said = words(page)

    assert [] == errors(page)
    for text in (
        "2 findings ended in the last hour, the latest 3 min ago",
        "stuck-consumer",
        "'orders.invoices'",
        "7 min",
    ):
        assert text in said


def test_without_an_ended_finding_there_is_no_list(exporter: Exporter, rollups: Path, open_page: Open) -> None:
    """An empty box would be one more thing to read."""
    exporter.clusters = (answers.healthy(),)

    assert "ended in the last hour" not in words(open_page(exporter.url, rollups))


def test_probes_that_cannot_measure_say_why(exporter: Exporter, rollups: Path, open_page: Open) -> None:
    """Failed and doubtful ones come first, with a reason."""
    exporter.clusters = (answers.sick(),)
    said = words(open_page(exporter.url, rollups))

    for text in ("cannot measure", "connection refused at shop-3:5672", "doubtful", "loop was 120 ms late", "lost 3"):
        assert text in said


def test_every_probe_shows_what_it_measures(exporter: Exporter, rollups: Path, open_page: Open) -> None:
    """Steps or confirms; expected nacks are labelled as such."""
    layers = (
        ConfirmLayer(name="network+channel", seconds=0.0005, because="unroutable 500 us"),
        ConfirmLayer(name="queue", because="transient is not measured"),
    )
    exporter.clusters = (answers.healthy(probes=answers.all_probes(), layers=layers),)
    page = open_page(exporter.url, rollups)
    page.session_state["more-streams"] = True
    said = words(page.run())

    assert [] == errors(page)
    for text in (
        "Confirm latency by layer (median): network+channel 0.5 ms.",
        "transient is not measured",
        "dead-letter p50: 0.3 ms",
        "tcp max 0.6 ms",
        "own error: loop lag p99 0.2 ms",
        "nack p50: 1.12 ms",
        "nacked as expected: 500 of 500 settled",
        "9 more probe streams",
    ):
        assert text in said


def test_control_streams_are_in_an_expander(exporter: Exporter, rollups: Path, open_page: Open) -> None:
    """Streams that represent applications come first."""
    exporter.clusters = (answers.healthy(probes=answers.all_probes()),)
    page = open_page(exporter.url, rollups)
    assert "**transient** " not in words(page)

    page.session_state["more-streams"] = True
    said = words(page.run())
    order = [said.index(f"**{name}** ") for name in ("classic", "quorum", "stream", "transient", "unroutable")]

    assert sorted(order) == order
    assert said.index("**handshake**") < said.index("**classic-large**") < said.index("**transient**")


def test_a_blocked_probe_and_an_alarm_are_shown(exporter: Exporter, rollups: Path, open_page: Open) -> None:
    """An alarm blocks publishers of the whole cluster."""
    exporter.clusters = (
        answers.healthy(
            alarms=(Alarm(node="rabbit@shop-1", resource="memory"),),
            probes=(answers.probe(state=ProbeState.BLOCKED, reason="low on memory"),),
        ),
    )
    said = words(open_page(exporter.url, rollups))

    for text in ("Resource alarms: 1", "publishers of the whole cluster are blocked", "blocked by the broker"):
        assert text in said


def test_stale_data_is_not_reported_as_healthy(exporter: Exporter, rollups: Path, open_page: Open) -> None:
    """Age and reason are at the top."""
    exporter.clusters = (answers.healthy(age=95.0, error="connection refused at 10.0.0.1:15672"),)
    page = open_page(exporter.url, rollups)
    said = words(page)

    assert "1 min ago: nothing wrong found. Current state unknown" in page.header[0].value
    assert "Broker unreachable from the exporter" in page.error[0].value
    for text in (
        "connection refused at 10.0.0.1:15672",
        "broker data 1 min old (stale)",
        "6 rules evaluated on data 1 min old, nothing newer is known",
    ):
        assert text in said


def test_a_broker_that_never_responded_has_no_numbers(exporter: Exporter, rollups: Path, open_page: Open) -> None:
    """Missing is not zero."""
    exporter.clusters = (answers.healthy(age=None, broker=None, checked=(), probes=()),)
    page = open_page(exporter.url, rollups)
    said = words(page)

    assert [] == errors(page)
    assert "Unknown: no data from the broker yet" in page.header[0].value
    assert "no broker data yet" in said
    assert "No rule was evaluated: there is no data of this cluster yet." in said
    assert [] == list(page.metric)


def test_results_of_a_dead_probe_process_are_marked(exporter: Exporter, rollups: Path, open_page: Open) -> None:
    """At the top and next to the results."""
    exporter.clusters = (answers.healthy(probes_up=False),)
    said = words(open_page(exporter.url, rollups))

    for text in ("probes are down", "The probe process is down (restarted 3 times)"):
        assert text in said


def test_an_exporter_that_was_never_reached(tmp_path: Path, open_page: Open) -> None:
    """The page says where, why and what to do, and reports nothing as healthy."""
    with answers.serving(answers.healthy()) as gone:
        url = gone.url
    page = open_page(url, tmp_path / "none")

    assert [] == errors(page)
    assert "Exporter unreachable" in page.error[0].value
    assert url in page.error[0].value
    assert "connection refused" in page.error[0].value
    assert "there is no data" in page.error[0].value
    assert "ackscope exporter --config FILE" == page.code[0].value


def test_history_is_shown_without_an_exporter(rollups: Path, open_page: Open) -> None:
    """The cluster is known from the files."""
    with answers.serving(answers.healthy()) as gone:
        url = gone.url
    page = open_page(url, rollups)

    assert [] == errors(page)
    assert "Unknown: the exporter does not respond" in page.header[0].value
    assert 7 == len(page.get("plotly_chart"))


def test_the_last_response_of_an_exporter_is_marked_as_stale(
    exporter: Exporter, rollups: Path, open_page: Open
) -> None:
    """Findings stay, with their age, and nothing is reported as healthy."""
    exporter.clusters = (answers.sick(),)
    open_page(exporter.url, rollups)
    exporter.raw = {"/api/v1/findings": (503, b"")}
    cache.exporter_state.clear()
    page = open_page(exporter.url, rollups)

    assert "nothing newer is known: 2 with findings, 3 found nothing wrong, 1 inconclusive" in words(page)
    assert "Showing its last response" in page.error[0].value
    assert "ago: 1 critical, 1 warning" in page.header[0].value


def test_the_most_severe_cluster_is_the_default(exporter: Exporter, rollups: Path, open_page: Open) -> None:
    """The others are shown with their headline."""
    exporter.clusters = (answers.healthy("billing"), answers.sick("shop"))
    page = open_page(exporter.url, rollups)

    assert "shop" == page.selectbox(key="cluster-choice").value
    assert ": 2 with findings, 3 found nothing wrong" in words(page)
    assert "billing: Nothing wrong found" in page.selectbox(key="cluster-choice").options


def test_the_address_selects_cluster_and_range(exporter: Exporter, rollups: Path, open_page: Open) -> None:
    """So that a link in an alert leads to the right view."""
    exporter.clusters = (answers.healthy("billing"), answers.sick("shop"))
    page = open_page(exporter.url, rollups, cluster="billing", range="6h")

    assert ("billing", "6h") == (
        page.selectbox(key="cluster-choice").value,
        page.selectbox(key="range-choice").value,
    )


def test_a_choice_is_in_the_address(exporter: Exporter, rollups: Path, open_page: Open) -> None:
    """So that a link shows the same view to a colleague."""
    exporter.clusters = (answers.healthy("billing"), answers.sick("shop"))
    page = open_page(exporter.url, rollups)
    page.selectbox(key="cluster-choice").set_value("billing").run()
    page.selectbox(key="range-choice").set_value("15m").run()

    assert {"cluster": "billing", "range": "15m"} == {name: page.query_params[name] for name in ("cluster", "range")}
    assert "Nothing wrong found" in page.header[0].value
    assert ": 6 found nothing wrong." in words(page)


def test_vital_metrics_are_compared_with_their_band(exporter: Exporter, rollups: Path, open_page: Open) -> None:
    """Each with a sparkline, and a text if it is outside."""
    exporter.clusters = (answers.sick(),)
    page = open_page(exporter.url, rollups)
    said = words(page)

    assert [] == errors(page)
    for text in (
        "Published: 161/s",
        "usual 120 to 180/s",
        "Redelivered: 0.5/s",
        "Ready: 12,845",
        "above usual",
        "below usual",
        "Usual: at this hour of the week, from 6 weeks",
    ):
        assert text in said
    assert 3 == said.count("usual]")


def test_missing_vital_metrics_hide_nothing_else(exporter: Exporter, rollups: Path, open_page: Open) -> None:
    """As with an exporter that is older than the dashboard."""
    exporter.clusters = (answers.sick(),)
    exporter.raw = {"/api/v1/vitals": (404, b"")}
    page = open_page(exporter.url, rollups)
    said = words(page)

    assert [] == errors(page)
    for text in ("Vital metrics unavailable", "Ready: 12,845", "Nodes running: 2 of 3", "1 critical, 1 warning"):
        assert text in said


def test_an_unknown_cluster_or_range_is_not_an_error(exporter: Exporter, rollups: Path, open_page: Open) -> None:
    """The page says so and shows another one."""
    page = open_page(exporter.url, rollups, cluster="gone", range="century")

    assert [] == errors(page)
    assert "Unknown cluster" in page.warning[0].value
    assert "1h" == page.selectbox(key="range-choice").value


def test_no_history_says_how_to_get_it(exporter: Exporter, tmp_path: Path, open_page: Open) -> None:
    """With the command and the folder."""
    root = tmp_path / "none"
    page = open_page(exporter.url, root)

    assert f"ackscope pipeline stream --landing DIR --rollups {root}" == page.code[-1].value
    assert "no history yet" in words(page)


def test_broken_history_does_not_hide_findings(exporter: Exporter, rollups: Path, open_page: Open) -> None:
    """The file is named below them."""
    exporter.clusters = (answers.sick(),)
    for file in rollups.glob("latency_1m/*/*/*.parquet"):
        file.write_bytes(b"not parquet")
    page = open_page(exporter.url, rollups)

    assert [] == errors(page)
    assert "1 critical" in page.header[0].value
    assert "Cannot read the history" in page.warning[-1].value


def test_names_with_markup_are_escaped_on_the_whole_page(exporter: Exporter, rollups: Path, open_page: Open) -> None:
    """No element passes a name to Markdown unescaped."""
    exporter.clusters = (answers.hostile(),)
    page = open_page(exporter.url, rollups)
    bare = [
        element.value
        for kind in ("header", "subheader", "markdown", "caption", "error", "warning")
        for element in page.get(kind)
        if "<script>" in element.value and "`` " not in element.value
    ]

    assert [] == errors(page)
    assert [] == bare


def test_an_exporter_without_clusters(exporter: Exporter, tmp_path: Path, open_page: Open) -> None:
    """The page says so."""
    exporter.clusters = ()
    page = open_page(exporter.url, tmp_path / "none")

    assert [] == errors(page)
    assert "No cluster is monitored" in words(page)
    assert "Unknown" in page.header[0].value


def test_a_bundle_is_created_on_demand(exporter: Exporter, rollups: Path, open_page: Open) -> None:
    """Not before the button is pressed."""
    exporter.raw = {"/api/v1/bundle": (200, b"packed")}
    page = open_page(exporter.url, rollups)
    before = exporter.asked.count("/api/v1/bundle")
    page.button(key="make-bundle").click().run()

    assert (0, 1) == (before, exporter.asked.count("/api/v1/bundle"))
    assert ["Save cluster.ackscope (0 KiB)"] == [it.label for it in page.get("download_button") if "Save c" in it.label]
    assert "ackscope diagnose --bundle cluster.ackscope" in words(page)


def test_a_failed_bundle_says_why(exporter: Exporter, rollups: Path, open_page: Open) -> None:
    """In one line; there is nothing to save."""
    exporter.raw = {"/api/v1/bundle": (503, b"")}
    page = open_page(exporter.url, rollups)
    page.button(key="make-bundle").click().run()

    assert [] == errors(page)
    assert "Cannot create the bundle" in words(page)
    assert [] == [it for it in page.get("download_button") if "ackscope" in it.label]
