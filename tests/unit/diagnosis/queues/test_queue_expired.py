import pytest

from tests.unit.diagnosis.pictures import film, look, queue
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
