import re
from base64 import b64decode
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ackscope.findings import Involved, QueueRef, Subject
from ackscope.triage import Triage
from dashboard.charts.onset_curves import curves
from dashboard.data.model import BacklogTrend
from dashboard.format import vital_metrics
from dashboard.frames import finding_rows
from dashboard.frames.finding_rows import RowFilter
from tests.dashboard.answers import line, overflow, stuck

NOW = 1_700_000_000.0
QUEUE = Subject(kind="queue", vhost="/", name="orders")


ALL = RowFilter()


def listed(*findings, chosen=None, wanted=ALL):
    """Name of the subject of each row, with a mark for consequences."""
    by_address = finding_rows.addresses(findings)
    address = next((name for name, it in by_address.items() if it is chosen), None)
    found = finding_rows.rows(by_address, findings, address, wanted)
    return [f"{'> ' if row.under else ''}{row.finding.subject.name}" for row in found]


def test_consequences_are_listed_under_the_chosen_cause():
    """Also if one of them is chosen, and at all depths."""
    deep = stuck("deep")
    below = replace(stuck("below"), consequences=(deep,))
    cause, other = replace(stuck("cause"), consequences=(below,)), stuck("other")

    assert ["cause", "other"] == listed(cause, other)
    for chosen in (cause, below, deep):
        assert ["cause", "> below", "> deep", "other"] == listed(cause, other, chosen=chosen)


def test_muted_findings_are_last():
    """The others stay in their order."""
    muted = replace(stuck("muted"), triage=Triage(muted=True))

    assert ["one", "two", "muted"] == listed(muted, stuck("one"), stuck("two"))


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        (ALL, ["a", "emails.outbound"]),
        (RowFilter(severity="critical"), ["a"]),
        (RowFilter(vhost="marketing"), ["emails.outbound"]),
        (RowFilter(kind="node"), []),
        (RowFilter(severity="warning", vhost="/"), []),
    ],
)
def test_filters(wanted, names):
    """All parts must match."""
    assert names == listed(stuck("a"), overflow(), wanted=wanted)


@given(names=st.lists(st.text(max_size=9), max_size=9))
def test_every_finding_has_an_address_of_its_own(names):
    """Also two that are equal; it does not depend on the order unless they are."""
    findings = [stuck(name) for name in names]
    found = finding_rows.addresses(findings)

    assert len(names) == len(found)
    assert {id(it) for it in findings} == {id(it) for it in found.values()}
    if len(set(names)) == len(names):
        assert found.keys() == finding_rows.addresses(findings[::-1]).keys()


@pytest.mark.parametrize(
    ("before", "now", "text"),
    [
        (100, 100, "steady"),
        (100, 101, "steady"),
        (0, 0, "steady"),
        (0, 1, "↑ <1/min"),
        (100, 700, "↑ 2/s"),
        (700, 100, "↓ 2/s"),
        (100, 250, "↑ 30/min"),
    ],
)
def test_trend(before, now, text):
    """Over five minutes."""
    seen = BacklogTrend(vhost="/", name="orders", before=before, now=now, seconds=300.0)

    assert text == finding_rows.trend(QUEUE, {("/", "orders"): seen})


def test_no_trend_without_two_readings():
    """Unknown is not steady."""
    assert "" == finding_rows.trend(QUEUE, {})
    assert "" == finding_rows.trend(Subject(kind="node", name="orders"), {})


@pytest.mark.parametrize(
    ("since", "text"),
    [
        ("2023-11-14T22:13:01Z", "19 s"),
        ("2023-11-14T22:12:00Z", "1 min"),
        ("2023-11-14T20:13:20Z", "2 h"),
        ("2023-11-01T20:13:20Z", "13 d"),
        ("2023-11-14T22:14:00Z", "0 s"),
        (None, ""),
    ],
)
def test_age_has_one_unit(since, text):
    """In whole ones; unknown is empty."""
    assert text == finding_rows.age(replace(stuck(), since=since), NOW)


def test_affected_counts_each_thing_once():
    """Queues of consequences and involved ones too."""
    cause = replace(stuck("a"), consequences=(stuck("a"), overflow()))
    node = replace(stuck(), subject=Subject(kind="node", name="rabbit@one"))

    assert "2 queues in vhosts /, marketing; 1 node; client invoice-worker" == finding_rows.affected((cause, node))


