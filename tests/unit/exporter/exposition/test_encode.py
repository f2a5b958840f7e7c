import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families as read_text

from exporter.docs.metrics import sections
from exporter.exposition.encode import Format, encode, merge_families, render
from exporter.exposition.specs import MetricFamilies, MetricType, counter, gauge, histogram
from tests.unit.exporter.made import promtool

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
VALUES = st.one_of(st.integers(-(2**60), 2**60), st.floats(allow_nan=False), st.booleans())
READERS = [(Format.TEXT, read_text), (Format.OPENMETRICS, read_openmetrics)]

DEPTH = gauge("ackscope_depth", 'A "depth"\\ and\nmore.', "a test", "vhost", "queue")
MADE = counter("ackscope_made_total", "Things made.", "a test", "queue")
BUSY = counter("ackscope_busy_seconds_total", "Time spent.", "a test")


def samples(text, read=read_text):
    """Return name, labels and value of every sample, as a reader parses them."""
    return [(sample.name, sample.labels, float(sample.value)) for family in read(text) for sample in family.samples]


@pytest.mark.parametrize(("form", "read"), READERS)
@given(rows=st.lists(st.tuples(TEXT, TEXT, VALUES), min_size=1, max_size=5, unique_by=lambda row: row[:2]))
def test_a_reader_sees_what_was_put_in(form, read, rows):
    """Any label value and any number survive both formats."""
    families = MetricFamilies((DEPTH,))
    for vhost, queue, value in rows:
        families.add(DEPTH, {"vhost": vhost, "queue": queue}, value)

    expected = [("ackscope_depth", {"vhost": vhost, "queue": queue}, float(value)) for vhost, queue, value in rows]

    assert expected == samples(render(families.result(), form), read)


@given(rows=st.lists(st.tuples(TEXT, VALUES), min_size=1, max_size=5))
def test_columns_and_single_samples_are_written_alike(rows):
    """Our families and the client library's store samples differently, but give the same text."""
    families, theirs = MetricFamilies((MADE,)), Metric("ackscope_made", "Things made.", "counter")
    for queue, value in rows:
        families.add(MADE, {"queue": queue}, value)
        theirs.add_sample("ackscope_made_total", {"queue": queue}, value)

    assert render([theirs]) == render(families.result())


@pytest.mark.parametrize(("form", "read"), READERS)
def test_agrees_with_the_client_library(form, read):
    """A histogram and its bounds read as the library's own writer would have them; without its creation times."""
    registry = CollectorRegistry()
    spec = histogram("ackscope_wait_seconds", "A wait.", "a test", (0.0001, 0.5, 60.0), "cluster")
    made = spec.histogram(registry)
    made.labels("shop").observe(0.3)
    made.labels("shop").observe(100.0)
    theirs = [sample for sample in samples(generate_latest(registry).decode()) if not sample[0].endswith("_created")]

    assert theirs == samples(render(registry.collect(), form), read)


def test_a_shared_label_set_is_not_mixed_up_with_another():
    """Samples that share one dict, and samples of equal and of other dicts, each keep their own labels."""
    shared, families = {"queue": "one"}, MetricFamilies((DEPTH, MADE))
    families.add(DEPTH, shared, 1)
    families.add(DEPTH, {"queue": "two"}, 2)
    families.add(MADE, shared, 3)

    expected = (
        '# HELP ackscope_depth A "depth"\\\\ and\\nmore.\n# TYPE ackscope_depth gauge\n'
        'ackscope_depth{queue="one"} 1\nackscope_depth{queue="two"} 2\n'
        "# HELP ackscope_made_total Things made.\n# TYPE ackscope_made_total counter\n"
        'ackscope_made_total{queue="one"} 3\n'
    )

    assert expected == render(families.result())


def test_openmetrics_names_counters_by_their_stem_reports_units_and_ends():
    """The headers differ, the samples do not."""
    families = MetricFamilies((DEPTH, BUSY))
    families.add(DEPTH, {}, 0.5)
    families.add(BUSY, {}, 2.0)

    expected = (
        '# HELP ackscope_depth A \\"depth\\"\\\\ and\\nmore.\n# TYPE ackscope_depth gauge\nackscope_depth 0.5\n'
        "# HELP ackscope_busy_seconds Time spent.\n# TYPE ackscope_busy_seconds counter\n"
        "# UNIT ackscope_busy_seconds seconds\nackscope_busy_seconds_total 2\n# EOF\n"
    )

    assert expected == render(families.result(), Format.OPENMETRICS)


def test_what_has_no_type_has_each_formats_word_for_it():
    """`untyped` in one, `unknown` in the other."""
    metric = Metric("a_b", "A.", "unknown")
    metric.add_sample("a_b", {}, 1)

    assert "# TYPE a_b untyped\n" in render([metric])
    assert "# TYPE a_b unknown\n" in render([metric], Format.OPENMETRICS)


def test_numbers_that_are_none_are_written_as_the_formats_have_them():
    """Infinities and what is not a number."""
    families = MetricFamilies((BUSY,))
    for value in (math.inf, -math.inf, math.nan):
        families.add(BUSY, {}, value)

    assert "_total +Inf\nackscope_busy_seconds_total -Inf\nackscope_busy_seconds_total NaN\n" in render(
        families.result()
    )


@pytest.mark.parametrize(("form", "expected"), [(Format.TEXT, ""), (Format.OPENMETRICS, "# EOF\n")])
def test_a_family_without_samples_is_not_shown(form, expected):
    """A family without samples has no header either."""
    assert expected == render([DEPTH.family(), Metric("a_b", "A.", "gauge")], form)


def test_one_name_from_two_makers_is_one_family():
    """Both formats refuse a family twice."""
    first, second = MetricFamilies((DEPTH,)), MetricFamilies((DEPTH,))
    first.add(DEPTH, {"queue": "one"}, 1)
    second.add(DEPTH, {"queue": "two"}, 2)
    (family,) = merge_families([*encode(first.result()), *encode(second.result())])

    assert b'ackscope_depth{queue="one"} 1\nackscope_depth{queue="two"} 2\n' == b"".join(family.samples)


def test_every_metric_that_is_declared_can_stand_on_one_page():
    """No names conflict in OpenMetrics, where a counter is named without `_total`; promtool accepts all."""
    specs = [spec for section in sections().values() for spec in section]
    families = MetricFamilies(spec for spec in specs if spec.kind is not MetricType.HISTOGRAM)
    for spec in specs:
        if spec.kind is not MetricType.HISTOGRAM:
            families.add(spec, dict.fromkeys(spec.labels, "x"), 1)
    made = families.result()

    assert len({spec.stem for spec in specs}) == len({spec.name for spec in specs})
    assert len(made) == len(samples(render(made, Format.OPENMETRICS), read_openmetrics))
    assert "" == promtool(render(made))
