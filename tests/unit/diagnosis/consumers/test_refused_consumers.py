import pytest

from ackscope.snapshot import Part
from tests.unit.diagnosis.clients.loops import churning, looping, reconnecting, turns
from tests.unit.diagnosis.consumers.own import ever, found
from tests.unit.diagnosis.pictures import PEER, channel, connection, consumer, film, look, moment, queue, stats

HOLDER = "10.0.0.5:50005 -> 10.0.0.1:5672"
REFUSED = len("ACCESS_REFUSED - queue 'orders' in vhost '/' in exclusive use")


def of(verdict, rule):
    """Findings of one rule, wherever they hang."""
    return [each for each in verdict.findings if each.rule == rule]


def contended(t, *, exclusive=True, sent=16 + 19 + REFUSED, name="orders"):
    """One consumes exclusively, another one is refused five times a second."""
    picture = looping(t, sent=sent, received=92)
    holder = consumer(name, connection_name=HOLDER, channel_name=f"{HOLDER} (1)", exclusive=exclusive)
    return {
        **picture,
        "queues": (queue(name),),
        "consumers": (holder,),
        "connections": (*picture["connections"], connection(HOLDER, client_name="holder")),
    }


def test_a_consumer_that_is_refused_is_found_with_the_one_that_keeps_it_out():
    """Information at first, a warning after a minute."""
    (early,) = of(look(film(contended, until=20)), "exclusive-consumer-contention")
    (late,) = of(look(film(contended, until=90)), "exclusive-consumer-contention")

    assert ["info", "warning"] == [early.severity, late.severity]
    assert ("queue", "orders") == (late.subject.kind, late.subject.name)
    assert "'billing' at 10.0.0.7:50001 tries to consume from queue 'orders' ('/') 5.0 times a second" in late.summary
    assert "'holder' consumes from it exclusively" in late.summary


@pytest.mark.parametrize(
    "change",
    [{"exclusive": False}, {"sent": 78}, {"name": "orders-2"}],
    ids=["nobody consumes exclusively", "another error", "another queue"],
)
def test_other_refusals_are_no_contention(change):
    """The length of the error's text tells which queue it was about."""
    assert "exclusive-consumer-contention" not in ever([look(film(lambda t: contended(t, **change), until=60))])


def test_a_twin_of_the_holder_that_reconnects_again_and_again_is_taken_for_a_standby():
    """Where it ends its connection at each refusal, its name is all that there is."""

    def frame(t):
        picture = reconnecting(t)
        holder = consumer(connection_name=HOLDER, channel_name=f"{HOLDER} (1)", exclusive=True)
        return {
            **picture,
            "queues": (queue(),),
            "consumers": (holder,),
            "connections": (*picture["connections"], connection(HOLDER, client_name="billing", peer_host="10.0.0.5")),
        }

    assert of(look(film(frame, until=40)), "exclusive-consumer-contention")


def bad_acks(t, *, redelivered=3, delivered=5, packets=8, sent=1000):
    """A consumer whose channel is closed five times a second, and which gets the same messages each time."""
    done = turns(t, 5.0, 0.0)
    counters = stats(
        deliver_get=int(10 * t) + delivered * done, ack=int(10 * t) + done, redeliver=redelivered * done, publish=10
    )
    picture = looping(t, packets=packets, sent=sent, received=157, stats=counters)
    total = stats(publish=10, deliver=delivered * done, deliver_get=delivered * done, redeliver=redelivered * done)
    return {**picture, "queues": (queue(messages_ready=2, messages_unacked=3, stats=total),)}


def test_a_consumer_whose_channels_are_closed_over_its_acks_is_found():
    """Its connection stays; what it held comes again each time. The loop of messages follows from it."""
    (finding,) = of(look(film(bad_acks, until=40)), "bad-ack-loop")

    assert ("connection", PEER) == (finding.subject.kind, finding.subject.name)
    assert "'billing' at 10.0.0.7:50001 consumes from queue 'orders' on channels that are closed 5.0 times" in (
        finding.summary
    )
    assert "warning" == of(look(film(bad_acks, until=90)), "bad-ack-loop")[0].severity
    assert "requeue-loop" not in {rule for rule, _, _ in found(look(film(bad_acks, until=90)))}


@pytest.mark.parametrize(
    "frame",
    [
        lambda t: bad_acks(t, redelivered=0),
        lambda t: bad_acks(t, delivered=0, redelivered=0),
        lambda t: bad_acks(t, packets=2, sent=188),
        looping,
    ],
    ids=["nothing comes again", "nothing is delivered", "another loop redelivers", "a publisher"],
)
def test_other_loops_are_not_about_acknowledgements(frame):
    """Channels for each message, or refused publishers."""
    assert "bad-ack-loop" not in ever([look(film(frame, until=60))])


