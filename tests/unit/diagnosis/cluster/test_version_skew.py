import pytest

from ackscope.topology import Feature
from tests.unit.diagnosis.cluster.scenes import ONE, TWO, finding_of, node, reported
from tests.unit.diagnosis.pictures import film, look

RULE = "version-skew"


def mixed(t, at=0.0):
    """The second node is upgraded at some second."""
    return (node(ONE, rabbitmq_version="4.3.5"), node(TWO, rabbitmq_version="4.3.6" if t >= at else "4.3.5"))


def test_different_versions_are_information_for_an_hour():
    """An upgrade looks the same."""
    finding = finding_of(look(film(lambda t: {"nodes": mixed(t)}, until=30)), RULE)

    assert ("info", "cluster", "shop") == (finding.severity, finding.subject.kind, finding.subject.name)
    assert (["4.3.5", "4.3.6"], "early") == (finding.facts["versions"], finding.certainty)


def test_an_upgrade_that_was_not_finished_is_a_warning():
    """The trend of nodes covers more than an hour."""
    window = film(lambda t: {"nodes": mixed(t)}, until=3700, every=50)

    assert [("warning", "cluster", "shop")] == reported(look(window), RULE)


@pytest.mark.parametrize("second", [None, "4.3.5"], ids=["not reported", "the same"])
def test_a_version_that_is_not_reported_is_no_other_version(second):
    """A node that is down has none."""
    pair = (node(ONE, rabbitmq_version="4.3.5"), node(TWO, rabbitmq_version=second))

    assert [] == reported(look(film(lambda _: {"nodes": pair}, until=30)), RULE)


def test_stable_feature_flags_that_are_off_are_named():
    """Experimental ones are off on purpose, and deprecated features are no flags."""
    features = (
        Feature(name="stream_filtering", state="disabled", stage="stable"),
        Feature(name="quorum_queue", state="enabled", stage="required"),
        Feature(name="khepri_db", state="disabled", stage="experimental"),
        Feature(name="global_qos", deprecated=True, state="disabled", stage="stable"),
    )
    finding = finding_of(look(film(lambda _: {"features": features}, until=10)), RULE)

    assert "info" == finding.severity
    assert ["stream_filtering"] == finding.facts["disabled_flags"]
