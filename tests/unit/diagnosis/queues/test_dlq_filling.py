from dataclasses import replace

import pytest

from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.pictures import channel, connection, consumer, film, look, queue, stats, text
from tests.unit.diagnosis.queues.films import binding, exchange, flowing, frame, of, one

RULE = "dlq-filling"
INTO = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "bin"}


def picture(t, *, store=None, source=None, rate=4.0):
    """A queue whose consumer rejects 4 messages per second, and the one that it dead-letters to."""
    work = {"name": "work", "acked": 4.0, "rejected": rate, "arguments": INTO, **(source or {})}
    stored = {"messages_ready": int(rate * t), "consumers": 0, **(store or {})}
    return frame(queue("bin", **stored), flowing(t, **work))


def shot(until, **fields):
    """The result after this many seconds."""
    return look(film(lambda t: picture(t, **fields), until=until))


def test_it_is_information_first_and_a_warning_after_five_minutes():
    """A few poison messages now and then look the same."""
    assert [] == of(RULE, shot(10))
    assert [("info", "bin")] == of(RULE, shot(25))
    assert [("warning", "bin")] == of(RULE, shot(330))


def test_two_polls_find_it():
    """As `ackscope diagnose` does."""
    window = film(picture, until=6, every=6)

    assert [("warning", "bin")] == of(RULE, look(window, thresholds=Thresholds.as_if_lasting()))


def test_the_finding_names_the_queue_that_dead_letters_and_why():
    """That is where the fix starts."""
    finding = one(RULE, shot(40))
    (reason,) = finding.facts["reasons"]

    assert ("rejected", "work", 160, 40.0) == (
        reason["reason"], reason["queue"]["name"], reason["messages"], reason["seconds"],
    )  # fmt: skip
    assert "consumers of queue 'work' in vhost '/' rejected about 160 in 40 s" in text(finding).cause


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ({"rejected": 0.0, "arguments": {**INTO, "x-message-ttl": 500}}, "expired"),
        ({"rejected": 0.0, "ready": 10, "arguments": {**INTO, "x-max-length": 10}}, "length_limit"),
        ({"rejected": 0.0}, "rejected_or_expired"),
    ],
    ids=["expired", "length limit", "unknown"],
)
def test_other_reasons_are_distinguished(source, reason):
    """By the settings of the source, and its balance."""
    assert [reason] == [each["reason"] for each in one(RULE, shot(40, source=source)).facts["reasons"]]


@pytest.mark.parametrize(
    "fields",
    [
        {"source": {"arguments": {}}},
        {"store": {"messages_ready": 500}},
        {"store": {"arguments": {"x-message-ttl": 5000, "x-dead-letter-exchange": "work"}}},
    ],
    ids=["nobody dead-letters into it", "it does not grow", "a delay queue"],
)
def test_other_queues_are_not_reported(fields):
    """A dead-letter queue that does not grow is not reported."""
    assert [] == of(RULE, shot(400, **fields))


def test_a_queue_that_is_published_to_grows_for_other_reasons():
    """Dead letters are not counted as published: a message that was published to it is not one."""

    def direct(t):
        return picture(t, store={"stats": stats(publish=int(4 * t))})

    assert [] == of(RULE, look(film(direct, until=120)))


def test_slow_growth_is_found_after_five_minutes():
    """Three a minute, which no two intervals in a row show."""
    verdict = shot(400, rate=0.05)

    assert [("warning", "bin")] == of(RULE, verdict)


def test_a_few_in_five_minutes_are_not_reported():
    """One a minute."""
    assert [] == of(RULE, shot(400, rate=0.015))


def shared(t, *, acked=0.0):
    """Two consumers of the source: one acknowledges, the other rejects what it is sent, apart from `acked` a second."""
    names = ["10.0.0.7:50001 -> 10.0.0.1:5672", "10.0.0.8:50001 -> 10.0.0.1:5672"]
    sent, done = int(4 * t), (int(4 * t), int(acked * t))
    return {
        **picture(t, rate=4.0 - acked, source={"acked": 4.0 + acked, "rejected": 4.0 - acked, "consumers": 2}),
        "consumers": tuple(consumer("work", channel_name=f"{name} (1)", connection_name=name) for name in names),
        "channels": tuple(
            channel(f"{name} (1)", connection_name=name, messages_unacked=0, stats=stats(deliver=sent, ack=acks))
            for name, acks in zip(names, done, strict=True)
        ),
        "connections": (connection(names[0], client_name="v2"), connection(names[1], client_name="v1")),
    }