@pytest.mark.parametrize(
    ("kind", "queues"),
    [
        ("queue", {("/", "orders"), ("/", "letters")}),
        ("exchange", {("/", "letters")}),
        ("connection", {("/", "letters")}),
        ("node", set()),
        ("cluster", set()),
    ],
)
def test_a_queue_that_a_finding_makes_sick_is_marked(kind, queues):
    """Also by a lack of its exchange; the largest queues of a node that is short of memory are not sick by that."""
    named = Involved(queues=(QueueRef("/", "letters"),))
    finding = replace(stuck(), subject=Subject(kind=kind, vhost="/", name="orders"), involved=named)

    assert queues == finding_rows.queues_of(finding)


def test_a_curve_marks_the_beginning():
    """In the picture, and in its text."""
    html = curves((line("ready", "messages", 0, 50, 100),), 60.0, "12:04:10 UTC")
    picture = b64decode(re.search('base64,([^"]*)', html)[1]).decode()

    assert 1 == html.count("<figure>")
    assert "began 12:04:10 UTC" in html
    assert 'x1="120.0"' in picture
    assert "<script" not in picture


def test_a_beginning_before_the_curve_is_only_text():
    """A mark at the edge would be wrong."""
    html = curves((line("ready", "messages", 0, 50, 100),), 6000.0, "10:04:10 UTC")

    assert "began before, 10:04:10 UTC" in html
    assert "stroke-dasharray" not in b64decode(re.search('base64,([^"]*)', html)[1]).decode()


def test_curves_are_those_of_the_evidence():
    """At most three; a single one gets a second one for comparison."""
    known = [line(name, "messages", 1, 2) for name in ("publish", "ready", "ack", "unacked", "redeliver")]
    names = [it.name for it in vital_metrics.proof_lines(stuck(), known, "queue")]
    other = [it.name for it in vital_metrics.proof_lines(overflow(), known, "queue")]

    assert ["ack", "ready"] == names
    assert ["ready", "unacked"] == other


def lines(*findings, chosen=None, opened=()):
    """Name of the subject of each row of a folded list, with what a line stands for in brackets."""
    by_address = finding_rows.addresses(findings)
    address = next((name for name, it in by_address.items() if it is chosen), None)
    found = finding_rows.rows(by_address, findings, address, ALL)
    return [
        f"[{'fewer' if isinstance(row, finding_rows.FoldedRows) and row.open else row.number} {row.first.rule}]"
        if isinstance(row, finding_rows.FoldedRows)
        else f"{'> ' if row.under else ''}{row.finding.subject.name}"
        for row in finding_rows.folded(found, address, opened)
    ]


def test_a_long_list_shows_every_rule():
    """The first three findings of each rule and severity; a screen of findings is not folded."""
    many = [stuck(f"q{number:02}") for number in range(30)]
    others = [replace(stuck(f"b{number}"), rule="queue-backlog") for number in range(5)]

    assert ["q00", "q01", "q02", "[27 stuck-consumer]", *(it.subject.name for it in others)] == lines(*many, *others)
    assert [f"q{number:02}" for number in range(20)] == lines(*many[:20])
    few = [replace(stuck(f"q{number:02}"), rule=f"rule-{number // 5}") for number in range(25)]
    assert [it.subject.name for it in few] == lines(*few)


def test_an_opened_rule_can_be_folded_again():
    """Its line is after the last of its findings."""
    many = [stuck(f"q{number:02}") for number in range(30)]

    opened = lines(*many, opened={"stuck-consumer-critical"})
    assert [*(it.subject.name for it in many), "[fewer stuck-consumer]"] == opened


def test_the_chosen_finding_and_its_consequences_are_never_folded():
    """And the line does not separate them."""
    cause = replace(stuck("cause"), consequences=(stuck("below"),))
    many = [*(stuck(f"q{number:02}") for number in range(30)), cause]

    assert ["q00", "q01", "q02", "cause", "> below", "[27 stuck-consumer]"] == lines(*many, chosen=cause)


def test_muted_findings_fold_apart_from_others():
    """As a line of its own, after the others."""
    muted = [replace(stuck(f"m{number}"), triage=Triage(muted=True)) for number in range(8)]
    loud = [stuck(f"q{number:02}") for number in range(20)]

    assert ["q00", "q01", "q02", "[17 stuck-consumer]", "m0", "m1", "m2", "[5 stuck-consumer]"] == lines(*muted, *loud)
