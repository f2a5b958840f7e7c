import pytest

from tests.unit.diagnosis.cluster.scenes import ONE, THREE, TWO, finding_of, told_of
from tests.unit.diagnosis.pictures import film, look, queue, told

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
def test_a_mirror_is_given_time_to_fill(until, expected):
    """It is a warning when nobody fills it."""
    assert expected == told_of(look(film(mirrored, until=until)), RULE)


@pytest.mark.parametrize(
    ("mirrors", "filled"), [((TWO,), (TWO,)), ((), ()), ((TWO,), None), (None, None)],
    ids=["filled", "no mirrors", "not told", "4.0"],
)  # fmt: skip
def test_what_is_filled_or_not_told_is_left_alone(mirrors, filled):
    """Absent is not unsynchronised."""
    window = film(lambda t: mirrored(t, 0, mirrors=mirrors, filled=filled), until=60)

    assert [] == told_of(look(window), RULE)


def test_it_says_what_is_at_stake():
    """Messages, nodes, and the command that fills them."""
    finding = finding_of(look(film(lambda t: mirrored(t, filled=(TWO,)), until=60)), RULE)

    assert "up to 50 messages" in finding.summary
    assert THREE in told(finding)
    assert TWO not in told(finding)
    assert "rabbitmqctl sync_queue -p / orders" in told(finding)