@pytest.mark.parametrize(("acked", "named"), [(0.0, ["v1"]), (3.0, [])], ids=["rejects all", "rejects some"])
def test_a_consumer_that_rejects_all_is_named_if_others_acknowledge(acked, named):
    """An old version that runs beside the new one: the messages are good."""
    finding = one(RULE, look(film(lambda t: shared(t, acked=acked), until=60)))

    assert named == finding.facts["rejecting"]
    assert ["v1"] == list(finding.involved.clients)
    assert bool(named) == ("'v1' acknowledged none" in text(finding).cause)
    assert bool(named) != ("Only 'v1' does not acknowledge all" in text(finding).cause)


def test_where_a_limit_drops_messages_nobody_is_asked_for_what_consumers_reject():
    """They reject nothing."""
    full = {"rejected": 0.0, "ready": 10, "arguments": {**INTO, "x-max-length": 10}}

    assert "reject" not in str([step.text for step in text(one(RULE, shot(40, source=full))).steps])


def emptied(t, *, rate=20.0, grows=0.0, name="bin", how=("get", "ack")):
    """Dead letters that a client takes from their queue, but for some that stay."""
    counters = stats(**dict.fromkeys(how, int((rate - grows) * t)))
    arguments = {**INTO, "x-dead-letter-routing-key": name}
    work = flowing(t, "work", published=rate + 5.0, acked=5.0, rejected=rate, arguments=arguments)
    return frame(queue(name, consumers=0, messages_ready=5 + int(grows * t), stats=counters), work)


def test_a_queue_that_is_emptied_does_not_grow():
    """However many dead letters come."""
    assert [] == of(RULE, look(film(emptied, until=400)))
    assert [] == of(RULE, look(film(lambda t: emptied(t, rate=300.0, name="orders", how=("get_no_ack",)), until=60)))


@pytest.mark.parametrize(
    ("fields", "came"),
    [
        ({"rate": 20.0, "grows": 0.7}, 1200),
        ({"rate": 4.0, "grows": 1.0, "name": "orders", "how": ("get_no_ack",)}, 240),
    ],
)
def test_what_clients_remove_differs_from_what_stays(fields, came):
    """A client that takes them may publish them again, so nobody is asked to move them back."""
    finding = one(RULE, look(film(lambda t: emptied(t, **fields), until=60)))
    made = text(finding)

    assert pytest.approx(came, rel=0.03) == finding.facts["arrived"]
    assert int(fields["grows"] * 60) == finding.facts["grown"]
    assert "keeps growing" not in made.summary
    assert f"grows by {int(fields['grows'] * 60)} in 60 s" in made.summary
    assert "shovel" not in str(made.steps)


def test_a_queue_that_is_emptied_each_second_is_not_judged_by_a_few_readings():
    """Its length rises by chance."""
    window = film(lambda t: emptied(t, grows=0.7), until=40)

    assert [] == of(RULE, look(window))


def test_a_queue_from_which_clients_take_most_is_information_for_good():
    """Somebody looks after it."""
    assert [("info", "bin")] == of(RULE, look(film(lambda t: emptied(t, grows=0.7), until=400)))


