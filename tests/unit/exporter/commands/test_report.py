import pytest

from ackscope.findings import CannotTell, Severity
from ackscope.records import Quantiles
from exporter.commands.report import report
from tests.unit.exporter.made import Verdicts, finding, outcome

GAP = CannotTell(
    rule="memory-alarm", because="/api/nodes could not be read (403)", needs="give the user the monitoring tag"
)

WHOLE = """\
shop: RabbitMQ 4.3.6, 2023-11-14T22:13:20Z

WARNING  queue 'orders' in vhost '/'  (no-consumer, since 2023-11-14T22:13:20Z)
  Queue 'orders' has messages and nobody takes them
  why  No consumer is registered.
  seen - consumers: 0 (expected 1 or more) [/api/queues consumers]
  do   - start the consumer
       - see whether it consumes now:
           rabbitmqctl list_consumers -p / | grep -F -- orders-with-a-very-long-name
  more docs/runbooks/no-consumer.md

CANNOT TELL  memory-alarm: /api/nodes could not be read (403)
  do   give the user the monitoring tag
"""


def test_a_finding_reads_from_the_worst_to_the_next_step():
    """What, why, seen where, what to do; a command is whole on its own line, to be copied."""
    verdict = Verdicts(findings=(finding(),), cannot_tell=(GAP,)).of("shop")

    assert WHOLE == report(verdict, "4.3.6", [], 80)


def test_nothing_found_says_what_was_checked():
    """Silence is no answer."""
    text = "shop: RabbitMQ of unknown version, 2023-11-14T22:13:20Z\n\nnothing wrong found; checked: a, b\n"

    assert text == report(Verdicts(checked=("a", "b")).of("shop"), None, [], 80)


def test_a_rule_that_cannot_tell_is_no_clean_bill():
    """Both are said."""
    text = report(Verdicts(cannot_tell=(GAP,)).of("shop"), "4.3.6", [], 80)

    assert "nothing wrong found" in text
    assert "CANNOT TELL  memory-alarm" in text


@pytest.mark.parametrize("width", [10, 80, 500])
def test_lines_fit_except_commands(width):
    """Wrapped to the terminal, between 40 and 100 columns; a command is never broken."""
    long = finding(severity=Severity.CRITICAL, summary="many words " * 30, cause="and more " * 30)
    limit = max(40, min(width, 100))
    lines = report(Verdicts(findings=(long,)).of("shop"), "4.3.6", [], width).splitlines()

    assert all(len(line) <= limit for line in lines if "rabbitmqctl" not in line)
    assert any(line.endswith("orders-with-a-very-long-name") for line in lines)


def test_what_a_probe_saw_is_told_with_its_doubts():
    """Counts, two quantiles, and why not to trust them."""
    seen = outcome(
        outcomes={"acked": 30, "lost": 0},
        confirm=Quantiles(count=30, p50=0.0015, p90=0.002, p99=0.0244, max=0.1),
        doubtful="the probe itself was slow",
    )
    text = report(Verdicts().of("shop"), "4.3.6", [seen], 80).split("\n\n")[-1]
    expected = (
        "probe: delivery classic running: 30 acked; confirm p50 1.5 ms, p99 24.4 ms;\n"
        "  doubtful: the probe itself was slow\n"
    )

    assert expected == text


def test_a_probe_that_saw_nothing_says_so():
    """No message settled is no latency of zero."""
    text = report(Verdicts().of("shop"), "4.3.6", [outcome(reason="connection refused")], 80)

    assert "probe: delivery classic running (connection refused): no message settled\n" in text
