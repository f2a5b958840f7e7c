import pytest

from ackscope.records import ProbeOutcome, ProbeState, ProbeStep
from ackscope.topology import Feature
from tests.unit.diagnosis.cluster.scenes import ONE, THREE, TWO, finding_of, nodes, reported
from tests.unit.diagnosis.pictures import WALL, evidence, film, look

RULE = "metadata-minority"


def flag(state):
    """The feature flag of Khepri."""
    return (Feature(name="khepri_db", state=state, stage="stable"),)


@pytest.mark.parametrize(
    ("version", "features", "stopped", "expected"),
    [
        ("4.3.6", (), (TWO, THREE), [("critical", "cluster", "shop")]),
        ("4.3.6", (), (THREE,), []),
        ("4.2.1", flag("enabled"), (TWO, THREE), [("critical", "cluster", "shop")]),
        ("4.0.5", flag("disabled"), (TWO, THREE), []),
        ("3.10.8", (), (TWO, THREE), []),
    ],
    ids=["4.3", "a majority is left", "4.2 with Khepri", "4.0 with Mnesia", "3.10"],
)
def test_khepri_needs_a_majority_and_mnesia_does_not(version, features, stopped, expected):
    """At once: the health checks do not show it."""
    frame = {"nodes": nodes(*stopped), "version": version, "features": features}

    assert expected == reported(look(film(lambda _: frame, until=0)), RULE)


def test_one_of_two_is_no_majority():
    """Of two nodes none may fail."""
    window = film(lambda _: {"nodes": nodes(TWO)[:2]}, until=0)

    assert [("critical", "cluster", "shop")] == reported(look(window), RULE)


def test_without_knowing_the_metadata_store_it_is_inconclusive():
    """4.0 to 4.2 may have either."""
    window = film(lambda _: {"nodes": nodes(TWO, THREE), "version": "4.1.0"}, until=0)
    result = look(window)

    assert [] == reported(result, RULE)
    assert [False] == [gap.permanent for gap in result.inconclusive if gap.rule == RULE]


def test_a_probe_that_cannot_declare_is_evidence():
    """With the broker's reason."""
    step = ProbeStep(attempts=3, failures=3, reason="the metadata store operation timed out")
    outcome = ProbeOutcome(
        probe="rtt", stream="rtt", queue_type="none", vhost="/", queue="", node=ONE, at=WALL,
        state=ProbeState.RUNNING, steps={"declare": step},
    )  # fmt: skip
    window = film(lambda _: {"nodes": nodes(TWO, THREE)}, until=0)

    declare = evidence(finding_of(look(window, outcomes=(outcome,)), RULE), "declare")

    assert ("the metadata store operation timed out", "rtt") == (declare.value, declare.facts["stream"])
