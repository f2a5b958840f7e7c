import pytest

from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.pictures import film, look, queue
from tests.unit.diagnosis.queues.films import frame, of, one

RULE = "large-messages"
MIB = 1_048_576


def shot(until, *queues, **more):
    """The verdict after so many seconds."""
    return look(film(lambda _: frame(*queues), until=until), **more)


def large(name="orders", **fields):
    """A queue with ten messages of two MiB."""
    return queue(name, **{"messages_ready": 10, "message_bytes": 20 * MIB, **fields})


def test_one_finding_a_virtual_host_lists_them():
    """The largest first; a fact, and no more."""
    finding = one(RULE, shot(20, large("a"), large("b", message_bytes=40 * MIB)))

    assert ("info", "vhost", "/") == (finding.severity, finding.subject.kind, finding.subject.name)
    assert "Large messages: 60 MiB in 2 queues of vhost '/', 'b': 10 messages of 4 MiB" in finding.summary


def test_quorum_queues_are_worse():
    """Each node writes every message."""
    assert "1 quorum queue among them" in one(RULE, shot(20, large(type="quorum"))).cause


@pytest.mark.parametrize(
    "fields",
    [{"message_bytes": 9 * MIB}, {"messages_ready": 4}, {"message_bytes": None}, {"messages_ready": 0}],
    ids=["smaller", "few", "not told", "empty"],
)
def test_other_queues_are_left_alone(fields):
    """Absent is not zero, and not large either."""
    assert [] == of(RULE, shot(60, large(**fields)))


def test_it_must_be_seen_for_a_while():
    """One large batch passes."""
    assert [] == of(RULE, shot(5, large()))


def test_it_can_be_allowed_for_some_queues():
    """By an override."""
    allowed = Thresholds.model_validate(
        {"overrides": [{"queues": "^orders$", "values": {"queues": {"large_bytes": 10 * MIB}}}]}
    )

    assert [] == of(RULE, shot(20, large(), thresholds=allowed))
