"""Findings as bars, in the chart and in the HTML file."""

import re
from datetime import UTC, datetime
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ackscope.ranking import FindingEpisode
from dashboard.charts import gantt_chart
from dashboard.format.timeline_html import TimelineReport, timeline_html
from dashboard.format.timezones import Zone
from dashboard.frames import timeline_entries
from dashboard.frames.gantt_rows import condensed, gantt_rows, groups, worst
from dashboard.frames.minute_frames import Axis
from tests.dashboard.answers import HOSTILE
from tests.dashboard.test_timeline import NOON, SHIFT, finding, note

HOUR = 3600.0
AXIS = Axis.between(datetime.fromtimestamp(NOON, UTC), datetime.fromtimestamp(NOON + HOUR, UTC), 1)


def episode(minutes: float, ended: float | None = None, **changes: object) -> FindingEpisode:
    """A finding from so many minutes after noon; without an end it lasts."""
    values = {"rule": "stuck-consumer", "severity": "critical", "kind": "queue", "vhost": "/", "name": "orders"}
    values |= {"summary": "it stands still", "lasts": ended is None, **changes}
    return FindingEpisode(NOON + 60 * minutes, None if ended is None else NOON + 60 * ended, **values)


def rows_of(*episodes: FindingEpisode, findings=()):
    """Rows of the hour after noon."""
    return gantt_rows(episodes, findings, NOON, NOON + HOUR)


def report(*episodes: FindingEpisode, findings=(), notes=(), shifts=(), **changes) -> TimelineReport:
    """What the HTML file shows of the hour after noon."""
    entries = timeline_entries.entries(shifts, episodes, findings, notes, NOON, NOON + HOUR)
    known = {"rows": rows_of(*episodes, findings=findings), "entries": entries}
    return TimelineReport(**{"cluster": "shop", "start": NOON, "end": NOON + HOUR, **known, **changes})


