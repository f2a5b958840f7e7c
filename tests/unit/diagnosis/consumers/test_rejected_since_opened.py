"""A loss by rejects that is too slow for the readings, shown by the channels that are still open."""

import pytest

from ackscope.findings import flat
from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.pictures import WALL, channel, connection, consumer, film, full_text, look, queue, stats

RULE = "reject-loss"


def opened(*, rejected=25, acked=6, rate=0.0, age=104.0, name="contracts.sign", mine=None, of=None, on=None, **fields):
    """Return a film in which a consumer has rejected and acknowledged messages before, and rejects `rate` per second.

    `rejected` and `acked` are counts at the first reading, `age` the seconds since its connection was opened, `mine`
    the counters of its channel if they are not those of the queue, `of` and `on` other fields of queue and channel,
    and `fields` further counters of the queue.
    """

    def frame(t):
        gone = rejected + int(rate * t)
        counters = {"publish": gone + acked, "deliver": gone + acked, "ack": acked}
        of_queue = {each: counters.get(each, 0) + fields.get(each, 0) for each in {*counters, *fields}}
        began = None if age is None else WALL - age
        return {
            "queues": (queue(name, stats=stats(**of_queue), **(of or {})),),
            "consumers": (consumer(name, prefetch_count=5),),
            "channels": (channel(stats=stats(**(counters if mine is None else mine)), **(on or {})),),
            "connections": (connection(client_name="sign-svc", connected_at=began),),
        }

    return frame


def briefly(frame):
    """Findings of this rule in two readings."""
    result = look(film(frame, until=10, every=10), thresholds=Thresholds.brief())
    return [each for each in flat(result.findings) if each.rule == RULE]


@pytest.mark.parametrize(
    ("name", "rejected", "acked", "rate", "age"),
    [
        ("contracts.sign", 25, 6, 0.25, 104),
        ("contracts.sign", 25, 6, 0.0, 104),
        ("mail", 400, 0, 0.1, 3600),
        ("a.b1", 12, 300, 0.05, 700),
        ("x", 300, 20_000, 0.3, 86_400),
    ],
)
def test_what_open_channels_rejected_is_a_warning(name, rejected, acked, rate, age):
    """The readings alone prove nothing: 0 to 3 messages are lost between them."""
    (finding,) = briefly(opened(name=name, rejected=rejected, acked=acked, rate=rate, age=age))

    assert ("warning", name) == (finding.severity.value, finding.subject.name)
    assert rejected <= finding.facts["lost"] <= rejected + 3
    assert finding.facts["since_opened"]
    assert ("sign-svc",) == finding.involved.clients
    assert age + 10 == pytest.approx(finding.facts["over_seconds"])


def test_the_text_says_since_when():
    """Nobody watched it."""
    (finding,) = briefly(opened(age=110))
    report = full_text(finding)

    assert "lost what its consumers rejected: 25 of 31 messages that they were sent since they connected" in report
    assert "'sign-svc' settles messages with basic.reject" in report


@pytest.mark.parametrize(
    "frame",
    [
        opened(redeliver=25, deliver=25),
        opened(redeliver=30),
        opened(of={"messages_ready": 25}),
        opened(of={"messages_unacked": 25}, on={"messages_unacked": 25}),
        opened(on={"messages_unacked": 25}),
        opened(on={"acks_uncommitted": 25}),
        opened(ack=25),
        opened(mine={"deliver": 31, "ack": 31}),
        opened(mine={}),
        opened(of={"arguments": {"x-dead-letter-exchange": "dlx"}}),
        opened(of={"effective_policy": {"dead-letter-exchange": ""}}),
        opened(of={"arguments": {"x-message-ttl": 5000}}),
        opened(of={"arguments": {"x-max-length": 100}}),
        opened(of={"type": "quorum", "arguments": {"x-delivery-limit": 0}}),
        opened(of={"settings_known": False}),
        opened(rejected=4),
        opened(rejected=25, acked=9000),
        opened(age=None),
    ],
    ids=[
        "all were redelivered",
        "more redeliveries than losses",
        "all are ready again",
        "it holds them",
        "its channel holds them",
        "a transaction is open",
        "an ended channel acknowledged as many",
        "an ended channel took its last acknowledgements with it",
        "the channel has no counters",
        "dead-letters",
        "dead-letters by policy",
        "expires on return",
        "drops on return",
        "deleted at the delivery limit",
        "settings are not known",
        "four messages",
        "fewer than one in a hundred",
        "nobody knows since when",
    ],
)
def test_what_only_resembles_it_is_no_finding(frame):
    """Each differs in one thing."""
    assert [] == briefly(frame)


def test_a_policy_that_was_removed_between_the_readings_kept_them():
    """Its dead-letter exchange was seen."""

    def frame(t):
        policy = {"dead-letter-exchange": "dlx"} if t < 10 else {}
        return opened(of={"effective_policy": policy})(t)

    assert [] == briefly(frame)


def test_a_consumer_of_two_queues_is_not_judged():
    """The counters of its channel do not tell which queue it was."""

    def frame(t):
        of = opened()(t)
        return {**of, "consumers": (*of["consumers"], consumer("other", tag="ctag2"))}

    assert [] == briefly(frame)


def test_what_is_in_flight_is_not_lost():
    """A busy consumer without a prefetch limit: deliveries are counted seconds before the length is refreshed."""

    def frame(t):
        acked = 1000 + int(50 * t)
        counters = stats(publish=acked + 200, deliver=acked + 200, ack=acked)
        return {
            "queues": (queue(stats=counters, messages_unacked=0),),
            "consumers": (consumer(prefetch_count=0),),
            "channels": (channel(stats=counters),),
            "connections": (connection(connected_at=WALL - 30),),
        }

    assert [] == briefly(frame)


@pytest.mark.parametrize(("again", "perhaps"), [(1, False), (10, True)])
def test_where_messages_return_they_may_have_expired(again, perhaps):
    """The expiration of each message is in no list."""
    (finding,) = briefly(opened(rejected=60, deliver=again, redeliver=again))

    assert perhaps is finding.facts["perhaps_expired"]
    assert perhaps is ("or their publisher sets an expiration" in full_text(finding))


def test_so_rare_a_loss_is_information():
    """One each two minutes would not show within ten minutes."""
    (finding,) = briefly(opened(rejected=25, acked=6, age=25 * 600))

    assert "info" == finding.severity.value


def test_a_loss_that_has_ended_is_left_out_once_that_is_known():
    """At its mean rate of one in 5 to 6 s, 10 more were due within a minute."""
    frame = opened(rejected=25, age=100)
    seen = [
        until for until in range(5, 90, 5) if RULE in {each.rule for each in flat(look(film(frame, until)).findings)}
    ]

    assert list(range(5, 66, 5)) == seen


@pytest.mark.parametrize("rate", [0.25, 0.5, 2.0, 20.0])
def test_the_exporter_reports_it_from_its_first_readings_on(rate):
    """First by the open channels, then by its own readings: there is no gap, and it becomes critical."""
    frame = opened(rate=rate, rejected=int(100 * rate), acked=0, age=100)
    found = [
        [each.severity.value for each in flat(look(film(frame, until)).findings) if each.rule == RULE]
        for until in range(5, 120, 5)
    ]

    assert all(len(each) == 1 for each in found)
    assert ["critical"] == found[-1]
