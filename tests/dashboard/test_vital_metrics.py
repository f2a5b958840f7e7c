from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from ackscope.findings import source
from ackscope.reports import EvidenceReport
from dashboard.charts import sparkline
from dashboard.data.model import SubjectSeries
from dashboard.format import vital_metrics
from tests.dashboard.answers import line, sign, stuck

_SVG = "{http://www.w3.org/2000/svg}"


def drawn(*values, **more):
    """The elements of the SVG by name."""
    root = ET.fromstring(sparkline.sparkline(line("ready", "messages", *values).line, **more))
    return {name: root.findall(f"{_SVG}{name}") for name in ("polyline", "rect", "circle")}


def test_a_gap_stays_a_gap():
    """Two segments are two lines, and a single point is a dot."""
    strokes = [element.get("points").split(" ") for element in drawn(1, 2, None, 3, None, 4, 5)["polyline"]]

    assert [2, 2, 2] == [len(points) for points in strokes]
    assert strokes[1][0] == strokes[1][1]


def test_time_is_linear_and_zero_is_at_the_bottom():
    """All points are inside the picture."""
    (stroke,) = drawn(0, 5, 10)["polyline"]
    points = [tuple(map(float, point.split(","))) for point in stroke.get("points").split(" ")]
    (left, bottom), (middle, half), (right, top) = points

    assert middle - left == pytest.approx(right - middle, abs=0.2)
    assert half == pytest.approx((bottom + top) / 2, abs=0.2)
    assert 0 <= left < right <= sparkline.WIDTH
    assert 0 <= top < bottom <= sparkline.HEIGHT


def test_the_band_and_values_outside_are_drawn():
    """A value outside has another colour."""
    found = drawn(10, 90, band=(0.0, 30.0), outside=True)

    assert 1 == len(found["rect"])
    assert sparkline.OUTSIDE == found["circle"][0].get("fill")
    assert [] == drawn(10, 90)["rect"]


@pytest.mark.parametrize("values", [(), (5,), (None, 5, None)])
def test_one_point_has_no_sparkline(values):
    """There is nothing to see in it."""
    points = line("ready", "messages", *values).line if values else ()

    assert None is sparkline.sparkline(points)


def test_all_zero_is_a_line_at_the_bottom():
    """Without dividing by zero."""
    assert 1 == len(drawn(0, 0, 0)["polyline"])


@pytest.mark.parametrize(
    ("value", "words", "outside"),
    [
        (150.0, "usual 120 to 180/s", None),
        (500.0, "usual 120 to 180/s", "above usual"),
        (3.0, "usual 120 to 180/s", "below usual"),
    ],
)
def test_the_band_is_shown_as_text(value, words, outside):
    """A colour is never the only sign."""
    reported = sign("publish", "rate", value, value, band=(120, 180))

    assert (words, outside) == (vital_metrics.band_text(reported), vital_metrics.deviation(reported))


def test_the_compared_value_is_shown_if_it_differs():
    """The broker's total includes the load of probes, the band does not."""
    reported = sign("ready", "messages", 950, 950, band=(0, 300))
    compared = replace(reported, usual=replace(reported.usual, value=12.0))

    assert "applications 12, usual 0 to 300 messages" == vital_metrics.band_text(compared)
    assert None is vital_metrics.deviation(compared)
    assert [True, False] == [vital_metrics.band_fits(reported), vital_metrics.band_fits(compared)]


def test_a_small_difference_is_ignored():
    """Probes always send some messages per second."""
    reported = sign("publish", "rate", 5040, 5040, band=(4000, 6000))

    assert "usual 4,000 to 6,000/s" == vital_metrics.band_text(
        replace(reported, usual=replace(reported.usual, value=4995.0))
    )


def test_missing_bands_are_explained_once():
    """One line for all metrics with the same reason."""
    why = "not known yet, needs 2 more days"
    lacking = [sign(name, "rate", 1, 1, because=why) for name in ("publish", "ack")]
    known = sign("ready", "messages", 1, 1, band=(0, 3))

    assert [f"Usual values {why}."] == vital_metrics.footnotes([*lacking, sign("confirm", "rate", 1, 1)])
    assert [
        (
            "Usual: at this hour of the week, from 6 weeks, "
            "over the queues of applications, without the probes' own queues."
        ),
        f"Usual values of published, acked {why}.",
    ] == vital_metrics.footnotes([*lacking, known])


def test_a_sparkline_has_a_text_alternative():
    """For people who cannot see it."""
    assert "Ready, last 3 min: from 5 to 1,200, lowest 5, highest 1,200" == vital_metrics.trend_text(
        line("ready", "messages", 5, None, 900, 1200)
    )
    assert "" == vital_metrics.trend_text(line("ready", "messages", 5))


def test_evidence_has_the_series_of_its_fields():
    """Only those of the subject itself."""
    lines = tuple(line(name, "rate", 1, 2) for name in ("ready", "unacked", "publish", "ack", "redeliver"))
    mine = SubjectSeries(kind="queue", vhost="/", name="orders.invoices", lines=lines)
    sources = (
        source("/api/queues", "message_stats.publish", "message_stats.ack"),
        source("/api/channels", "messages_unacknowledged"),
        source("/api/queues", "messages_ready") + source("/api/consumers", "prefetch_count"),
    )
    evidence = tuple(EvidenceReport(what="x", value="y", source="z", fields=fields) for fields in sources)
    finding = replace(stuck(), evidence=evidence)

    assert ["ready", "publish", "ack"] == [it.name for it in vital_metrics.lines_of(finding, [mine])]
    assert () == vital_metrics.lines_of(replace(finding, evidence=evidence[1:2]), [mine])
    assert () == vital_metrics.lines_of(finding, [replace(mine, name="another")])
