import logging

from prometheus_client.core import Metric

from exporter.exposition.encode import render
from exporter.exposition.execute import CollectorReport, execute, merge_runs, report_metrics
from tests.unit.exporter.made import SetClock


def test_one_that_fails_takes_no_other_with_it(caplog):
    """Its metrics are missing, the others' are there, and the reports say which is which."""
    clock = SetClock()

    def slow():
        clock.mono += 0.5
        metric = Metric("a_b", "A.", "gauge")
        metric.add_sample("a_b", {}, 1)
        return [metric]

    def broken():
        yield Metric("half_done", "Never shown.", "gauge")
        raise ZeroDivisionError

    with caplog.at_level(logging.ERROR):
        made = execute({"broken": broken, "slow": slow}, clock)

    assert ["a_b"] == [family.name for family in made.families]
    assert {
        "broken": CollectorReport(ok=False, seconds=0.0),
        "slow": CollectorReport(ok=True, seconds=0.5),
    } == made.reports
    assert ("collector failed", "broken") == (caplog.records[0].msg["event"], caplog.records[0].msg["collector"])


def test_reports_are_metrics():
    """Success and duration of each collector by its name."""
    text = render(report_metrics({"queues": CollectorReport(ok=False, seconds=0.25)}))

    assert 'ackscope_collector_success{collector="queues"} 0\n' in text
    assert 'ackscope_collector_duration_seconds{collector="queues"} 0.25\n' in text


def test_runs_on_several_clusters_are_one():
    """A collector that failed on one of them has failed; its times add up."""
    clock, good = SetClock(), Metric("a_b", "A.", "gauge")
    good.add_sample("a_b", {}, 1)

    def slow():
        clock.mono += 0.5
        return [good]

    whole = merge_runs(
        [execute({"one": slow}, clock), execute({"one": lambda: 1 / 0}, clock), execute({"one": slow}, clock)]
    )

    assert {"one": CollectorReport(ok=False, seconds=1.0)} == whole.reports
    assert [(b"a_b 1\n", b"a_b 1\n")] == [family.samples for family in whole.families]
