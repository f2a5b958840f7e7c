from dataclasses import replace

import pytest

from ackscope.snapshot import Part
from tests.unit.diagnosis.clients.loops import churning, looping, reconnecting, turns
from tests.unit.diagnosis.consumers.results import ever, found
from tests.unit.diagnosis.pictures import (
    PEER,
    channel,
    connection,
    consumer,
    evidence,
    film,
    look,
    moment,
    queue,
    stats,
    text,
)

HOLDER = "10.0.0.5:50005 -> 10.0.0.1:5672"
REFUSED = len("ACCESS_REFUSED - queue 'orders' in vhost '/' in exclusive use")


def of(result, rule):
    """Findings of one rule that are causes."""
    return [each for each in result.findings if each.rule == rule]


def contended(t, *, exclusive=True, sent=16 + 19 + REFUSED, name="orders", lock=False):
    """One consumer is exclusive, another one is refused five times a second."""
    picture = looping(t, sent=sent, received=92)
    holder = consumer(name, connection_name=HOLDER, channel_name=f"{HOLDER} (1)", exclusive=exclusive)
    return {
        **picture,
        "queues": (queue(name, stats=stats(**{} if lock else {"publish": 10, "deliver": 10, "ack": 10})),),
        "consumers": (holder,),
        "connections": (*picture["connections"], connection(HOLDER, client_name="holder")),
    }


def test_a_refused_consumer_is_found_with_the_exclusive_one():
    """Information at first, a warning after a minute."""
    (early,) = of(look(film(contended, until=20)), "exclusive-consumer-contention")
    (late,) = of(look(film(contended, until=90)), "exclusive-consumer-contention")

    assert ["info", "warning"] == [early.severity, late.severity]
    assert ("queue", "orders") == (late.subject.kind, late.subject.name)
    assert ("billing", "10.0.0.7:50001", 5.0) == tuple(late.facts[key] for key in ("client", "peer", "cycle_rate"))
    assert ("holder", HOLDER) == (late.facts["holder"]["client"], late.facts["holder"]["connection"])
    assert REFUSED == evidence(late, "error").value
    assert ((HOLDER, PEER), ("holder", "billing")) == (late.involved.connections, late.involved.clients)


def test_a_queue_that_its_exclusive_consumer_is_too_slow_for_is_one_finding():
    """The others that could help are refused, so the backlog is a consequence."""

    def frame(t):
        acked, picture = int(100 + 0.5 * t), contended(t)
        counters = stats(publish=200 + int(6 * t), deliver=acked + 1, ack=acked)
        held = queue(messages_ready=99 + int(6 * t) - int(0.5 * t), messages_unacked=1, stats=counters)
        (holder,) = picture["consumers"]
        return picture | {"queues": (held,), "consumers": (replace(holder, prefetch_count=1),)}

    (finding,) = [each for each in look(film(frame, until=200)).findings if each.subject.name == "orders"]

    assert ("exclusive-consumer-contention", "warning") == (finding.rule, finding.severity)
    assert {"slow-consumer", "channel-churn"} <= {each.rule for each in finding.consequences}


@pytest.mark.parametrize("until", [20, 90, 300])
def test_a_queue_without_messages_is_a_lock(until):
    """The election of a leader: those that are refused wait for it on purpose."""
    (finding,) = of(look(film(lambda t: contended(t, lock=True), until=until)), "exclusive-consumer-contention")

    assert ("info", "likely") == (finding.severity, finding.certainty)
    assert "may serve as a lock" in text(finding).cause
    assert "this is a warning" not in text(finding).summary


@pytest.mark.parametrize(
    "change",
    [{"exclusive": False}, {"sent": 78}, {"name": "orders-2"}],
    ids=["nobody consumes exclusively", "another error", "another queue"],
)
def test_other_refusals_are_no_contention(change):
    """The length of the error text depends on the queue."""
    assert "exclusive-consumer-contention" not in ever([look(film(lambda t: contended(t, **change), until=60))])


def test_a_client_of_the_same_name_that_reconnects_in_a_loop_is_refused_too():
    """A client that closes its connection at each refusal is known by its name only."""

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


