import pytest

from ackscope.snapshot import Node
from tests.unit.diagnosis.pictures import film, look, queue, stats, text
from tests.unit.diagnosis.queues.films import frame, of, one

RULE = "queue-expired"


def shop(t, *, gone=30, messages=200, consumer_until=-1.0, **fields):
    """A queue that is deleted after 30 s, next to another one."""
    defaults = {"messages_ready": messages, "consumers": int(t <= consumer_until), "arguments": {"x-expires": 20_000}}
    return frame(*([queue("session", **{**defaults, **fields})] if t < gone else []), queue("orders"))


def shot(until, **fields):
    """The result after this many seconds."""
    return look(film(lambda t: shop(t, **fields), until=until))


def test_a_durable_queue_that_is_deleted_with_messages_is_a_warning():
    """The number is that of the last reading."""
    assert [] == of(RULE, shot(25))
    assert [("warning", "session")] == of(RULE, shot(40))
    assert (200, 20.0) == (one(RULE, shot(40)).facts["messages"], one(RULE, shot(40)).facts["expires_seconds"])


def test_it_is_reported_while_readings_of_the_queue_are_held():
    """Nothing else remembers it."""
    assert [("warning", "session")] == of(RULE, shot(300))
    assert [] == of(RULE, shot(900))


@pytest.mark.parametrize("fields", [{"durable": False}, {"messages": 2}], ids=["not durable", "few messages"])
def test_small_losses_are_information(fields):
    """Such as queues of clients that ended."""
    assert [("info", "session")] == of(RULE, shot(40, **fields))


@pytest.mark.parametrize(
    "fields",
    [{"arguments": {}}, {"messages": 0}, {"consumer_until": 20.0}, {"consumer_until": 100.0}],
    ids=["no expires", "empty", "its consumer left too recently", "consumed"],
)
def test_other_deletions_are_not_reported(fields):
    """A client deleted these, or nothing is lost."""
    assert [] == of(RULE, shot(40, **fields))


DELAY = {
    "x-dead-letter-exchange": "",
    "x-dead-letter-routing-key": "default",
    "x-message-ttl": 6_000,
    "x-expires": 12_000,
}


@pytest.mark.parametrize(
    ("change", "reported"),
    [({}, False), ({"x-message-ttl": 13_000}, True), ({"x-dead-letter-exchange": None}, True)],
    ids=["a delay queue", "its messages live longer", "nothing takes what expires"],
)
def test_a_delay_queue_whose_messages_left_before_is_empty_when_it_expires(change, reported):
    """Frameworks declare such a queue for each delay, and it lives twice as long as its messages."""
    arguments = {key: value for key, value in {**DELAY, **change}.items() if value is not None}

    assert reported == bool(of(RULE, shot(40, messages=6, arguments=arguments)))


def retried(t, *, life=10, every=20, expires=8_000, node=3600.0, **fields):
    """A wait queue that a worker declares every 20 s, with six messages each time; it is gone after 10 s."""
    age = t % every
    messages = 6 if age else 2
    arguments = {"x-expires": expires, "x-message-ttl": 15_000}
    waiting = queue(
        "retry", messages_ready=messages, consumers=0, stats=stats(publish=messages), arguments=arguments, **fields
    )
    picture = frame(*([waiting] if age < life else []), queue("orders"))
    return {**picture, "nodes": (Node(name="rabbit@one", running=True, uptime_seconds=node + t),)}


def test_a_queue_that_expires_and_is_declared_again_is_one_finding():
    """Its messages wait for longer than it lives, so all of them are lost; nobody deleted it."""
    for until in (66, 76):
        verdict = look(film(retried, until=until, every=2))
        facts = one(RULE, verdict).facts

        assert [("warning", "retry")] == of(RULE, verdict)
        assert [] == of("queue-deleted", verdict)
        assert facts["times"] >= 2
        assert 6 * facts["times"] == facts["messages"]
        assert "15 s, which is longer" in text(one(RULE, verdict)).cause


def test_a_queue_that_is_deleted_before_it_can_expire_was_deleted_by_somebody():
    """It is declared shortly before."""
    verdict = look(film(lambda t: retried(t, expires=60_000), until=66, every=2))

    assert [] == of(RULE, verdict)
    assert [("warning", "retry")] == of("queue-deleted", verdict)


def test_counters_that_begin_again_with_a_node_are_no_deletion():
    """The node has run for a few seconds only."""
    assert [] == of(RULE, look(film(lambda t: retried(t, node=-60.0), until=66, every=2)))


@pytest.mark.parametrize(("rate", "ready"), [(3.4, 51), (40.0, 600)])
def test_an_earlier_consumer_settled_nothing_after_it_left(rate, ready):
    """All that is ready when the queue expires is lost, however fast that consumer was before."""

    def frame_at(t):
        taken = int(rate * min(t, 30))
        counters = stats(publish=int(rate * t), deliver=taken, ack=taken, deliver_get=taken)
        inbox = queue(
            "inbox",
            consumers=int(t < 30),
            messages_ready=int(rate * t) - taken,
            arguments={"x-expires": 14_000},
            stats=counters,
        )
        return frame(*([inbox] if t < 48 else []), queue("orders"))

    finding = one(RULE, look(film(frame_at, until=70)))

    assert ready == finding.facts["messages"]
