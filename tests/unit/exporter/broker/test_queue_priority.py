from hypothesis import given
from hypothesis import strategies as st

from ackscope.clock import Instant
from ackscope.counters import MessageStats
from ackscope.snapshot import Channel, Consumer, Queue
from exporter.broker.queue_priority import suspicious_queues
from exporter.polling.redelivery_hints import redelivering_queues

NOW = Instant(wall=1.7e9, mono=1000.0)


def seen(age):
    """A time some seconds ago; None for never."""
    return None if age is None else Instant(wall=1.7e9 - age, mono=1000.0 - age)


def queue(name, ready=0, unacked=0, age=30.0):
    """A queue with its totals, whose statistics were read some seconds ago."""
    return Queue(
        vhost="/",
        name=name,
        messages=ready + unacked,
        messages_ready=ready,
        messages_unacked=unacked,
        details_at=seen(age),
    )


def read_at(queues):
    """When the statistics of each were read."""
    return {it.key: it.details_at.mono for it in queues if it.details_at is not None}


def names(queues, most=10, changed="", named="", **options):
    """Names of the suspicious queues, in order; `changed` and `named` are one-letter names."""
    found = suspicious_queues(
        queues, read_at(queues), {("/", it) for it in changed}, {("/", it) for it in named}, NOW, most, **options
    )
    return "".join(name for _, name in found)


def test_every_sign_has_its_turn():
    """Backlog, unacknowledged, changed, redelivered, never read: the first of each, then the second of each."""
    queues = [
        queue("a", ready=9),
        queue("b", ready=5),
        queue("c", unacked=9),
        queue("d", unacked=5),
        queue("e"),
        queue("f"),
        queue("g", age=None),
        queue("h"),
    ]

    assert names(queues, changed="e", named="f") == "acefgbd"


def test_the_oldest_statistics_go_first():
    """However small the backlog is: no queue waits forever."""
    assert names([queue("a", ready=9, age=5), queue("b", ready=1, age=600), queue("c", ready=1, age=None)]) == "cba"


def test_at_equal_age_the_largest_goes_first():
    """A tie of age."""
    assert names([queue("a", ready=1), queue("b", ready=1000), queue("c", ready=10)]) == "bca"


def test_a_caller_that_reads_a_few_goes_on_where_it_stopped():
    """So that one large backlog does not get every turn."""
    queues = [queue("a", ready=9), queue("b", ready=5), queue("c", unacked=1)]

    assert [names(queues, most=1, first=first) for first in range(6)] == ["a", "c", "a", "a", "a", "a"]


def test_an_idle_queue_is_not_suspicious():
    """It is read with its page."""
    assert names([queue("a"), queue("b")]) == ""


def test_unread_queues_are_not_suspicious_during_the_first_sweep():
    """Most queues are unread then."""
    assert names([queue("a", age=None), queue("b", age=None, ready=1)], include_unread=False) == "b"


QUEUES = st.lists(
    st.builds(
        queue,
        name=st.sampled_from("abcdefgh"),
        ready=st.integers(0, 10**7),
        unacked=st.integers(0, 10**4),
        age=st.one_of(st.none(), st.floats(0, 100)),
    ),
    unique_by=lambda it: it.name,
)


@given(QUEUES, st.integers(0, 12), st.sets(st.sampled_from("abcdefgh")))
def test_each_suspicious_queue_is_returned_once_up_to_the_limit(queues, most, changed):
    """All of them if the limit allows."""
    found = names(queues, most=most, changed=changed)
    suspicious = {it.name for it in queues if it.messages or it.details_at is None or it.name in changed}

    assert len(set(found)) == len(found) == min(most, len(suspicious))
    assert set(found) <= suspicious


@given(QUEUES)
def test_no_suspicious_queue_waits_forever(queues):
    """With one read per round, each had its turn after some rounds, even if the others stay suspicious."""
    unseen = {it.name for it in queues if it.messages}
    moments = {it.name: it.details_at for it in queues}
    for turn in range(400):
        if not unseen:
            break
        now = Instant(wall=0.0, mono=2000.0 + 5.0 * turn)
        current = [
            Queue(
                vhost="/",
                name=it.name,
                messages=it.messages,
                messages_ready=it.messages_ready,
                messages_unacked=it.messages_unacked,
                details_at=moments[it.name],
            )
            for it in queues
        ]
        ((_, chosen),) = suspicious_queues(current, read_at(current), (), (), now, 1, include_unread=False, first=turn)
        moments[chosen] = now
        unseen.discard(chosen)

    assert unseen == set()


def channel(name, redelivered):
    """A channel with a redelivery counter."""
    return Channel(name=name, stats=MessageStats(redeliver=redelivered))


def consumer(name, channel_name):
    """A consumer of a queue."""
    return Consumer(tag="t", vhost="/", queue=name, channel_name=channel_name)


def test_redelivery_on_a_channel_points_to_the_queues_of_its_consumers():
    """Only if the counter has grown since the previous reading."""
    channels = [channel("one", 5), channel("two", 9), channel("three", None), channel("new", 1)]
    consumers = [consumer("a", "one"), consumer("b", "two"), consumer("c", "three"), consumer("d", "new")]
    counters, named = redelivering_queues({"one": 4, "two": 9, "gone": 3}, channels, consumers)

    assert {"one": 5, "two": 9, "new": 1} == counters
    assert {("/", "a"), ("/", "d")} == named