def locked_out(
    t, *, every=3.0, brief=True, before=76, began=0.0, auto=True, exclusive=True, messages=0, channels=1, **of
):
    """A laptop consumes exclusively; another client connects again and again, too briefly to be listed or not."""
    picture = reconnecting(t, every=every, client="payout-worker", began=began)
    done, got = turns(t, 1 / every, began), int(8 * t)
    mine = stats(deliver_no_ack=got) if auto else stats(deliver=got, ack=got)
    whole = stats(deliver=before, ack=before, deliver_no_ack=got) if auto else stats(deliver=before + got, ack=got)
    holder = consumer("payouts", connection_name=HOLDER, channel_name=f"{HOLDER} (1)", exclusive=exclusive)
    total = stats(deliver_get=int(10 * t) + messages * done, ack=int(10 * t))
    there, worker = picture["connections"]
    laptop = channel(f"{HOLDER} (1)", stats=mine, reductions=1000 + 50 * got)
    return {
        "overview": churning(t, channels=channels * done, connections=done, stats=total),
        "queues": (queue("payouts", stats=whole, **of),),
        "consumers": (holder,),
        "channels": (*picture["channels"], laptop),
        "connections": (there, connection(HOLDER, client_name="laptop"), *(() if brief else (worker,))),
    }


def contention(**fields):
    """Findings about a queue with an exclusive consumer, after a minute and a half."""
    return of(look(film(lambda t: locked_out(t, **fields), until=90)), "exclusive-consumer-contention")


@pytest.mark.parametrize("fields", [{}, {"every": 1.0}, {"before": 5000, "auto": False}, {"began": 20.0}])
def test_clients_too_brief_to_be_listed_may_be_refused(fields):
    """They leave no error text and no name, so it stays information."""
    (finding,) = contention(**fields)

    assert ("info", "likely", "payouts") == (finding.severity, finding.certainty, finding.subject.name)
    assert ("laptop",) == finding.involved.clients
    assert "Other consumers may be refused now" in text(finding).summary


def test_a_listed_client_that_comes_and_goes_is_named():
    """Its name differs from that of the exclusive consumer."""
    (finding,) = contention(brief=False)

    assert ("info", ["payout-worker"]) == (finding.severity, finding.facts["reconnecting"])
    assert ("laptop", "payout-worker") == finding.involved.clients


@pytest.mark.parametrize(
    "fields",
    [
        {"exclusive": False},
        {"before": 0},
        {"type": "quorum"},
        {"auto_delete": True},
        {"messages": 5},
        {"channels": 0},
        {"every": 40.0},
    ],
    ids=[
        "not exclusive",
        "nobody else consumed",
        "quorum queues ignore the flag",
        "a queue of one client",
        "they consume",
        "a health check without a channel",
        "hardly any",
    ],
)
def test_other_brief_connections_are_not_refused(fields):
    """Each differs in one thing."""
    assert [] == contention(**fields)


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
    """Its connection stays open and its messages are redelivered; the requeue loop is a consequence."""
    (finding,) = of(look(film(bad_acks, until=40)), "bad-ack-loop")

    assert ("connection", PEER) == (finding.subject.kind, finding.subject.name)
    assert ("billing", "10.0.0.7:50001", 5.0, ["orders"]) == tuple(
        finding.facts[key] for key in ("client", "peer", "cycle_rate", "queues")
    )
    assert 3.0 == round(finding.facts["redelivered_per_cycle"], 1)
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
    ids=["nothing is redelivered", "nothing is delivered", "another loop redelivers", "a publisher"],
)
def test_other_loops_are_not_about_acknowledgements(frame):
    """Channels for each message, or refused publishers."""
    assert "bad-ack-loop" not in ever([look(film(frame, until=60))])


def flapping(t, *, every=4.0, consumers=1, until=1e9):
    """Each consumer lives for a few seconds, on a connection of its own."""
    done = int(min(t, until) / every)
    names = [f"10.0.0.7:{50000 + done * consumers + number} -> b" for number in range(consumers)]
    held = stats(publish=10, deliver=10 * done, deliver_get=10 * done, redeliver=8 * done)
    return {
        "overview": churning(t, channels=done, connections=done),
        "queues": (queue(consumers=consumers, messages_ready=5, messages_unacked=5, stats=held),),
        "consumers": tuple(consumer(connection_name=name, channel_name=f"{name} (1)") for name in names),
        "connections": tuple(connection(name) for name in names),
    }


def test_consumers_that_connect_and_disconnect_are_found():
    """Each was replaced more than once."""
    (finding,) = of(look(film(flapping, until=30)), "consumer-flapping")

    assert ("warning", "orders") == (finding.severity, finding.subject.name)
    assert (6, 25.0, ["billing"]) == tuple(
        finding.facts[key] for key in ("consumers_seen", "watched_seconds", "clients")
    )


