from dataclasses import replace

import pytest

from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.pictures import film, look, queue, stats, text
from tests.unit.diagnosis.queues.films import binding, exchange, flowing, frame, of, one

RULE = "delay-queue-cycle"


def delay(t, name, to, *, published=0.0, ready=0, ttl=3000, **fields):
    """A delay queue that dead-letters to queue `to`."""
    arguments = {"x-message-ttl": ttl, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": to}
    counters = stats(publish=int(published * t)) if published else stats()
    return queue(name, **{"messages_ready": ready, "consumers": 0, "stats": counters, "arguments": arguments, **fields})


def itself(t, **fields):
    """A queue that dead-letters to itself: 5 messages per second are published, and expire after 3 s."""
    return frame(delay(t, "wait", "wait", published=5.0, ready=15, **fields))


def pair(t, **fields):
    """Two queues that dead-letter to each other."""
    return frame(delay(t, "a", "b", published=5.0, ready=15, **fields), delay(t, "b", "a", ready=15, **fields))


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_what_expires_in_a_circle_is_dropped(kind):
    """It is critical as soon as it is seen."""
    verdict = look(film(lambda t: itself(t, type=kind), until=40))

    assert [("critical", "wait")] == of(RULE, verdict)
    assert one(RULE, verdict).facts["dropped"] >= 150
    assert ["wait", "wait"] == one(RULE, verdict).facts["path"]
    assert [RULE] == [each.rule for each in verdict.findings]


def test_a_circle_of_two_is_one_finding_about_the_queue_that_is_published_to():
    """The other one only gets what expires."""
    verdict = look(film(pair, until=40))

    assert [("critical", "a")] == of(RULE, verdict)
    assert [RULE] == [each.rule for each in verdict.findings]


def test_two_polls_find_it():
    """As `ackscope diagnose` does."""
    verdict = look(film(lambda t: frame(delay(t, "wait", "wait", published=10.0, ready=30)), until=7, every=7),
                   thresholds=Thresholds.as_if_lasting())  # fmt: skip

    assert [("critical", "wait")] == of(RULE, verdict)


def test_at_least_once_dead_letters_are_stored():
    """Nothing is lost, and the queue grows."""

    def at(t):
        kept = int(5 * t)
        return frame(
            delay(t, "wait", "wait", published=5.0, messages=kept, messages_ready=0, messages_dlx=kept, type="quorum")
        )

    verdict = look(film(at, until=90))

    assert [("warning", "wait")] == of(RULE, verdict)
    assert 450 == one(RULE, verdict).facts["stored"]


def test_before_the_first_one_expires_it_is_a_warning():
    """They will be dropped."""

    def at(t):
        return frame(delay(t, "wait", "wait", published=5.0, ready=int(5 * t), ttl=3_600_000))

    assert [("info", "wait")] == of(RULE, look(film(at, until=30)))
    assert [("warning", "wait")] == of(RULE, look(film(at, until=90)))


@pytest.mark.parametrize(
    "parts",
    [
        lambda t: frame(delay(t, "a", "b", published=5.0, ready=15), delay(t, "b", "work"), queue("work")),
        lambda t: frame(delay(t, "a", "work", published=5.0, ready=15), delay(t, "work", "a", consumers=1)),
        lambda t: frame(
            delay(t, "a", "work", published=5.0, ready=15),
            delay(t, "work", "a", ready=5, stats=stats(publish=100, deliver=50, ack=50)),
        ),
        lambda t: frame(
            delay(t, "a", None, published=5.0, ready=15, arguments={"x-message-ttl": 5, "x-dead-letter-exchange": "x"}),
            queue("work"),
            exchanges=[exchange("x")],
            bindings=[binding("x", "a"), binding("x", "work")],
        ),
        lambda t: frame(delay(t, "wait", "wait")),
    ],
    ids=["a chain", "a retry", "a retry whose consumer is away", "a second way out", "never used"],
)
def test_other_ways_of_dead_letters_are_not_reported(parts):
    """A consumer gets the messages."""
    assert [] == of(RULE, look(film(parts, until=120)))


def retrying(t, *, published=8.0, acked=3.0, rejected=0.0, hops=1, ttl=2000, ready=16, out=None):
    """A work queue whose messages expire into delay queues that lead back to it."""
    names = ["pay", *(f"wait{number}" for number in range(hops))]
    to = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": names[1]}
    settled = int((acked + rejected) * t)
    counters = stats(publish=int(100 + published * t), ack=int(acked * t), deliver=settled + 1)
    limit = {} if ttl is None else {"x-message-ttl": ttl}
    work = queue("pay", messages_ready=ready, messages_unacked=1, stats=counters, arguments={**to, **limit})
    last = out or "pay"
    delays = [delay(t, name, names[place + 2] if place + 2 < len(names) else last, ready=9)
              for place, name in enumerate(names[1:])]  # fmt: skip
    return frame(work, *delays, *([queue(out)] if out else []))


@pytest.mark.parametrize("hops", [1, 2, 3])
@pytest.mark.parametrize("rejected", [0.0, 2.0])
def test_what_expires_in_a_work_queue_and_comes_back_is_dropped(hops, rejected):
    """However many delay queues are on the way; what is rejected comes back, and is counted only if it is gone then."""
    verdict = look(film(lambda t: retrying(t, hops=hops, rejected=rejected), until=60))
    finding = one(RULE, verdict)

    assert [("critical", "pay")] == of(RULE, verdict)
    assert 0.75 * 60 * 5 <= finding.facts["dropped"] <= 60 * 5
    assert hops + 2 == len(finding.facts["path"])
    assert [RULE] == [each.rule for each in verdict.findings if each.severity != "info"]


@pytest.mark.parametrize("grows", [0.0, 1.5])
@pytest.mark.parametrize("hops", [1, 2])
def test_its_loss_is_the_balance_of_all_queues_on_the_way(grows, hops):
    """What was published, less what was acknowledged and what waits in one of them; late counters may hide a few."""

    def parts(t):
        return retrying(t, hops=hops, published=4.0, acked=0.5, ready=int(40 + grows * t))

    finding = one(RULE, look(film(parts, until=120)))
    (expired,) = [each for each in finding.consequences if each.rule == "ttl-expiry-loss"]

    assert 120 * (3.5 - grows) - 30 <= finding.facts["dropped"] <= 120 * (3.5 - grows)
    assert 480 == finding.facts["published"]
    assert "come back once" in text(expired).summary
    assert "move these messages back" not in str(text(expired).steps)


@pytest.mark.parametrize(
    "fields",
    [{"acked": 8.0}, {"acked": 5.0, "rejected": 3.0}, {"ttl": None, "acked": 5.0, "rejected": 3.0}, {"out": "failed"}],
    ids=["nothing expires", "all are rejected", "no TTL", "leads elsewhere"],
)
def test_a_retry_that_works_is_left_alone(fields):
    """Rejected messages may come round for good."""
    assert [] == of(RULE, look(film(lambda t: retrying(t, **fields), until=60)))


def ladder(t, *, stages=2, work=("sms.send",), rejected=2.0, acked=5.0, published=0.0, direct=True, policy=False):
    """Work queues that reject into a ladder of delay queues, whose last stage leads back to its first one."""
    names = [f"later.{number}" for number in range(stages)]
    to = {"x-dead-letter-exchange": "" if direct else "retries", "x-dead-letter-routing-key": names[0]}
    works = [
        flowing(t, name, published=acked + rejected, acked=acked, rejected=rejected, arguments=to) for name in work
    ]
    delays = [
        delay(t, name, names[(place + 1) % stages], published=0.0 if place else published, ready=12)
        for place, name in enumerate(names)
    ]
    if policy:
        last = delays[-1]
        definition = {"dead-letter-exchange": "", "dead-letter-routing-key": names[0]}
        delays[-1] = replace(last, arguments={"x-message-ttl": 3000}, policy="retry", effective_policy=definition)
    return frame(
        *works,
        *delays,
        exchanges=() if direct else [exchange("retries", "direct")],
        bindings=() if direct else [binding("retries", names[0], names[0])],
    )


@pytest.mark.parametrize("stages", [2, 3, 4])
@pytest.mark.parametrize("rejected", [2.0, 5.0, 30.0])
@pytest.mark.parametrize("direct", [True, False])
def test_the_queue_whose_dead_letters_go_in_a_circle_is_named(stages, rejected, direct):
    """Nobody publishes to the delay queues, and all that its consumers reject is lost. The last stage is to correct."""
    finding = one(RULE, look(film(lambda t: ladder(t, stages=stages, rejected=rejected, direct=direct), until=120)))
    (feeder,), said = finding.facts["feeders"], text(finding)

    assert ("critical", f"later.{stages - 1}") == (finding.severity, finding.subject.name)
    assert "sms.send" == feeder["name"]
    assert 0.9 * rejected <= feeder["rate"] <= 1.1 * rejected
    assert 0.5 * rejected * 60 <= finding.facts["dropped"] <= rejected * 60 + 1
    assert "They are dead letters of 'sms.send' (" in said.summary
    assert f"Let the dead letters of 'later.{stages - 1}' go to 'sms.send'" in said.steps[0].text
    assert "Stop the publishers" not in " ".join(each.text for each in said.steps)


@pytest.mark.parametrize("stages", [2, 3])
def test_two_queues_may_feed_it(stages):
    """Each with its rate."""
    finding = one(RULE, look(film(lambda t: ladder(t, stages=stages, work=("fax", "sms")), until=120)))

    assert ["fax", "sms"] == [each["name"] for each in finding.facts["feeders"]]
    assert "'fax' (" in text(finding).summary
    assert "go to 'fax' or 'sms'" in text(finding).steps[0].text


def test_a_queue_that_rejects_nothing_has_no_rate():
    """What waits in the delay queues may be of earlier."""
    finding = one(RULE, look(film(lambda t: ladder(t, rejected=0.0), until=90)))

    assert ("warning", [None]) == (finding.severity, [each["rate"] for each in finding.facts["feeders"]])
    assert "They are dead letters of 'sms.send' and can only go in a circle" in text(finding).summary


def test_a_policy_can_be_corrected_at_once():
    """An argument cannot."""
    by_argument, by_policy = (
        text(one(RULE, look(film(lambda t, it=it: ladder(t, policy=it), until=60)))).steps[0].text
        for it in (False, True)
    )

    assert "declare a new queue" in by_argument
    assert "at once" in by_policy


def test_publishers_are_to_be_stopped_where_there_are_some():
    """Dead letters come in beside what they publish."""
    said = text(one(RULE, look(film(lambda t: ladder(t, published=3.0), until=60))))

    assert "Stop the publishers of 'later.0'" in said.steps[0].text
    assert "dead letters of" not in said.summary


def test_a_ladder_that_leads_back_is_left_alone():
    """The broker lets a rejected message come round again."""

    def at(t):
        made = ladder(t)
        ends = {"x-message-ttl": 3000, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "sms.send"}
        return {**made, "queues": (*made["queues"][:-1], replace(made["queues"][-1], arguments=ends))}

    assert [] == of(RULE, look(film(at, until=120)))
