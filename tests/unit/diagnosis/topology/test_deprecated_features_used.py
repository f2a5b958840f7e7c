import pytest

from ackscope.topology import Feature
from tests.unit.diagnosis.pictures import film, found, look, only, queue, text


def features(*known, version="4.3.6", **parts):
    """A broker with these features."""
    return lambda _t: {"features": known, "version": version, **parts}


TRANSIENT = Feature(name="transient_nonexcl_queues", deprecated=True, in_use=True, stage="permitted_by_default")


def test_features_in_use_are_one_finding():
    """With what they mean, and which queues use them."""
    finding = only(look(film(features(TRANSIENT, queues=(queue("temp", durable=False),)), until=10)))

    assert ("deprecated-features-used", "info", "cluster") == (finding.rule, finding.severity, finding.subject.kind)
    assert (["transient_nonexcl_queues"], ["'temp' in vhost '/'"]) == (
        finding.facts["features"], finding.facts["transient_queues"],
    )  # fmt: skip
    assert "queues that are neither durable nor exclusive (permitted_by_default)" == text(finding).evidence[0].value


@pytest.mark.parametrize(
    "known",
    [
        Feature(name="global_qos", deprecated=True, in_use=False),
        Feature(name="global_qos", deprecated=True, in_use=None),
        Feature(name="management_metrics_collection", deprecated=True, in_use=True),
        Feature(name="quorum_queue", state="enabled"),
    ],
    ids=["not used", "absent", "used by every broker", "a feature flag"],
)
def test_other_features_are_not_reported(known):
    """Absent is not used."""
    assert [] == found(look(film(features(known), until=10)))


def test_a_version_that_does_not_report_them_is_inconclusive():
    """Permanently."""
    gaps = [
        gap
        for gap in look(film(features(version="3.10.8"), until=10)).inconclusive
        if gap.rule == "deprecated-features-used"
    ]

    assert [("not_reported", True)] == [(gap.reason, gap.permanent) for gap in gaps]
