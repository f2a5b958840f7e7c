import pytest

from ackscope.findings import flat
from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.pictures import channel, connection, consumer, film, look, queue, stats, text
from tests.unit.diagnosis.queues.films import frame, of, one

RULE = "delay-target-full"
DELAY = {"x-message-ttl": 3000, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "due"}
LIMIT = {"x-max-length": 50, "x-overflow": "reject-publish"}


def shop(t, *, published=8.0, acked=1.0, ready=50, arguments=None, direct=0.0, **fields):
    """A delay queue that messages leave at the rate of publishing, in front of a full queue with a slow consumer."""
    waiting = queue(
        "wait", messages_ready=24, consumers=0, stats=stats(publish=int(100 + published * t)), arguments=DELAY
    )
    done = int(acked * t)
    counters = stats(publish=int(direct * t), ack=done, deliver=done, deliver_get=done)
    limit = LIMIT if arguments is None else arguments
    return frame(waiting, queue("due", **{"messages_ready": ready, "stats": counters, "arguments": limit, **fields}))


def shot(until, **fields):
    """The result after this many seconds."""
    return look(film(lambda t: shop(t, **fields), until=until))


def test_dead_letters_that_a_full_queue_drops():
    """Seven of eight messages per second are lost."""
    assert [("warning", "due")] == of(RULE, shot(40))
    assert [("critical", "due")] == of(RULE, shot(90))
    facts = one(RULE, shot(40)).facts
    assert (320, 280, False, ["wait"]) == (
        facts["expired"], facts["lost"], facts["drops_oldest"], facts["delay_queues"],
    )  # fmt: skip


def test_a_queue_that_drops_its_oldest_loses_as_many():
    """The default overflow."""
    assert one(RULE, shot(40, arguments={"x-max-length": 50})).facts["drops_oldest"]


def test_two_polls_find_it():
    """As `ackscope diagnose` does."""
    window = film(shop, until=7, every=7)

    assert [("critical", "due")] == of(RULE, look(window, thresholds=Thresholds.as_if_lasting()))


def test_a_limit_by_policy_can_be_raised_at_once():
    """Ten times as high."""
    steps = text(one(RULE, shot(40, arguments={}, effective_policy={"max-length": 50}, policy="short"))).steps

    assert any('"max-length": 500' in (step.command or "") for step in steps)


@pytest.mark.parametrize(
    "fields",
    [
        {"acked": 8.0},
        {"ready": 10},
        {"arguments": {}},
        {"arguments": {**LIMIT, "x-dead-letter-exchange": "more"}},
        {"direct": 5.0},
    ],
    ids=["keeps up", "not full", "no limit", "dead-letters further", "publishers use it as well"],
)
def test_other_targets_are_not_reported(fields):
    """Each differs in one thing only."""
    assert [] == of(RULE, shot(90, **fields))


def rejecting(t, *, published=8.0, rejected=4.0, kept=0.0, ready=40, consumers=0, arguments=None, **fields):
    """A work queue whose consumer rejects a part, and a full queue that should get it; `kept` a second arrive."""
    bad, done = int(rejected * t), int((published - rejected) * t)
    counters = stats(publish=int(published * t), deliver=bad + done, deliver_get=bad + done, ack=done)
    leads = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "failed", **fields.pop("leads", {})}
    limit = {"x-max-length": 40, "x-overflow": "reject-publish"} if arguments is None else arguments
    taken = int(kept * t)
    consumed = stats(deliver=taken, deliver_get=taken, ack=taken)
    work = queue("intake", stats=counters, arguments=leads, **fields)
    return frame(work, queue("failed", messages_ready=ready, consumers=consumers, stats=consumed, arguments=limit))


def test_what_consumers_reject_is_lost_in_a_full_queue():
    """It looks healthy: the work queue is empty, and the queue for its dead letters does not grow."""
    verdict = look(film(rejecting, until=90))
    finding = one(RULE, verdict)

    assert [("critical", "failed")] == of(RULE, verdict)
    assert (True, ["intake"]) == (finding.facts["rejects"], finding.facts["delay_queues"])
    assert 250 <= finding.facts["lost"] <= 360
    assert "loses the dead letters of queue 'intake'" in text(finding).summary
    assert "purge would delete them" in str(text(finding).steps).replace("\n", " ")


@pytest.mark.parametrize(("published", "rejected"), [(20.0, 3.0), (200.0, 30.0), (5.0, 1.0)])
def test_few_dead_letters_among_many_messages_are_found(published, rejected):
    """The error of a balance counts once, not for each of its terms."""
    window = film(lambda t: rejecting(t, published=published, rejected=rejected), until=120)
    finding = one(RULE, look(window))

    assert 0.8 * rejected * 100 <= finding.facts["lost"] <= 1.2 * rejected * 120


RING = {"x-max-length": 40}


