"""Many findings: a line each, the chosen one in full, and nothing drawn that is not visible."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from streamlit.testing.v1 import AppTest

from ackscope import format as fmt
from ackscope.findings import Severity, Subject
from ackscope.reports import FindingReport
from ackscope.triage import Triage
from dashboard.frames.finding_rows import addresses
from dashboard.ui import cache
from tests.dashboard import answers
from tests.dashboard.answers import Exporter
from tests.dashboard.page_text import errors, words

Open = Callable[..., AppTest]


def queues(number: int, **changes: object) -> list[FindingReport]:
    """As many stuck consumers."""
    return [replace(answers.stuck(f"q{index:03d}"), **changes) for index in range(number)]


def address(finding: FindingReport) -> str:
    """The value of `?finding=`."""
    (found, *_) = addresses([finding])
    return found


def test_every_finding_is_a_line_and_one_is_shown_in_full(exporter: Exporter, rollups: Path, open_page: Open) -> None:
    """A hundred of one rule: the first one is chosen, others are behind a line, the last ones behind a toggle."""
    exporter.clusters = (answers.sick(findings=queues(100)),)
    page = open_page(exporter.url, rollups)
    folded = words(page)
    page.button(key="fold-stuck-consumer-critical").click().run()
    few = words(page)
    page.toggle(key="all-findings").set_value(True).run()
    said = words(page)

    assert [] == errors(page)
    assert "` 97 more stuck-consumer `" in folded
    assert "` q003 `" not in folded
    assert "Show 40 more findings" == page.toggle(key="all-findings").label
    assert "` q059 `" in few
    assert "` q060 `" not in few
    assert 1 == said.count("Cause: ")
    assert 100 == len([each for each in page.button if (each.key or "").startswith("row-")])
    cells = ("stuck-consumer", "q099", "29 min", fmt.ABSENT, fmt.ABSENT)
    assert " ".join((":red[:material/error: critical]", *(f"**` {cell} `**" for cell in cells))) in said


def test_the_chosen_finding_is_in_the_address(exporter: Exporter, rollups: Path, open_page: Open) -> None:
    """A click chooses; the choice stays while others move above it, and while it becomes a consequence."""
    listed = queues(5)
    exporter.clusters = (answers.sick(findings=listed),)
    page = open_page(exporter.url, rollups)
    page.button(key=f"row-{address(listed[3])}").click().run()

    assert address(listed[3]) == page.query_params["finding"]
    assert "queue 'q003' in vhost '/' on rabbit@shop-2" in words(page)

    cause = replace(answers.overflow(), severity=Severity.CRITICAL, consequences=(listed[3],))
    exporter.clusters = (answers.sick(findings=[cause, *listed[:3]]),)
    answers_again(page)
    said = words(page)

    assert [] == errors(page)
    assert "queue 'q003' in vhost '/' on rabbit@shop-2" in said
    assert "Consequence of pub-nacked-overflow, queue 'emails.outbound' in vhost 'marketing': fix that first." in said
    assert "` ↳ stuck-consumer `** **` q003 (/) `" in said


def test_what_nobody_chose_gives_way_to_its_cause(exporter: Exporter, rollups: Path, open_page: Open) -> None:
    """A reader who came first sees the symptom; the cause is found later."""
    (symptom,) = queues(1)
    exporter.clusters = (answers.sick(findings=[symptom]),)
    page = open_page(exporter.url, rollups)
    before = words(page)
    cause = replace(answers.overflow(), severity=Severity.CRITICAL, consequences=(symptom,))
    exporter.clusters = (answers.sick(findings=[cause]),)
    answers_again(page)

    assert [] == errors(page)
    assert "Consequence of" not in before + words(page)
    assert "finding" not in page.query_params


def answers_again(page: AppTest) -> None:
    """Run the page again with fresh data."""
    cache.exporter_state.clear()
    page.run()


def test_a_link_opens_one_finding(exporter: Exporter, rollups: Path, open_page: Open) -> None:
    """And says so if it is not present."""
    listed = queues(5)
    exporter.clusters = (answers.sick(findings=listed),)
    linked = open_page(exporter.url, rollups, finding=address(listed[4]))
    ended = open_page(exporter.url, rollups, finding="stuck-consumer-0123456789")

    assert "queue 'q004' in vhost '/' on rabbit@shop-2" in words(linked)
    assert "The finding of this link is not present (any more)." in words(ended)
    assert [] == errors(linked) + errors(ended)


def test_a_chosen_finding_that_ends_stays_for_its_reader(exporter: Exporter, rollups: Path, open_page: Open) -> None:
    """Marked as ended, without buttons to change it; even if no other finding is left."""
    listed = queues(2)
    exporter.clusters = (answers.sick(findings=listed),)
    page = open_page(exporter.url, rollups)
    page.button(key=f"row-{address(listed[1])}").click().run()
    exporter.clusters = (answers.healthy(),)
    answers_again(page)
    said = words(page)

    assert [] == errors(page)
    assert "Nothing wrong found" in page.header[0].value
    assert "This finding has ended. It was last seen at " in said
    assert "queue 'q001' in vhost '/' on rabbit@shop-2" in said
    assert "Acknowledge" not in said


def test_the_default_follows_the_ranking_only_when_its_finding_ends(
    exporter: Exporter, rollups: Path, open_page: Open
) -> None:
    """A new and more severe finding does not replace the one that is being read."""
    first, second = queues(2)
    exporter.clusters = (answers.sick(findings=[second]),)
    page = open_page(exporter.url, rollups)
    exporter.clusters = (answers.sick(findings=[first, second]),)
    answers_again(page)
    assert "queue 'q001' in vhost '/' on rabbit@shop-2" in words(page)

    exporter.clusters = (answers.sick(findings=[first]),)
    answers_again(page)
    assert "queue 'q000' in vhost '/' on rabbit@shop-2" in words(page)
    assert "finding" not in page.query_params


def test_filters_are_in_the_address(exporter: Exporter, rollups: Path, open_page: Open) -> None:
    """By severity, kind and vhost; a cause is listed if one of its consequences matches."""
    cause = replace(queues(1)[0], consequences=(answers.overflow(),))
    others = queues(6, severity=Severity.INFO)[1:]
    exporter.clusters = (answers.sick(findings=[cause, *others]),)
    page = open_page(exporter.url, rollups)
    page.selectbox(key="filter-in_vhost").select("marketing").run()
    one = words(page)
    page.selectbox(key="filter-severity").select("info").run()
    nothing = words(page)

    assert "marketing" == page.query_params["in_vhost"]
    assert "` q000 (/) `" in one
    assert "` q001 (/) `" not in one
    assert "No finding matches. 6 findings without the filter." in nothing
    assert [] == errors(page)


def test_muted_findings_are_last_and_not_counted(exporter: Exporter, rollups: Path, open_page: Open) -> None:
    """With until when, by whom and why; if all are muted, the cluster is not reported as healthy."""
    muted = Triage(
        muted_until=answers.ago(hours=-2),
        muted_by="ann",
        mute_reason="planned",
        muted_severity=Severity.CRITICAL,
        muted=True,
    )
    quiet, loud = replace(queues(1)[0], triage=muted), answers.overflow()
    exporter.clusters = (answers.sick(findings=[quiet, loud]),)
    page = open_page(exporter.url, rollups)
    said = words(page)

    assert ":orange[:material/warning:] 1 warning, 1 muted" == page.header[0].value
    assert said.index("` pub-nacked-overflow `") < said.index(":gray[:material/notifications_off: muted]")

    exporter.clusters = (answers.sick(findings=[quiet]),)
    answers_again(page)
    said = words(page)

    assert ":gray[:material/help:] Nothing wrong, 1 muted" == page.header[0].value
    assert "Muted by ann until " in said
    assert ": planned." in said
    assert "End the mute" in said


def test_a_finding_about_nobody_without_a_beginning_has_no_line_of_whom(
    exporter: Exporter, rollups: Path, open_page: Open
) -> None:
    """A line with only a full stop would tell nothing."""
    vague = replace(
        answers.overflow(), subject=Subject(kind="probe", name="all"), since="", severity=Severity.INFO, evidence=()
    )
    exporter.clusters = (answers.healthy(findings=[vague]),)
    page = open_page(exporter.url, rollups)

    assert [] == errors(page)
    assert [] == [each for each in page.caption if each.value.strip("` ") == "."]
