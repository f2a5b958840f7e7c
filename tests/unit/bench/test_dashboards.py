"""Queries of the dashboard benchmark, and how it judges the results."""

import pytest

from bench.exporter import dashboards
from exporter.exposition.compat.names import MetricNames
from exporter.exposition.compat.select import collectors_for

ASKED = {metric for metrics in dashboards.ASKED.values() for metric in metrics}


def test_every_metric_is_made_or_has_a_reason():
    """Every metric is covered, and no reason remains for a metric that exists."""
    declared = {spec.name for it in collectors_for(MetricNames.BOTH, with_detailed=True).values() for spec in it.specs}

    assert ASKED - declared == set(dashboards.WHY_MISSING)


@pytest.mark.parametrize(
    ("answered", "verdict"),
    [(True, "met: all that the management API can give"), (False, "NOT met: 1 are missing")],
)
def test_one_that_should_answer_and_does_not_is_a_defect(answered, verdict):
    """Only a stated reason is an excuse."""
    document = {
        "broker": "4.3.6",
        "dashboards": {"one": {"a": True, "b": answered, "c": False}},
        "why": {"c": "nobody knows"},
    }
    lines = dashboards.lines(document)

    assert verdict == lines[-1]
    assert "one lacks c: nobody knows" in lines
    assert ("one lacks b: it should: a defect here" in lines) == (not answered)