@pytest.mark.parametrize(("published", "rejected"), [(8.0, 4.0), (12.0, 2.0), (40.0, 40.0)])
def test_a_store_of_the_latest_dead_letters_may_be_on_purpose(published, rejected):
    """It drops the oldest, and nobody consumes it: a warning after a minute, and never critical."""

    def at(until):
        return look(film(lambda t: rejecting(t, published=published, rejected=rejected, arguments=RING), until=until))

    assert [("info", "failed")] == of(RULE, at(50))
    assert "early" == one(RULE, at(50)).certainty.value
    assert [("warning", "failed")] == of(RULE, at(90))
    assert [("warning", "failed")] == of(RULE, at(400))
    assert "Perhaps it keeps only the latest on purpose" in text(one(RULE, at(90))).cause
    assert any('"overflow": "drop-head"' in (step.command or "") for step in text(one(RULE, at(90))).steps)


@pytest.mark.parametrize(
    ("arguments", "ready"),
    [({**RING, "x-overflow": "drop-head"}, 40), ({"x-max-length": 1}, 1)],
    ids=["explicit", "one"],
)
def test_settings_may_say_that_only_the_latest_are_wanted(arguments, ready):
    """Then it stays information."""
    finding = one(RULE, look(film(lambda t: rejecting(t, arguments=arguments, ready=ready), until=200)))

    assert ("info", "certain") == (finding.severity.value, finding.certainty.value)
    assert "By its settings it keeps only the latest" in text(finding).cause


def test_a_ring_that_consumers_empty_too_slowly_is_critical():
    """Somebody wants these messages."""
    verdict = look(film(lambda t: rejecting(t, rejected=8.0, kept=1.0, consumers=1, arguments=RING), until=120))

    assert [("critical", "failed")] == of(RULE, verdict)


def test_a_queue_that_fills_is_first_reported_as_growing():
    """Then as losing, and never as both."""

    def frame_at(t):
        return rejecting(t, rejected=2.0, kept=0.0, ready=min(40, int(2 * t)), arguments=RING)

    found = {
        until: {each.rule for each in look(film(frame_at, until=until)).findings} & {RULE, "dlq-filling"}
        for until in range(20, 100, 5)
    }

    assert {"dlq-filling"} == found[20]
    assert {RULE} == found[95]
    assert all(len(each) <= 1 for each in found.values())


@pytest.mark.parametrize(
    "fields",
    [
        {"rejected": 0.0},
        {"kept": 4.0, "consumers": 1},
        {"ready": 5},
        {"leads": {"x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish"}, "type": "quorum"},
    ],
    ids=["nothing is rejected", "consumed as fast", "not full", "kept in its queue"],
)
def test_dead_letters_that_arrive_or_stay_are_not_lost(fields):
    """Each differs in one thing only."""
    assert [] == of(RULE, look(film(lambda t: rejecting(t, **fields), until=90)))


def served(t, shares, **fields):
    """The same with consumers of the work queue: each is sent as many messages, and rejects its share of them."""
    each = int(8.0 * t / len(shares))
    parts = rejecting(t, published=8.0, rejected=8.0 * sum(shares.values()) / len(shares), **fields)
    channels, connections, consumers = [], [], []
    for number, (name, share) in enumerate(shares.items()):
        peer = f"10.0.0.{number}:5000 -> 10.0.0.1:5672"
        counters = stats(deliver=each, deliver_get=each, ack=each - int(each * share))
        channels.append(channel(f"{peer} (1)", stats=counters))
        connections.append(connection(peer, client_name=name))
        consumers.append(consumer("intake", channel_name=f"{peer} (1)", connection_name=peer))
    return {
        **parts,
        "channels": tuple(channels),
        "connections": tuple(connections),
        "consumers": tuple(consumers),
    }


@pytest.mark.parametrize(
    ("shares", "named"),
    [
        ({"checker": 0.4}, ["checker"]),
        ({"a": 0.0, "b": 0.5}, ["b"]),
        ({"old": 0.0, "new": 1.0, "other": 0.0}, ["new"]),
        ({"a": 0.4, "b": 0.4}, []),
    ],
    ids=["alone", "one of two", "one acknowledges none", "both reject"],
)
def test_the_client_that_rejects_what_is_lost_is_named(shares, named):
    """Only where the counters of the channels leave no other one."""
    finding = one(RULE, look(film(lambda t: served(t, shares), until=90)))

    assert named == finding.facts["rejecting"]
    assert set(named) <= set(finding.involved.clients)
    expected = f"read the log of '{named[0]}'" if named else "read the log of the consumers of 'intake'"
    assert expected in text(finding).steps[0].text.replace("\n", " ")


def test_no_step_of_a_full_queue_for_dead_letters_deletes_them():
    """Nothing else may have a copy; the finding below says so instead of advising a purge."""
    verdict = look(film(lambda t: served(t, {"checker": 0.4}), until=90))
    steps = [step for each in flat(verdict.findings) if each.subject.name == "failed" for step in text(each).steps]

    assert [("info", "failed")] == of("pub-nacked-overflow", verdict)
    assert not any("purge" in (step.command or "") for step in steps)
    assert any("Do not purge the queue" in step.text for step in steps)
