from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families

from exporter.metrics import histogram
from exporter.render import render

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
VALUES = st.one_of(st.integers(-(2**60), 2**60), st.floats(allow_nan=False), st.booleans())


def samples(text):
    """What a reader sees: name, labels, value of every sample."""
    return [
        (sample.name, sample.labels, sample.value)
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    ]


@given(st.lists(st.tuples(TEXT, TEXT, VALUES), min_size=1, max_size=5))
def test_a_reader_sees_what_was_put_in(rows):
    """Any label value and any number survive the way through the text."""
    metric = Metric("ackscope_thing", 'A "thing"\\ and\nmore.', "gauge")
    for vhost, queue, value in rows:
        metric.add_sample("ackscope_thing", {"vhost": vhost, "queue": queue}, value)

    expected = [("ackscope_thing", {"vhost": vhost, "queue": queue}, float(value)) for vhost, queue, value in rows]

    assert expected == samples(render([metric]))


def test_agrees_with_the_client_library():
    """A histogram and its bounds read as the library's own writer would have them."""
    registry = CollectorRegistry()
    spec = histogram("ackscope_wait_seconds", "A wait.", "a test", (0.0001, 0.5, 60.0), "cluster")
    made = spec.histogram(registry)
    made.labels("shop").observe(0.3)
    made.labels("shop").observe(100.0)
    theirs = [sample for sample in samples(generate_latest(registry).decode()) if not sample[0].endswith("_created")]

    assert theirs == samples(render(registry.collect()))


def test_a_shared_label_set_is_not_mixed_up_with_another():
    """Samples that share one dict, and samples of equal and of other dicts, each keep their own labels."""
    shared = {"queue": "one"}
    first, second = Metric("a_b", "A.", "gauge"), Metric("c_d", "C.", "counter")
    first.add_sample("a_b", shared, 1)
    first.add_sample("a_b", {"queue": "two"}, 2)
    second.add_sample("c_d_total", shared, 3)

    text = (
        '# HELP a_b A.\n# TYPE a_b gauge\na_b{queue="one"} 1\na_b{queue="two"} 2\n'
        '# HELP c_d_total C.\n# TYPE c_d_total counter\nc_d_total{queue="one"} 3\n'
    )

    assert text == render([first, second])


def test_a_family_without_samples_is_not_shown():
    """Absent is absent: not even a heading."""
    assert "" == render([Metric("a_b", "A.", "gauge")])
