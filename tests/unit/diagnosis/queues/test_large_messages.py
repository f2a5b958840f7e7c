import pytest

from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.pictures import film, look, queue
from tests.unit.diagnosis.queues.films import frame, of, one

RULE = "large-messages"
MIB = 1_048_576


def shot(until, *queues, **more):
    """The result after this many seconds."""
    return look(film(lambda _: frame(*queues), until=until), **more)


def large(name="orders", **fields):
    """A queue with ten messages of 2 MiB."""
    return queue(name, **{"messages_ready": 10, "message_bytes": 20 * MIB, **fields})


def test_one_finding_a_virtual_host_lists_them():
    """The largest first, as information."""
    finding = one(RULE, shot(20, large("a"), large("b", message_bytes=40 * MIB)))

    assert ("info", "vhost", "/") == (finding.severity, finding.subject.kind, finding.subject.name)
    assert (60 * MIB, 2) == (finding.facts["total_bytes"], finding.facts["queue_count"])
    assert ("b", 10, 4 * MIB) == tuple(
        finding.facts["largest"][0][key] for key in ("name", "messages", "average_bytes")
    )


def test_quorum_queues_are_counted():
    """Each of their nodes writes every message."""
    assert 1 == one(RULE, shot(20, large(type="quorum"))).facts["quorum_count"]


@pytest.mark.parametrize(
    "fields",
    [{"message_bytes": 9 * MIB}, {"messages_ready": 4}, {"message_bytes": None}, {"messages_ready": 0}],
    ids=["smaller", "few", "absent", "empty"],
)
def test_other_queues_are_not_reported(fields):
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