@pytest.mark.parametrize(("healthy", "brief"), [(1, 1), (10, 1), (4, 3)])
def test_consumers_that_stay_beside_them_neither_hide_nor_share_the_blame(healthy, brief):
    """One instance of ten crashes again and again."""

    def frame(t):
        picture = flapping(t, consumers=brief)
        names = [f"10.0.1.{number}:40000 -> b" for number in range(healthy)]
        return {
            **picture,
            "consumers": (
                *picture["consumers"],
                *(consumer(connection_name=name, channel_name=f"{name} (1)") for name in names),
            ),
            "connections": (*picture["connections"], *(connection(name, client_name="steady") for name in names)),
        }

    (finding,) = of(look(film(frame, until=30)), "consumer-flapping")

    assert ("warning", ["billing"], ("billing",)) == (
        finding.severity, finding.facts["clients"], finding.involved.clients
    )  # fmt: skip
    assert brief == finding.facts["max_at_once"]


@pytest.mark.parametrize("instances", [3, 8])
def test_a_rolling_restart_is_no_flapping(instances):
    """All are replaced once, one after the other."""

    def frame(t):
        names = [f"10.0.0.{number}:{50001 if t > 10 + 5 * number else 50000} -> b" for number in range(instances)]
        return {
            "queues": (queue(consumers=instances, stats=stats(ack=int(10 * t))),),
            "consumers": tuple(consumer(connection_name=name, channel_name=f"{name} (1)") for name in names),
            "connections": tuple(connection(name) for name in names),
        }

    results = [look(film(frame, until=until)) for until in range(15, 60, 5)]

    assert not [each for result in results for each in of(result, "consumer-flapping") if each.severity != "info"]


def test_consumers_that_stay_are_no_finding():
    """Nor are those that connected once."""
    assert "consumer-flapping" not in ever([look(film(lambda t: flapping(t, until=5.0), until=60))])


def test_consumers_too_short_lived_to_be_seen_are_found_by_redeliveries():
    """Connections open and close, messages are redelivered, and no reading has a consumer."""

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

    assert "critical" == finding.severity
    assert (0, ["billing"]) == (finding.facts["consumers_seen"], finding.facts["clients"])
    assert "its consumer 'billing' came back" in text(finding).summary
    assert "requeue-loop" not in {rule for rule, _, _ in found(look(film(frame, until=90)))}


def requeued(t, **fields):
    """A queue that redelivers ten messages per second."""
    done = int(10 * t)
    again = stats(publish=10, deliver=done, deliver_get=done, redeliver=done)
    churned = churning(t, connections=int(t), stats=stats(deliver_get=done, redeliver=done))
    return {"overview": churned, "queues": (queue(consumers=0, messages_ready=10, stats=again),), **fields}


def test_consumers_that_live_for_a_second_are_flapping_before_a_client_is_known():
    """As early as the requeue loop, its consequence: a consumer that requeues would be in some reading."""
    result = look(film(requeued, until=15))

    (finding,) = of(result, "consumer-flapping")
    assert (0, []) == (finding.facts["consumers_seen"], finding.facts["clients"])
    assert "disconnected without acknowledging any" in text(finding).summary
    assert "requeue-loop" not in {rule for rule, _, _ in found(result)}


@pytest.mark.parametrize("how", ["consumes", "polls"])
def test_a_client_that_stays_and_requeues_is_a_requeue_loop(how):
    """Other connections open and close; a consumer, or a client that polls, is in every reading."""

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
def test_with_too_few_readings_of_consumers_nothing_is_flapping(there, read):
    """A broker under load is polled less often for consumers and channels."""

    def frame(t):
        parts = {"consumers": there, "channels": (channel(),) if there else (), "connections": ()}
        return requeued(t, **{name: Part(value=value, at=moment(read), seconds=0.1) for name, value in parts.items()})

    assert "consumer-flapping" not in {rule for rule, _, _ in found(look(film(frame, until=15)))}


@pytest.mark.parametrize("name", ["orders", "billed"])
def test_an_exclusive_consumer_that_acknowledges_nothing_is_the_cause_of_the_refusals(name):
    """An old instance hangs and keeps out the new one: one finding, which says to end the old one."""

    def frame(t):
        held = stats(deliver=10, deliver_get=10)
        picture = contended(t, name=name)
        counters = stats(publish=int(100 + 4 * t), deliver=10, deliver_get=10)
        stuck = queue(name, messages_ready=int(90 + 4 * t), messages_unacked=10, stats=counters)
        own = channel(f"{HOLDER} (1)", messages_unacked=10, prefetch_count=10, stats=held)
        return {**picture, "queues": (stuck,), "channels": (*picture.get("channels", ()), own)}

    (cause,) = [each for each in look(film(frame, until=180)).findings if each.subject.name == name]

    assert ("stuck-consumer", "critical") == (cause.rule, cause.severity)
    assert ["exclusive-consumer-contention"] == [each.rule for each in cause.consequences if each.subject.name == name]
    assert any("close its connection" in step.text for step in text(cause).steps)
