import pytest

from ackscope.topology import Feature
from tests.unit.diagnosis.pictures import film, found, look, only, queue, told


def features(*known, version="4.3.6", **parts):
    """These features."""
    return lambda _t: {"features": known, "version": version, **parts}


TRANSIENT = Feature(name="transient_nonexcl_queues", deprecated=True, in_use=True, stage="permitted_by_default")


def test_features_in_use_are_one_finding():
    """With what they are, and which queues."""
    finding = only(look(film(features(TRANSIENT, queues=(queue("temp", durable=False),)), until=10)))

    assert ("deprecated-features-used", "info", "cluster") == (finding.rule, finding.severity, finding.subject.kind)
    assert "queues that are neither durable nor exclusive" in told(finding)
    assert "'temp' ('/')" in told(finding)


@pytest.mark.parametrize(
    "known",
    [
        Feature(name="global_qos", deprecated=True, in_use=False),
        Feature(name="global_qos", deprecated=True, in_use=None),
        Feature(name="management_metrics_collection", deprecated=True, in_use=True),
        Feature(name="quorum_queue", state="enabled"),
    ],
    ids=["not used", "not told", "used by every broker", "a feature flag"],
)
def test_the_rest_is_quiet(known):
    """Absent is not used."""
    assert [] == found(look(film(features(known), until=10)))


def test_a_version_that_does_not_tell_says_so():
    """Once, and for good."""
    gaps = [
        gap
        for gap in look(film(features(version="3.10.8"), until=10)).inconclusive
        if gap.rule == "deprecated-features-used"
    ]

    assert [True] == [gap.permanent for gap in gaps]