def returned(t, *, rate=2.0, good=12.0, limit=5, rounds=5.0, name="invoices", others=0):
    """A quorum queue whose consumer returns messages until the delivery limit; `others` acknowledge all."""
    acked, again = int(good * t), int(rate * rounds * t)
    sent = acked + again + int(rate * t)
    counters = stats(publish=acked + int(rate * t), deliver=sent, ack=acked, redeliver=again)
    arguments = {**INTO, "x-delivery-limit": limit}
    own = queue(name, type="quorum", consumers=1 + others, arguments=arguments, stats=counters)
    names = [f"10.0.0.{7 + each}:50001 -> 10.0.0.1:5672" for each in range(1 + others)]
    acks = [acked // len(names)] * len(names)
    shares = [again + int(rate * t) + acks[0], *acks[1:]]
    return {
        **frame(queue("bin", consumers=0, messages_ready=int(rate * t)), own),
        "consumers": tuple(consumer(name, channel_name=f"{each} (1)", connection_name=each) for each in names),
        "channels": tuple(
            channel(f"{each} (1)", connection_name=each, stats=stats(deliver=share, ack=ack))
            for each, share, ack in zip(names, shares, acks, strict=True)
        ),
        "connections": tuple(connection(each, client_name=f"writer-{place}") for place, each in enumerate(names)),
    }


@pytest.mark.parametrize(
    "fields",
    [{}, {"rate": 30.0, "good": 60.0, "limit": 3, "rounds": 3.2, "name": "mails"}, {"others": 2}],
    ids=["one client", "other numbers", "others acknowledge"],
)
def test_returns_up_to_the_delivery_limit_are_found_with_their_client(fields):
    """One bad message brings its good neighbours over the limit."""
    finding = one(RULE, look(film(lambda t: returned(t, **fields), until=60)))
    (reason,) = finding.facts["reasons"]

    assert ("delivery_limit", fields.get("limit", 5)) == (reason["reason"], reason["delivery_limit"])
    assert ("writer-0", ("writer-0",)) == (finding.facts["returning"]["client"], finding.involved.clients)
    assert "over its delivery limit" in text(finding).cause
    assert "brings the good ones over the limit" in text(finding).cause
    assert "poison" not in text(finding).summary
    assert any("read some before you delete any" in step.text for step in text(finding).steps)


def test_messages_that_are_returned_too_seldom_were_rejected():
    """The counters prove that they did not reach the limit."""
    (reason,) = one(RULE, look(film(lambda t: returned(t, rounds=0.5), until=60))).facts["reasons"]

    assert "rejected" == reason["reason"]


@pytest.mark.parametrize(("good", "few"), [(100.0, True), (39.0, True), (37.0, False), (2.0, False)])
def test_a_few_are_less_than_a_twentieth(good, few):
    """The share is that of all messages which leave the queue."""
    finding = one(RULE, look(film(lambda t: returned(t, good=good), until=60)))

    assert few == finding.facts["few"] == ("poison messages look the same" in text(finding).summary)


def test_a_few_dead_letters_among_many_returns_are_not_a_few_poison_messages():
    """Far more messages are returned than reach the limit: they are returned together with a bad one."""
    (few, many) = (
        one(RULE, look(film(lambda t, rounds=rounds: returned(t, good=100.0, rounds=rounds), until=60))).facts["few"]
        for rounds in (5.5, 20.0)
    )

    assert (True, False) == (few, many)


def test_no_client_is_named_if_several_return_messages():
    """Or if the counters of its channels do not account for the returns."""

    def two(t):
        made = returned(t, others=1)
        first, second = made["channels"]
        both = stats(deliver=(first.stats.deliver + second.stats.deliver) // 2, ack=first.stats.ack)
        return {**made, "channels": tuple(replace(each, stats=both) for each in (first, second))}

    def gone(t):
        made = returned(t, others=1)
        return {**made, "channels": made["channels"][1:]}

    for frames in (two, gone):
        finding = one(RULE, look(film(frames, until=60)))
        assert (None, ()) == (finding.facts["returning"], finding.involved.clients)


def copied(t, *, failing=("b.work",), apart=False, names=("a", "b", "c"), rate=2.0):
    """Applications whose queues share a dead-letter exchange; each has bound a dead-letter queue of its own."""
    works, bins = [], []
    for name in names:
        loses = rate if f"{name}.work" in failing else 0.0
        arguments = {"x-dead-letter-exchange": "dlx", "x-dead-letter-routing-key": name}
        works.append(flowing(t, f"{name}.work", published=4.0 + loses, acked=4.0, rejected=loses, arguments=arguments))
        got = int((loses if apart else rate * len(failing)) * t)
        bins.append(queue(f"{name}.bin", messages_ready=got, messages=got, consumers=0, stats=stats()))
    bound = [binding("dlx", f"{name}.bin", name) for name in names]
    return frame(*bins, *works, exchanges=(exchange("dlx", "direct" if apart else "fanout"),), bindings=bound)


@pytest.mark.parametrize(
    ("names", "failing"),
    [(("a", "b", "c"), "b.work"), (("orders", "dead", "work"), "work.work"), (("x", "y"), "x.work")],
)
def test_dead_letters_that_are_copied_to_several_queues_are_one_finding(names, failing):
    """It names the queue that loses messages, and where the copies are; the others are innocent."""
    finding = one(RULE, look(film(lambda t: copied(t, names=names, failing=(failing,)), until=60)))

    assert ([failing], len(names) - 1) == (finding.facts["sources"], finding.facts["copy_count"])
    said = text(finding)
    assert "copies each of them" in said.cause
    assert any(f"only to '{failing}'" in step.text for step in said.steps)


def test_each_dead_letter_queue_of_a_direct_exchange_has_its_own_finding():
    """Nothing is copied."""
    verdict = look(film(lambda t: copied(t, apart=True, failing=("a.work", "c.work")), until=60))

    assert {"a.bin", "c.bin"} == {name for _, name in of(RULE, verdict)}
    assert [0, 0] == [each.facts["copy_count"] for each in verdict.findings if each.rule == RULE]
