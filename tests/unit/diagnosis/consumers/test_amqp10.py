"""Consumers that use AMQP 1.0: judged by their sessions, because the broker keeps no counters of them."""

from dataclasses import replace

import pytest

from ackscope.amqp10 import AmqpLink, AmqpSession
from ackscope.clock import Instant
from ackscope.findings import Certainty
from ackscope.snapshot import Part
from diagnosis.text import render_inconclusive
from diagnosis.thresholds import Thresholds
from diagnosis.window import Window
from tests.unit.diagnosis.consumers.results import found, only
from tests.unit.diagnosis.pictures import (
    PEER,
    WALL,
    connection,
    consumer,
    film,
    full_text,
    look,
    moment,
    queue,
    snapshot,
    stats,
)

NAMES = {"client_name": "worker", "container_id": "worker", "protocol": "AMQP 1-0", "connected_at": WALL}
UNREAD = ("stuck-consumer", "requeue-loop")
"""Rules that judge queues whose consumers hold messages, although none wait."""


def native(**fields):
    """A consumer as it is joined to its link."""
    reported_by_link = {"session_number": 0, "link_name": "in", "credit": 9}
    return consumer(**{"tag": "0", "channel_name": None, "prefetch_count": 0, **reported_by_link, **fields})


def frame(sent, settled=0, *, ready=0, credit=9, links=1, more=(), **through):
    """A quorum queue of one AMQP 1.0 consumer that was sent and has settled so many messages."""
    consuming = tuple(
        AmqpLink(handle=number, name="in" if not number else "more", queue="orders", credit=credit,
                 delivery_count=0 if number else sent, settled_by_sender=False)
        for number in range(links)
    )  # fmt: skip
    held = sent - settled
    return {
        "queues": (queue(type="quorum", messages_ready=ready, messages_unacked=held, stats=stats()),),
        "consumers": (native(credit=credit), *more),
        "connections": (connection(**{**NAMES, **through}),),
        "sessions": (AmqpSession(connection_name=PEER, number=0, unsettled=held, consuming=consuming),),
    }


def stuck_only(verdict):
    """The findings of the rule about stuck consumers."""
    return [each for each in found(verdict) if each[0] == "stuck-consumer"]


def test_a_consumer_that_never_settles_is_critical_and_named():
    """It takes ten a second, and renews its credit with each."""
    window = film(lambda t: frame(100 + int(10 * t)), until=60)
    finding = only(look(window))

    assert ("stuck-consumer", "critical", "orders") == (finding.rule, finding.severity.value, finding.subject.name)
    assert ("worker",) == finding.involved.clients
    assert (PEER,) == finding.involved.connections
    assert {"amqp10": True, "never_acked": True, "full": False, "unacked": 700, "published": 600} == {
        key: finding.facts[key] for key in ("amqp10", "never_acked", "full", "unacked", "published")
    }
    for words in ("link 'in' of 'worker'", "700 messages unsettled", "credit 9", "disposition", "sessions"):
        assert words in full_text(finding)


def test_one_look_tells_the_time_by_the_counts():
    """Two readings: 700 held that come at ten a second have been held for over a minute."""
    window = film(lambda t: frame(700 + int(10 * t)), until=106, every=6, start=100)

    assert [("stuck-consumer", "critical", "orders")] == found(look(window, thresholds=Thresholds.brief()))

    young = film(lambda t: frame(700 + int(10 * t), connected_at=WALL + 90), until=106, every=6, start=100)
    early = only(look(young, thresholds=Thresholds.brief()))

    assert ("info", Certainty.EARLY) == (early.severity.value, early.certainty)


def test_a_consumer_that_used_up_its_credit_is_found_sooner():
    """It worked for a minute; then it holds the ten that it asked for, and messages wait."""

    def hang(t):
        worked = 5 * min(int(t), 60)
        late = t > 60
        return frame(worked + 10, worked, credit=0 if late else 2, ready=int(5 * (t - 60)) if late else 0)

    assert [("stuck-consumer", "critical", "orders")] == found(look(film(hang, until=85)))
    assert [] == [each for each in found(look(film(hang, until=85))) if each[0] == "consumer-without-credit"]


@pytest.mark.parametrize(
    "moving",
    [
        lambda t: frame(50 + int(10 * t), int(10 * t)),
        # In batches: it holds up to 100 and settles them together.
        lambda t: frame(int(5 * t), 100 * int(t / 20)),
        lambda t: frame(0, 0),
        # Nothing arrives, and the last message is a long job.
        lambda t: frame(1, 0),
    ],
    ids=["works", "batches", "idle", "a long job"],
)
def test_a_consumer_that_settles_is_not_stuck(moving):
    """Whatever the outcome, each settled message counts, although the number held may stay the same."""
    assert [] == stuck_only(look(film(moving, until=120)))


