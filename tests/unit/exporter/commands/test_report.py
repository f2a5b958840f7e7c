import re
from dataclasses import replace

import pytest

from ackscope.findings import Certainty, Severity
from ackscope.records import Quantiles
from ackscope.reports import InconclusiveReport, SuppressedReport
from exporter.commands.report import report
from tests.unit.exporter.made import diagnosis_report, finding_report, outcome

GAP = InconclusiveReport(
    rule="memory-alarm", because="/api/nodes could not be read (403)", needs="give the user the monitoring tag"
)

WHOLE = """\
shop: RabbitMQ 4.3.6, 2023-11-14T22:13:20Z

WARNING  queue 'orders' in vhost '/'  (no-consumer, since 2023-11-14T22:13:20Z)
  Queue 'orders' has messages and no consumer
  why  No consumer is registered.
  seen - consumers: 0 (expected 1 or more) [/api/queues consumers]
  do   - Start the consumer
       - Check whether it consumes now:
           rabbitmqctl list_consumers -p / | grep -F -- orders-with-a-very-long-name
  more ackscope runbook no-consumer

INCONCLUSIVE  memory-alarm: /api/nodes could not be read (403)
  do   give the user the monitoring tag
"""


def test_a_finding_reads_from_the_worst_to_the_next_step():
    """The order is what, why, evidence, what to do; a command is on a line of its own, to be copied."""
    verdict = diagnosis_report(findings=(finding_report(),), inconclusive=(GAP,))

    assert WHOLE == report(verdict, "4.3.6", [], 80)


def test_nothing_found_says_how_much_was_checked():
    """An empty result is also reported."""
    text = "shop: RabbitMQ of unknown version, 2023-11-14T22:13:20Z\n\nnothing wrong found; 2 rules were checked\n"

    assert text == report(diagnosis_report(checked=("a", "b")), None, [], 80)


def test_a_rule_that_cannot_tell_is_no_clean_bill():
    """The report says what was found and what is inconclusive."""
    text = report(diagnosis_report(inconclusive=(GAP,)), "4.3.6", [], 80)

    assert "nothing wrong found" in text
    assert "INCONCLUSIVE  memory-alarm" in text


@pytest.mark.parametrize("width", [10, 80, 500])
def test_lines_fit_except_commands(width):
    """Wrapped to the terminal, between 40 and 100 columns; a command and a path are never broken."""
    long = finding_report(severity=Severity.CRITICAL, summary="many words " * 30, cause="and more " * 30)
    limit = max(40, min(width, 100))
    lines = report(diagnosis_report(findings=(long,)), "4.3.6", [], width).splitlines()

    assert all(len(line) <= limit for line in lines if not re.search("rabbitmqctl|^  more ", line))
    assert any(line.endswith("orders-with-a-very-long-name") for line in lines)


def test_what_a_probe_saw_is_reported_with_its_doubts():
    """The report has counts, two quantiles, and why they are doubtful."""
    seen = outcome(
        outcomes={"acked": 30, "lost": 0},
        confirm=Quantiles(count=30, p50=0.0015, p90=0.002, p99=0.0244, max=0.1),
        doubtful="the probe itself was slow",
    )
    text = report(diagnosis_report(), "4.3.6", [seen], 80).split("\n\n")[-1]
    expected = (
        "probe: delivery classic running: 30 acked; confirm p50 1.5 ms, p99 24.4 ms;\n"
        "  doubtful: the probe itself was slow\n"
    )

    assert expected == text


def test_a_probe_that_saw_nothing_says_so():
    """Without a settled message the latency is unknown, not zero."""
    text = report(diagnosis_report(), "4.3.6", [outcome(reason="connection refused")], 80)

    assert "probe: delivery classic running (connection refused): nothing measured yet\n" in text


def test_information_is_a_line_unless_everything_is_asked_for():
    """Findings with steps come first; information needs one line only."""
    fact = replace(finding_report(), severity=Severity.INFO)
    verdict = diagnosis_report(findings=(fact,))

    short, whole = report(verdict, "4.3.6", [], 80), report(verdict, "4.3.6", [], 80, everything=True)

    assert "nothing to act on; 2 rules were checked" in short
    assert "info  no-consumer: Queue 'orders' has messages" in short
    assert "why" not in short
    assert "why  No consumer is registered." in whole


def test_information_that_is_too_recent_is_nothing_certain():
    """A consumer that just stopped is no reason to look away."""
    early = replace(finding_report(), severity=Severity.INFO, certainty=Certainty.EARLY)

    text = report(diagnosis_report(findings=(early,)), "4.3.6", [], 80)

    assert "nothing is certain yet; --watch, or a longer --within" in text
    assert "nothing to act on" not in text


def test_consequences_hang_under_their_cause():
    """A few of them, and how many more."""
    cause = replace(finding_report(), consequences=tuple(finding_report() for _ in range(7)))
    text = report(diagnosis_report(findings=(cause,)), "4.3.6", [], 80)

    assert "  so   - queue 'orders' in vhost '/': no-consumer\n" in text
    assert "2 more; --json lists them" in text


def test_one_reason_makes_many_rules_blind_once():
    """Forty inconclusive rules for one missing permission are one item."""
    gaps = tuple(replace(GAP, rule=f"rule-{number}") for number in range(9))
    hidden = InconclusiveReport(rule="other", because="this version never tells", needs="nothing", permanent=True)
    text = report(diagnosis_report(inconclusive=(*gaps, hidden)), "4.3.6", [], 80)

    assert 1 == text.count("INCONCLUSIVE")
    assert "INCONCLUSIVE  rule-0, rule-1, rule-2, rule-3 and 5 more: /api/nodes" in text
    assert "never tells" in report(diagnosis_report(inconclusive=(hidden,)), None, [], 80, everything=True)


def test_what_is_left_alone_is_counted_and_reported_when_asked():
    """A dead-letter queue without consumers is no fault, and the reason can be shown."""
    aside = SuppressedReport(rule="no-consumer", subject=finding_report().subject, because="it is a dead-letter store")
    verdict = replace(diagnosis_report(), suppressed=(aside,))

    assert "1 suppressed as harmless; --all shows why" in report(verdict, None, [], 80)
    assert "it is a dead-letter store" in report(verdict, None, [], 100, everything=True)


def test_a_finding_that_may_rise_is_shown_with_its_steps():
    """It is not certain, but somebody on call wants to see it: what it becomes, and after how long."""
    early = finding_report(
        severity=Severity.INFO,
        if_it_lasts=Severity.CRITICAL,
        seen_seconds=6.0,
        facts={"warning_after_seconds": 180.0},
    )
    text = report(diagnosis_report(findings=(early,)), "4.3.6", [], 100)

    assert "INFO  queue 'orders' in vhost '/'" in text
    assert "seen for 6 s; critical if it lasts for 3 min)" in " ".join(text.split())
    assert "do   - Start the consumer" in text
    assert "nothing is certain yet" in text


def test_a_time_that_has_passed_already_is_not_named():
    """One look judges a fault as if it had lasted, with thresholds of a few seconds."""
    early = finding_report(
        severity=Severity.INFO, if_it_lasts=Severity.WARNING, seen_seconds=6.2, facts={"warning_after_seconds": 4.0}
    )
    text = report(diagnosis_report(findings=(early,)), "4.3.6", [], 100)

    assert "seen for 6.2 s; warning if it lasts)" in " ".join(text.split())
