import pytest

from tests.unit.diagnosis.cluster.scenes import ONE, THREE, TWO, finding_of, reported
from tests.unit.diagnosis.pictures import film, look, queue, text

RULE = "mirror-unsynchronised"


def mirrored(t, at=20.0, *, mirrors=(TWO, THREE), filled=()):
    """A queue that gets mirrors at some second."""
    if t < at:
        return {"queues": (queue(node=ONE, messages_ready=50),), "version": "3.10.8"}
    held = queue(node=ONE, messages_ready=50, mirrors=mirrors, synchronised_mirrors=filled)
    return {"queues": (held,), "version": "3.10.8"}


@pytest.mark.parametrize(
    ("until", "expected"),
    [(25, []), (40, [("info", "queue", "orders")]), (400, [("warning", "queue", "orders")])],
    ids=["joining", "seconds", "minutes"],
)
def test_a_mirror_is_given_time_to_synchronise(until, expected):
    """It is a warning if nobody synchronises it."""
    assert expected == reported(look(film(mirrored, until=until)), RULE)


@pytest.mark.parametrize(
    ("mirrors", "filled"), [((TWO,), (TWO,)), ((), ()), ((TWO,), None), (None, None)],
    ids=["synchronised", "no mirrors", "not reported", "4.0"],
)  # fmt: skip
def test_mirrors_that_are_synchronised_or_not_reported_are_no_finding(mirrors, filled):
    """Absent is not unsynchronised."""
    window = film(lambda t: mirrored(t, 0, mirrors=mirrors, filled=filled), until=60)

    assert [] == reported(look(window), RULE)


def test_it_names_what_may_be_lost():
    """Messages, nodes, and the command that synchronises the mirrors."""
    finding = finding_of(look(film(lambda t: mirrored(t, filled=(TWO,)), until=60)), RULE)

    assert (50, [THREE]) == (finding.facts["messages"], finding.facts["lagging_nodes"])
    assert "rabbitmqctl sync_queue -p / orders" == text(finding).steps[0].command