def test_an_alarm_explains_it():
    """The broker does not read what the client sends."""
    window = film(lambda t: frame(100 + int(10 * t), state="blocked"), until=60)

    assert [] == stuck_only(look(window))


def test_more_held_than_was_sent_proves_nothing():
    """A link was detached, or a count of 32 bits started at 0 again: what was settled is not known."""
    window = film(lambda t: frame(5, -100), until=110)

    assert [] == stuck_only(look(window))


def test_a_session_that_was_not_read_again_proves_nothing():
    """Of many connections some are asked in each reading; the others repeat what they answered."""

    def old(t):
        made = frame(100)
        (session,) = made["sessions"]
        read = AmqpSession(connection_name=PEER, number=0, unsettled=100, consuming=session.consuming,
                           read_at=Instant(wall=WALL, mono=moment(0).mono))  # fmt: skip
        return {**made, "sessions": (read,)}

    assert [] == stuck_only(look(film(old, until=60)))


def test_a_consumer_among_others_that_work_stops_a_part():
    """A second AMQP 1.0 consumer settles: a warning about the first one only."""
    other = "10.0.0.8:50002 -> 10.0.0.1:5672"

    def two(t):
        made = frame(20, credit=0, ready=int(5 * t))
        working = AmqpSession(connection_name=other, number=0, unsettled=5, consuming=(
            AmqpLink(handle=0, name="in", queue="orders", credit=5, delivery_count=int(10 * t) + 5,
                     settled_by_sender=False),))  # fmt: skip
        return {
            **made,
            "consumers": (*made["consumers"], native(connection_name=other, peer_port=50002)),
            "connections": (*made["connections"], connection(other, **{**NAMES, "client_name": "second"})),
            "sessions": (*made["sessions"], working),
        }

    finding = next(each for each in look(film(two, until=100)).findings if each.rule == "stuck-consumer")

    assert ("warning", ("worker",), False) == (
        finding.severity.value,
        finding.involved.clients,
        finding.facts["whole_queue"],
    )


def no_credit(t, **more):
    """A consumer that never asked for a message, and five arrive per second."""
    return frame(0, ready=int(5 * t) + 5, credit=0, **more)


def test_a_consumer_without_credit_is_named():
    """Information at first: a client that asks for one message at a time looks the same."""
    assert [("consumer-without-credit", "info", "orders")] == found(look(film(no_credit, until=30)))

    finding = only(look(film(no_credit, until=70)))

    assert ("consumer-without-credit", "critical") == (finding.rule, finding.severity.value)
    assert (("worker",), 0) == (finding.involved.clients, finding.facts["delivered"])
    assert "credit 0" in full_text(finding)


def test_a_consumer_without_credit_of_a_queue_that_does_not_grow_is_a_warning():
    """Messages wait, and no more arrive."""
    window = film(lambda t: frame(7, 7, ready=5, credit=0), until=70)

    assert [("consumer-without-credit", "warning", "orders")] == found(look(window))


@pytest.mark.parametrize(
    "other",
    [
        lambda t: frame(0, ready=int(5 * t), credit=1),
        lambda t: frame(int(t), int(t), ready=int(5 * t), credit=0),
        lambda t: frame(0, ready=0, credit=0),
        lambda t: no_credit(t, more=(consumer(tag="beside"),)),
    ],
    ids=["has credit", "asks for one at a time", "nothing ready", "another protocol beside it"],
)
def test_a_queue_that_is_or_may_be_served_is_not_reported(other):
    """Each differs from a consumer without credit in one thing."""
    rules = {rule for rule, *_ in found(look(film(other, until=70)))}

    assert "consumer-without-credit" not in rules


def unreported(t, version="4.0.5", **parts):
    """A consumer whose queue and tag are all that the broker reports, and that seems to hold messages."""
    bare = consumer(tag="0", channel_name=None, connection_name=None, prefetch_count=0, peer_host=None, peer_port=None)
    return {
        "version": version,
        "queues": (queue(type="quorum", messages_ready=0, messages_unacked=400, stats=stats()),),
        "consumers": (bare,),
        "connections": (connection(**NAMES),),
        **parts,
    }