class Elements(HTMLParser):
    """The elements of an HTML file with their attributes, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        """An element begins."""
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data):
        """Text between elements."""
        self.text += data


def test_a_bar_reaches_from_the_beginning_to_the_end() -> None:
    """One that lasts reaches to the end of the range, and one that began earlier from its beginning."""
    (row,) = rows_of(episode(-9, 3), episode(10, 25), episode(40))

    assert [(NOON, NOON + 180), (NOON + 600, NOON + 1500), (NOON + 2400, NOON + 3600)] == [
        (bar.began, bar.ended) for bar in row.bars
    ]
    assert [(True, False), (False, False), (False, True)] == [(bar.earlier, bar.lasts) for bar in row.bars]
    assert "CRITICAL stuck-consumer (3 times, lasts): queue 'orders' in vhost '/'" == row.label


def test_an_end_that_nobody_saw_is_not_made_up() -> None:
    """The bar is only its beginning."""
    (row,) = rows_of(episode(10, lasts=False))

    assert (NOON + 600, NOON + 600, True, False) == (
        row.bars[0].began, row.bars[0].ended, row.bars[0].end_unknown, row.bars[0].lasts,
    )  # fmt: skip


def test_what_is_outside_the_range_has_no_bar() -> None:
    """Before it and after it."""
    assert () == rows_of(episode(-30, -10), episode(70), episode(-30, lasts=False))


def test_a_current_finding_that_the_history_knows_has_one_bar() -> None:
    """One that the history does not know yet has a bar as well."""
    known = rows_of(episode(3), findings=[finding()])
    fresh = rows_of(episode(1, 2), findings=[finding()])

    assert [1, 2] == [len(known[0].bars), len(fresh[0].bars)]


def test_groups_and_rows_have_the_worst_first() -> None:
    """Whatever the order of the episodes."""
    found = [
        episode(1, severity="info", rule="memory", kind="node", vhost="", name="n1"),
        episode(9, severity="critical", name="late"),
        episode(2, severity="warning", rule="slow", name="early"),
        episode(3, severity="warning", rule="leak", kind="channel", name="c"),
        episode(4, severity="critical", name="first"),
    ]
    rows = rows_of(*found)

    assert rows == rows_of(*reversed(found))
    assert ["Queues", "Clients", "Nodes and cluster"] == [name for name, _ in groups(rows)]
    assert ["first", "late", "early"] == [row.who.split("'")[1] for _, mine in groups(rows)[:1] for row in mine]


def test_many_objects_of_one_rule_share_a_row() -> None:
    """Its bars are the times in which at least one had the finding; three objects are still apart."""
    found = [
        episode(5, 10, name="a"),
        episode(8, 20, name="b", severity="warning"),
        episode(30, 33, name="c", severity="warning"),
        episode(50, name="d", lasts=False, severity="warning"),
    ]
    other = episode(1, 2, rule="deep", severity="info")
    together, alone = condensed(rows_of(*found, other))
    few = rows_of(*found[:3], other)

    assert "CRITICAL stuck-consumer (3 times): 4 queues" == together.label
    assert [(5, 20, "critical", False), (30, 33, "warning", False), (50, 50, "warning", True)] == [
        ((bar.began - NOON) / 60, (bar.ended - NOON) / 60, bar.severity, bar.end_unknown) for bar in together.bars
    ]
    assert "2 queues: queue 'a' in vhost '/', queue 'b' in vhost '/'" == together.bars[0].summary
    assert ("deep", few) == (alone.rule, condensed(few))


def test_a_short_chart_has_the_most_severe_rows() -> None:
    """In the order of all rows, also if a later group has them."""
    found = [
        episode(1, severity="critical"),
        episode(2, severity="info", rule="a"),
        episode(3, severity="info", rule="b"),
    ]
    later = episode(4, severity="warning", rule="memory", kind="node", vhost="", name="n1")
    rows = rows_of(*found, later)

    assert ["stuck-consumer", "memory"] == [row.rule for row in worst(rows, 2)]
    assert rows == worst(rows, 9)


@given(
    st.lists(
        st.tuples(st.floats(-200, 200), st.none() | st.floats(0, 300), st.booleans(), st.sampled_from(["a", "b", "c"])),
        max_size=12,
    )
)
def test_every_bar_is_within_the_range(parts) -> None:
    """And each finding that touches the range has exactly one bar."""
    episodes = [
        episode(began, None if length is None else began + length, lasts=length is None and lasts, name=name)
        for began, length, lasts, name in parts
    ]
    bars = [bar for row in rows_of(*episodes) for bar in row.bars]

    assert all(NOON <= bar.began <= bar.ended <= NOON + HOUR for bar in bars)
    touching = [
        it for it in episodes
        if it.began <= NOON + HOUR and (it.lasts or (it.began if it.ended is None else it.ended) >= NOON)
    ]  # fmt: skip
    assert len(touching) == len(bars)


def test_the_chart_has_a_bar_for_each_finding_and_marks_for_notes() -> None:
    """Markup in names is shown as text; notes and changes have lines of their own."""
    found = [episode(1, 4, name=HOSTILE), episode(5, severity="warning")]
    entries = timeline_entries.entries([SHIFT], found, [], [note(text=HOSTILE)], NOON, NOON + HOUR)
    figure = gantt_chart.gantt(rows_of(*found), entries, AXIS)
    bars = [trace for trace in figure.data if trace.type == "bar"]
    texts = [item.text for item in figure.layout.annotations]

    assert [180_000.0, 55 * 60_000.0] == [trace.x[0] for trace in bars]
    assert {"notes", "changes of a level", "critical", "warning"} == {it.name for it in figure.data if it.name}
    assert not any("<script" in text for text in [*texts, *(trace.customdata[0][0] for trace in bars)])
    assert not any("<script" in text for trace in figure.data if trace.text for text in trace.text)


def test_the_file_has_findings_notes_and_changes_with_their_times() -> None:
    """In the zone of the page, which it names."""
    found = [episode(3, 9), episode(20, lasts=False, rule="slow", severity="warning"), episode(30, rule="deep")]
    text = Elements(
        timeline_html(report(*found, notes=[note()], shifts=[SHIFT], zone=Zone("Asia/Kolkata"), remark="Sample data."))
    ).text

    for words in (
        "Timeline of shop",
        "2026-01-01 17:30 to 18:30 IST",
        "3 findings (2 critical, 1 warning, 0 info), 1 of them not over; 1 change of a level; 1 note.",
        "Sample data.",
        "2026-01-01 17:33:00",
        "6 min",
        "not seen",
        "not over",
        "restarted the worker",
        "ack rate fell from 120/s to 0/s",
        "All times are in Asia/Kolkata.",
    ):
        assert words in text


@pytest.mark.parametrize(
    ("hours", "zone", "marks"),
    [
        (1, "UTC", ["12:00", "12:10", "12:20", "12:30", "12:40", "12:50", "13:00"]),
        (1, "Asia/Kolkata", ["17:30", "17:40", "17:50", "18:00", "18:10", "18:20", "18:30"]),
        (48, "UTC", None),
    ],
)
def test_the_time_axis_has_round_times_of_the_zone(hours: int, zone: str, marks: list[str] | None) -> None:
    """At most a few, with the date where there is more than one."""
    text = timeline_html(report(episode(1, 4), end=NOON + hours * HOUR, zone=Zone(zone)))
    found = re.findall(r'<text class="soft" x="[\d.]+" y="13" text-anchor="\w+">([^<]+)', text)

    assert 3 <= len(found) <= 9
    assert found == marks or (marks is None and all(re.fullmatch(r"01-0\d \d\d:00", it) for it in found))


def test_an_empty_range_says_so() -> None:
    """With valid HTML."""
    assert "No entries in this range." in Elements(timeline_html(report())).text


ACTIVE = {"script", "link", "img", "iframe", "object", "embed", "form", "input", "video", "audio", "image", "use", "a"}
EXPECTED = {
    "html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "figure", "svg", "g", "line", "text", "rect",
    "polygon", "div", "table", "thead", "tbody", "tr", "th", "td", "b", "br", "span",
}  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        HOSTILE,
        '"><svg onload=alert(1)>',
        "</style><script>alert(1)</script>",
        "' onmouseover='alert(1)",
        "]]><!--",
        "</title><img src=x onerror=alert(1)>",
        "a\u202eb\u2028c\x00d",
    ],
)
def test_hostile_names_are_harmless_in_the_file(text: str) -> None:
    """Each place that shows foreign text: no element, no attribute and no hidden character comes from it."""
    found = episode(1, 4, name=text, vhost=text, rule=text, kind=text, severity=text, summary=text)
    written = note(text=text)
    hostile = timeline_html(report(found, notes=[written], cluster=text, remark=text))
    known = Elements(hostile)

    assert {tag for tag, _ in known.found} <= EXPECTED
    assert not {tag for tag, _ in known.found} & ACTIVE
    assert not any(name.startswith("on") or name in {"src", "href"} for _, attrs in known.found for name in attrs)
    assert not re.search("[\u202e\u2028\x00]", hostile)
    assert 1 == sum(tag == "style" for tag, _ in known.found)


def test_the_file_requests_nothing_and_runs_nothing() -> None:
    """By its policy, and because it names no address."""
    text = timeline_html(report(episode(1, 4), notes=[note()], shifts=[SHIFT]))

    assert "default-src 'none'; style-src 'unsafe-inline'" in text
    assert [] == re.findall(r"https?://|url\(|@import|javascript:", text)


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_name_is_text(name: str, said: str) -> None:
    """For any text of a name and of a note."""
    text = timeline_html(report(episode(1, 4, name=name, summary=said), notes=[note(text=said)], cluster=name))

    assert {tag for tag, _ in Elements(text).found} <= EXPECTED
