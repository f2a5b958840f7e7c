import pytest

from ackscope.topology import Feature
from tests.unit.diagnosis.cluster.scenes import ONE, THREE, TWO, cause_of, finding_of, node, nodes, reported
from tests.unit.diagnosis.pictures import film, look

RULE, IGNORED = "network-partition", "partition-handling-ignore"
KHEPRI = Feature(name="khepri_db", state="enabled", stage="stable")
MNESIA = Feature(name="khepri_db", state="disabled", stage="experimental")


def parted(t, at=20.0, **more):
    """The third node froze, was considered down and continued, as 4.0 reports it."""
    if t < at:
        return {"nodes": nodes(), "version": "4.0.5", "features": (MNESIA,), **more}
    split = (
        node(ONE, partitions=(THREE,)),
        node(TWO, partitions=()),
        node(THREE, running=False, partitions=(ONE, TWO)),
    )
    return {"nodes": split, "version": "4.0.5", "features": (MNESIA,), **more}


def test_a_partition_is_critical_at_once():
    """Each side reports what it lost; the smaller side is named."""
    finding = finding_of(look(film(parted, until=20)), RULE)

    assert ("critical", "cluster", "shop") == (finding.severity, finding.subject.kind, finding.subject.name)
    assert "2027-01-15T08:00:20Z" == finding.since
    assert [THREE] == finding.facts["smaller_side"]


def test_one_side_is_enough():
    """The other may not be seen from here."""

    def frame(_):
        return {"nodes": (node(ONE, partitions=(THREE,)), node(TWO), node(THREE, running=False, partitions=None))}

    assert [("critical", "cluster", "shop")] == reported(look(film(frame, until=0)), RULE)


def test_what_each_side_sees_of_the_other_is_a_consequence():
    """The node that is considered down runs: it is separated, and not down."""
    assert RULE == cause_of(look(film(parted, until=40)), "node-down")


@pytest.mark.parametrize(
    ("version", "features", "expected"),
    [("4.3.6", (), [True]), ("4.2.1", (KHEPRI,), [True]), ("4.0.5", (MNESIA,), []), ("3.10.8", (), [])],
)
def test_with_khepri_it_is_inconclusive(version, features, expected):
    """The smaller side stops instead."""
    window = film(lambda _: {"nodes": nodes(), "version": version, "features": features}, until=10)
    gaps = [gap.permanent for gap in look(window).inconclusive if gap.rule == RULE]

    assert expected == gaps


def test_a_partition_that_stays_is_not_healed_by_the_cluster():
    """Autoheal and pause_minority act within seconds."""
    assert [] == reported(look(film(parted, until=50)), IGNORED)

    result = look(film(parted, until=70))

    assert [("info", "cluster", "shop")] == reported(result, IGNORED)
    assert RULE == cause_of(result, IGNORED)


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        ({"nodes": nodes(), "version": "3.10.8"}, [True]),
        ({"nodes": nodes()[:1], "version": "3.10.8"}, []),
        ({"nodes": nodes(), "version": "4.3.6"}, []),
    ],
    ids=["a cluster", "a single node", "khepri"],
)
def test_before_there_is_a_partition_the_setting_is_unknown(frame, expected):
    """It is in no answer of the management API."""
    gaps = [gap.permanent for gap in look(film(lambda _: frame, until=10)).inconclusive if gap.rule == IGNORED]

    assert expected == gaps