@pytest.mark.parametrize(
    ("shot", "words"),
    [
        (unreported, "from 4.1 on"),
        (lambda t: unreported(t, "4.3.6", sessions=Part(error="403 for guest")), "403 for guest"),
        (lambda t: unreported(t, "4.3.6"), "neither what these hold"),
    ],
    ids=["4.0", "refused", "another protocol"],
)
def test_where_the_broker_tells_nothing_it_is_inconclusive(shot, words):
    """Never silence, and never a guess."""
    verdict = look(film(shot, until=120))
    gaps = [each for each in verdict.inconclusive if each.reason == "sessions_not_reported"]

    assert [] == found(verdict)
    assert set(UNREAD) == {each.rule for each in gaps}
    assert all("'orders' in vhost '/'" in each.facts["names"] for each in gaps)

    assert words in render_inconclusive(gaps[0]).because


def test_a_consumer_that_just_came_is_not_inconclusive():
    """Its session is read with the next poll."""
    window = film(
        lambda t: unreported(t, "4.3.6") if t >= 60 else {**unreported(t, "4.3.6"), "consumers": ()}, until=60
    )

    assert [] == [each for each in look(window).inconclusive if each.reason == "sessions_not_reported"]


def slow(t, settled=2, arriving=10, **more):
    """A consumer that settles two a second of ten that arrive; it holds the ten that it asked for."""
    done = settled * int(t)
    return frame(done + 10, done, ready=(arriving - settled) * int(t) + 300, credit=0, **more)


def test_a_slow_consumer_is_found_by_the_balance_of_its_queue():
    """The queue has no counters: what its session settled and what is there tell both rates."""
    finding = only(look(film(slow, until=150)))

    assert ("slow-consumer", "warning", ("worker",)) == (
        finding.rule,
        finding.severity.value,
        finding.involved.clients,
    )
    assert (2.0, 10.0, 5.0) == tuple(
        round(finding.facts[name], 1) for name in ("ack_rate", "publish_rate", "hold_seconds")
    )
    assert "credit 0" in full_text(finding)


def test_a_consumer_that_keeps_up_is_not_slow():
    """As many are settled as arrive."""
    assert [] == found(look(film(lambda t: slow(t, settled=10), until=150)))


def test_messages_that_are_settled_when_they_are_sent_are_listed():
    """The same as automatic acknowledgement; on 4.0 the broker tells the mode, but not whose consumer it is."""

    def takes(t, **fields):
        count = int(10 * t)
        made = frame(count, count)
        link = AmqpLink(handle=0, name="in", queue="orders", credit=9, delivery_count=count, settled_by_sender=True)
        session = AmqpSession(connection_name=PEER, number=0, unsettled=0, consuming=(link,))
        return {**made, "sessions": (session,), "consumers": (native(ack_required=False),), **fields}

    (finding,) = (each for each in look(film(takes, until=60)).findings if each.rule == "auto-ack-consumer")

    assert (["worker"], ["orders"]) == (finding.facts["clients"], finding.facts["queues"])
    assert finding.facts["delivered"] > 100
    assert "'worker'" in full_text(finding)

    bare = consumer(tag="0", channel_name=None, connection_name=None, prefetch_count=0, ack_required=False)
    old = look(film(lambda t: takes(t, version="4.0.5", sessions=(), consumers=(bare,)), until=60))

    assert [("auto-ack-consumer", "info", "/")] == [each for each in found(old) if each[0] == "auto-ack-consumer"]


@pytest.mark.parametrize(
    ("published", "taken", "severity"),
    [(3.0, 0.0, "critical"), (40.0, 0.0, "critical"), (3.0, 1.5, "info"), (None, 0.0, "info")],
    ids=["nothing taken", "quick", "takes some", "not counted"],
)
def test_a_backlog_that_equals_what_was_published_shows_for_how_long_nothing_was_taken(published, taken, severity):
    """Two readings of the link, and the broker's samples of the queue before them."""

    def made(t):
        ready = int(((published or 3.0) - taken) * t)
        parts = frame(60, 60, ready=ready, credit=0, connected_at=WALL - 60)
        (mine,) = parts["queues"]
        return {
            **parts,
            "queues": (replace(mine, stats=stats(publish=int(60 + published * t)) if published else stats()),),
        }

    window = Window.empty("shop")
    for seconds in range(1, 90, 5):
        parts = made(seconds)
        early = {"consumers": (), "sessions": Part(), "connections": Part()} if seconds < 70 else {}
        window = window.add(snapshot(seconds, **{**parts, **early}))
    findings = [each for each in look(window).findings if each.rule == "consumer-without-credit"]

    assert [severity] == [each.severity for each in findings]
