import pytest

from tests.unit.diagnosis.pictures import film, look, queue, stats, text
from tests.unit.diagnosis.queues.films import binding, exchange, flowing, frame, of, one

RULE = "orphan-queue"
BOUND = (binding("events", "orders"), binding("events", "read"))


def picture(t, *, bindings=BOUND, **fields):
    """One of two queues of an exchange is consumed."""
    counters = stats(publish=int(100 + 4 * t))
    made = {"consumers": 0, "messages_ready": int(100 + 4 * t), "stats": counters, **fields}
    other = flowing(t, "read", published=4.0, acked=4.0)
    return frame(queue(**made), other, exchanges=(exchange("events"),), bindings=bindings)


def shot(until, **fields):
    """The result after this many seconds."""
    return look(film(lambda t: picture(t, **fields), until=until))


def test_with_a_sibling_it_is_information_first_and_a_warning_after_three_minutes():
    """Its consumer may be about to be deployed."""
    assert [] == of(RULE, shot(10))
    assert [("info", "orders")] == of(RULE, shot(20))
    assert [("warning", "orders")] == of(RULE, shot(200))


def test_no_consumer_follows_from_it():
    """One cause, one finding."""
    assert [RULE] == [finding.rule for finding in shot(200).findings]


def test_the_finding_names_the_sibling():
    """And the exchange that routes to both."""
    assert [{"queue": "read", "exchange": "events"}] == one(RULE, shot(20)).facts["siblings"]


def test_without_a_sibling_it_takes_ten_minutes():
    """Until then it is no-consumer only."""
    assert [] == of(RULE, shot(400, bindings=()))
    assert [("warning", "orders")] == of(RULE, shot(610, bindings=()))


@pytest.mark.parametrize(
    "fields",
    [
        {"stats": stats(publish=100, deliver_get=1)},
        {"consumers": 1},
        {"messages_ready": 100},
        {"durable": False},
        {"exclusive": True},
        {"arguments": {"x-max-length": 100}},
        {"arguments": {"x-expires": 60000}},
        {"type": "stream"},
    ],
    ids=["was read once", "is consumed", "does not grow", "transient", "private", "limited", "expires", "stream"],
)
def test_other_queues_are_not_reported(fields):
    """Each differs in one thing only."""
    assert [] == of(RULE, shot(300, **fields))


def test_a_dead_letter_queue_is_read_by_people():
    """Whatever its name."""

    def store(t):
        made = picture(t)
        source = queue("work", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "orders"})
        return {**made, "queues": (*made["queues"], source)}

    assert [] == of(RULE, look(film(store, until=300)))


def released(names, current="report.r5", *, kind="fanout", keys=None):
    """Queues of one exchange that nobody reads, and one that is consumed; `keys`: a routing key for each of them."""

    def frame_at(t):
        number = int(5 + 6 * t)
        lonely = [queue(name, consumers=0, messages_ready=number, stats=stats(publish=number)) for name in names]
        keyed = dict(zip((*names, current), keys or [""] * (len(names) + 1), strict=True))
        bindings = tuple(binding("sales", name, key=key) for name, key in keyed.items())
        return frame(
            *lonely, flowing(t, current, published=6.0, acked=6.0),
            exchanges=(exchange("sales", kind),), bindings=bindings,
        )  # fmt: skip

    return look(film(frame_at, until=200))


@pytest.mark.parametrize(
    ("names", "current", "fields"),
    [
        (["report.r1", "report.r2", "report.r3"], "report.r5", {}),
        (["bills-2023", "bills-2024"], "bills-2025", {"kind": "topic", "keys": ["bill.#"] * 3}),
    ],
)
def test_queues_of_earlier_releases_are_one_finding(names, current, fields):
    """The queue of the present release gets a copy of each message, by the bindings."""
    result = released(names, current, **fields)
    finding = one(RULE, result)

    assert (names[0], names[1:], current) == (finding.subject.name, finding.facts["others"], finding.facts["current"])
    assert names == [each.subject.name for each in finding.consequences]
    assert [RULE] == [each.rule for each in result.findings]
    assert f"{len(names)} queues of one form" in text(finding).summary


@pytest.mark.parametrize(
    ("names", "fields"),
    [
        (["report.r1", "report.r2"], {"kind": "direct", "keys": ["1", "2", "5"]}),
        (["report.r1", "report.r2"], {"kind": "x-consistent-hash", "keys": ["1", "1", "1"]}),
        (["mail", "print"], {}),
    ],
    ids=["shards by key", "shards by hash", "other names"],
)
def test_other_queues_of_the_exchange_are_a_finding_each(names, fields):
    """The consumed queue does not get what arrives in them, or they are of another application."""
    assert [("warning", name) for name in names] == sorted(of(RULE, released(names, **fields)))


@pytest.mark.parametrize(("waits", "named"), [("orders.v1", False), ("Orders", False), ("bills.v1", True)])
def test_a_queue_whose_consumers_wait_at_a_similar_one_is_not_forgotten(waits, named):
    """It must not be deleted; no-consumer says where its consumers are."""

    def frame_of(t):
        made = picture(t)
        return {**made, "queues": (*made["queues"], queue(waits, consumers=3))}

    result = look(film(frame_of, until=200))

    assert named == bool(of(RULE, result))
    assert [("warning", "orders")] == of("no-consumer", result)