def flapping(t, *, every=4.0, consumers=1, until=1e9):
    """Each consumer lives for some seconds, on a connection of its own."""
    done = int(min(t, until) / every)
    names = [f"10.0.0.7:{50000 + done * consumers + number} -> b" for number in range(consumers)]
    held = stats(publish=10, deliver=10 * done, deliver_get=10 * done, redeliver=8 * done)
    return {
        "overview": churning(t, channels=done, connections=done),
        "queues": (queue(consumers=consumers, messages_ready=5, messages_unacked=5, stats=held),),
        "consumers": tuple(consumer(connection_name=name, channel_name=f"{name} (1)") for name in names),
        "connections": tuple(connection(name) for name in names),
    }


def test_consumers_that_come_and_go_are_found():
    """Each was replaced, and replaced again."""
    (finding,) = of(look(film(flapping, until=30)), "consumer-flapping")

    assert ("warning", "orders") == (finding.severity, finding.subject.name)
    assert "6 different ones of 'billing' in 25 s" in finding.summary


def test_a_rolling_restart_is_no_flapping():
    """All three are replaced once, one after the other."""

    def frame(t):
        names = [f"10.0.0.{number}:{50001 if t > 10 + 5 * number else 50000} -> b" for number in range(3)]
        return {
            "queues": (queue(consumers=3, stats=stats(ack=int(10 * t))),),
            "consumers": tuple(consumer(connection_name=name, channel_name=f"{name} (1)") for name in names),
            "connections": tuple(connection(name) for name in names),
        }

    verdicts = [look(film(frame, until=until)) for until in range(15, 60, 5)]

    assert not [each for verdict in verdicts for each in of(verdict, "consumer-flapping") if each.severity != "info"]


def test_consumers_that_stay_are_left_alone():
    """Also those that came once."""
    assert "consumer-flapping" not in ever([look(film(lambda t: flapping(t, until=5.0), until=60))])


def test_consumers_that_live_too_short_to_be_seen_are_found_by_what_comes_again():
    """Connections come and go, messages are delivered and come again, and nobody consumes at any look."""

    def frame(t):
        done = turns(t, 1.0, 0.0)
        again = stats(publish=10, deliver=10 * done, deliver_get=10 * done, redeliver=10 * done)
        picture = reconnecting(t)
        total = stats(deliver_get=int(10 * t) + 10 * done, ack=int(10 * t), redeliver=10 * done)
        return {
            **picture,
            "overview": churning(t, channels=done, connections=done, stats=total),
            "queues": (queue(consumers=0, messages_ready=10, stats=again),),
        }

    (finding,) = of(look(film(frame, until=90)), "consumer-flapping")

    assert "warning" == finding.severity
    assert "too short-lived to be seen, those of 'billing'" in finding.summary
    assert "requeue-loop" not in {rule for rule, _, _ in found(look(film(frame, until=90)))}


def requeued(t, **fields):
    """A queue of which ten messages go round each second."""
    done = int(10 * t)
    again = stats(publish=10, deliver=done, deliver_get=done, redeliver=done)
    churned = churning(t, connections=int(t), stats=stats(deliver_get=done, redeliver=done))
    return {"overview": churned, "queues": (queue(consumers=0, messages_ready=10, stats=again),), **fields}


def test_consumers_that_live_for_a_second_are_flapping_before_anybody_can_be_named():
    """As early as the requeue loop, which hangs under it: whoever gives messages back would be there to be seen."""
    verdict = look(film(requeued, until=15))

    (finding,) = of(verdict, "consumer-flapping")
    assert "too short-lived to be seen in" in finding.summary
    assert "whoever consumes from it" in finding.next_steps[0]
    assert "requeue-loop" not in {rule for rule, _, _ in found(verdict)}


@pytest.mark.parametrize("how", ["consumes", "polls"])
def test_who_stays_and_gives_messages_back_is_a_requeue_loop(how):
    """Connections come and go beside it; a consumer, or a client that polls, is there in every look."""

    def frame(t):
        done = int(10 * t)
        there = {
            "connections": (connection(),),
            "channels": (channel(reductions=int(100 * t), stats=stats(deliver_get=done, redeliver=done)),),
        }
        return requeued(t, **there, **({"consumers": (consumer(),)} if how == "consumes" else {}))

    rules = {rule for rule, _, _ in found(look(film(frame, until=15)))}

    assert "requeue-loop" in rules
    assert "consumer-flapping" not in rules


@pytest.mark.parametrize(("there", "read"), [((), -5.0), ((consumer(),), 0.0)], ids=["never", "once"])
def test_of_whom_little_was_read_meanwhile_it_is_not_told_that_they_do_not_stay(there, read):
    """A broker under load is asked seldom for those who are connected."""

    def frame(t):
        parts = {"consumers": there, "channels": (channel(),) if there else (), "connections": ()}
        return requeued(t, **{name: Part(value=value, at=moment(read), seconds=0.1) for name, value in parts.items()})

    assert "consumer-flapping" not in {rule for rule, _, _ in found(look(film(frame, until=15)))}
