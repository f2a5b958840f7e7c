"""Publishers over AMQP 1.0, and the balance of their queues: judged by links, as the broker counts nothing else."""

from dataclasses import replace

import pytest

from ackscope.amqp10 import AmqpLink, AmqpSession
from ackscope.snapshot import Part
from ackscope.topology import Binding, Bindings
from diagnosis.text import render_inconclusive
from tests.unit.diagnosis.pictures import ALARM, OK, WALL, connection, consumer, film, full_text, look, queue, stats
from tests.unit.diagnosis.publishers.films import exchange, findings

WORKER, SHOP = "10.0.0.7:50001 -> 10.0.0.1:5672", "10.0.0.9:50002 -> 10.0.0.1:5672"


def client(name, peer, sent=0, **fields):
    """A connection that speaks AMQP 1.0; it receives two packets a second."""
    own = {"client_name": name, "container_id": name, "protocol": "AMQP 1-0", "connected_at": WALL, "recv_cnt": sent}
    return connection(peer, **{**own, **fields})


def publishes(count, address="/queues/orders", **fields):
    """The session of the publisher `shop`."""
    link = AmqpLink(handle=0, name="out", address=address, delivery_count=count, **fields)
    return AmqpSession(connection_name=SHOP, number=0, unsettled=0, publishing=(link,))


def consumes(sent, settled, of="orders"):
    """The session of the consumer `worker`."""
    link = AmqpLink(handle=0, name="in", queue=of, credit=9, delivery_count=sent, settled_by_sender=False)
    return AmqpSession(connection_name=WORKER, number=0, unsettled=sent - settled, consuming=(link,))


def frame(t, *, published=0, sent=0, settled=0, ready=0, more=(), version="4.3.6", link=None, reported=True, **fields):
    """A quorum queue with one publisher and one consumer over AMQP 1.0."""
    reader = consumer(
        tag="0",
        channel_name=None,
        prefetch_count=0,
        peer_host=None,
        peer_port=None,
        **({"session_number": 0, "link_name": "in", "connection_name": WORKER, "credit": 9} if reported else {}),
    )
    held = sent - settled
    own = {"type": "quorum", "messages_ready": ready, "messages_unacked": held, "stats": stats(), **fields}
    return {
        "version": version,
        "queues": (queue(**own),),
        "consumers": (reader,),
        "connections": (
            client("worker", WORKER, 10 + int(2 * t)),
            client("shop", SHOP, 10 + int(2 * t)),
            *more,
        ),
        "sessions": (consumes(sent, settled), publishes(published, **(link or {}))) if reported else (),
        "bindings": Bindings(listed=()),
    }


def judged(verdict, rule):
    """Severity, subject and clients of each finding of a rule."""
    found = findings(verdict, rule)
    return [(each.severity.value, each.subject.name, each.involved.clients) for each in found]


def gaps(verdict, rule):
    """The reasons for which a rule cannot tell."""
    return [each.reason for each in verdict.inconclusive if each.rule == rule]


def released(t):
    """Five a second arrive and stay; the consumer gives 50 a second back."""
    return frame(t, published=int(5 * t), sent=int(50 * t) + 10, settled=int(50 * t), ready=int(5 * t))


def test_messages_that_are_released_again_and_again_are_a_loop():
    """Far more is settled than leaves the queue; the consumer is named."""
    verdict = look(film(released, until=60))

    assert [("critical", "orders", ("worker",))] == judged(verdict, "requeue-loop")
    (finding,) = findings(verdict, "requeue-loop")
    assert 0 == finding.facts["acked"]
    assert 49 < finding.facts["redelivery_rate"] <= 50
    for words in ("releases", "'worker'", "credit 9"):
        assert words in full_text(finding)


@pytest.mark.parametrize(
    "moving",
    [
        lambda t: frame(t, published=int(50 * t), sent=int(50 * t) + 10, settled=int(50 * t)),
        # It works off a backlog of 5,000.
        lambda t: frame(t, published=int(5 * t), sent=int(50 * t), settled=int(50 * t), ready=5000 - int(45 * t)),
        # The length is refreshed late.
        lambda t: frame(t, published=int(50 * t), sent=int(50 * t), settled=int(50 * t), ready=int(50 * (t % 10))),
        # What another publisher sent in one go is seen only by the length; then it is worked off.
        lambda t: frame(
            t,
            published=int(5 * t),
            sent=int(50 * t),
            settled=int(50 * t),
            ready=2000 - int(45 * (t - 60)) if t >= 60 else max(0, 2700 - int(45 * t)),
        ),
    ],
    ids=["keeps up", "a backlog", "late lengths", "a burst from elsewhere"],
)
def test_what_leaves_the_queue_is_no_loop(moving):
    """Arrivals and the length explain what was settled."""
    verdict = look(film(moving, until=100))

    assert [] == judged(verdict, "requeue-loop")
    assert [] == judged(verdict, "poison-drop")


@pytest.mark.parametrize(
    "unknown",
    [
        lambda t: {**released(t), "sessions": (released(t)["sessions"][0],)},
        lambda t: {
            **released(t),
            "sessions": (released(t)["sessions"][0], publishes(int(5 * t), address=None)),
        },
        lambda t: {**released(t), "connections": (*released(t)["connections"], client("new", "10.0.0.8:1 -> x"))},
        lambda t: {
            **released(t),
            "connections": (*released(t)["connections"], connection("10.0.0.8:2 -> x", protocol="MQTT 3.1.1")),
        },
    ],
    ids=["no links of the publisher", "an address in each message", "a client without sessions", "MQTT"],
)
def test_where_messages_may_arrive_unseen_it_is_inconclusive(unknown):
    """They would look like returns."""
    verdict = look(film(unknown, until=60))

    assert [] == judged(verdict, "requeue-loop")
    assert ["arrivals_unknown"] == gaps(verdict, "requeue-loop")
    (gap,) = (each for each in verdict.inconclusive if each.rule == "requeue-loop")
    assert "'orders' in vhost '/'" in render_inconclusive(gap).because


def dropped(t, *, times=4, **fields):
    """Five a second arrive, each is delivered so often, and leaves."""
    count = int(5 * t) * times
    return frame(t, published=int(5 * t), sent=count + 10, settled=count, arguments={"x-delivery-limit": 3}, **fields)


def test_messages_that_leave_after_the_delivery_limit_are_dropped():
    """What left was returned as often as the limit says."""
    verdict = look(film(dropped, until=60))

    assert [("critical", "orders", ("worker",))] == judged(verdict, "poison-drop")
    assert [] == judged(look(film(lambda t: dropped(t, times=2), until=60)), "poison-drop")


def test_whether_messages_are_accepted_or_rejected_is_not_reported():
    """Both leave the queue, and without a dead-letter exchange a rejected one is lost."""
    verdict = look(film(lambda t: frame(t, published=int(5 * t), sent=int(5 * t), settled=int(5 * t)), until=60))
    (gap,) = (each for each in verdict.inconclusive if each.rule == "reject-loss")
    kept = frame(60, sent=300, settled=300, arguments={"x-dead-letter-exchange": "dead"})

    assert not gap.permanent
    assert "'orders' in vhost '/'" in render_inconclusive(gap).because
    assert [] == gaps(look(film(lambda t: kept, until=60)), "reject-loss")


def full(t, **fields):
    """Eight a second come to a full queue, of which one every two seconds is settled."""
    done = int(t / 2)
    limits = {"x-max-length": 10, "x-overflow": "reject-publish"}
    return frame(t, published=int(8 * t), sent=done + 1, settled=done, ready=10, arguments=limits, **fields)


def test_a_full_queue_names_its_publisher_and_how_much_it_refused():
    """7.5 of 8 a second are refused."""
    verdict = look(film(full, until=30))
    (finding,) = findings(verdict, "pub-nacked-overflow")

    assert "critical" == finding.severity.value
    assert ["shop"] == finding.facts["nacked_clients"]
    assert 7.0 < finding.facts["refused"] / finding.facts["interval_seconds"] < 8.0


def test_a_key_without_a_binding_releases_everything():
    """The bindings tell, because the exchange counts nothing; the publisher is named."""
    address = "/exchanges/in/wrong%20key"
    bound = Binding(vhost="/", source="in", destination="orders", destination_type="queue", routing_key="right")

    def missing(t, listed=(bound,), **fields):
        made = frame(t, published=int(8 * t), link={"address": address}, **fields)
        return {**made, "exchanges": (exchange("in"),), "bindings": Bindings(listed=listed)}

    verdict = look(film(missing, until=100))
    (finding,) = findings(verdict, "pub-unroutable-returned")

    assert ("warning", "in", ("shop",)) == (finding.severity.value, finding.subject.name, finding.involved.clients)
    for words in ("all messages of 'shop'", "released"):
        assert words in full_text(finding)
    right = Binding(vhost="/", source="in", destination="orders", destination_type="queue", routing_key="wrong key")
    assert [] == judged(look(film(lambda t: missing(t, (bound, right)), until=100)), "pub-unroutable-returned")


@pytest.mark.parametrize(("mode", "named"), [(True, True), (False, False), (None, False)])
def test_a_link_that_settles_what_it_sends_has_no_confirms(mode, named):
    """`mixed` leaves it open for each message, so nothing is said."""

    def sends(t):
        return frame(t, published=int(20 * t), sent=int(20 * t), settled=int(20 * t), link={"settled_by_sender": mode})

    found = findings(look(film(sends, until=30)), "pub-no-confirms")

    assert [["shop"]] * named == [each.facts["clients"] for each in found]
    assert all("settle each message when they send it" in full_text(each) for each in found)


NOTHING = {"state": None, "client_name": None, "container_id": None, "channels": None, "recv_cnt": None}
"""What 4.0 does not report of a connection."""


def old(t):
    """4.0: connections without a name and statistics."""
    made = frame(t, reported=False, version="4.0.5")
    return {**made, "connections": (client("", WORKER, user="worker", **NOTHING), client("", SHOP, **NOTHING))}


@pytest.mark.parametrize(
    ("shot", "names", "words"),
    [
        (old, [f"user unknown: {SHOP}", f"user worker: {WORKER}"], "from 4.1 on"),
        (
            lambda t: {**frame(t, reported=False), "sessions": Part(error="403 for guest")},
            ["shop", "worker"],
            "403 for guest",
        ),
    ],
    ids=["4.0", "refused"],
)
@pytest.mark.parametrize(
    "rule",
    ["pub-no-confirms", "pub-unroutable-returned", "pub-access-refused", "consumer-access-refused", "channel-leak"],
)
def test_clients_whose_links_the_broker_does_not_report_are_listed(shot, names, words, rule):
    """Never silence; a client without a reported name is one of a connection, and not called anonymous."""
    verdict = look(film(shot, until=60))
    (gap,) = (each for each in verdict.inconclusive if each.rule == rule)

    assert ("links_not_reported", names) == (gap.reason, gap.facts["clients"])
    assert words in render_inconclusive(gap).because
    assert [] == findings(verdict, "anonymous-connection")


@pytest.mark.parametrize("rule", ["pub-access-refused", "consumer-access-refused"])
def test_busy_clients_without_a_session_are_listed(rule):
    """The broker may have refused their links."""
    verdict = look(film(lambda t: frame(t, reported=False), until=60))
    (gap,) = (each for each in verdict.inconclusive if each.rule == rule)

    assert ("sessions_end_at_once", ["shop", "worker"]) == (gap.reason, gap.facts["clients"])
    assert "amqp:unauthorized-access" in render_inconclusive(gap).because


def test_idle_clients_are_not_listed():
    """They send heartbeats only."""
    idle = frame(0, reported=False)

    assert [] == gaps(look(film(lambda t: idle, until=60)), "pub-access-refused")


def test_a_full_queue_of_clients_that_nothing_counts_says_so():
    """On 4.0 it may refuse everything, and its consumers may settle all that they get."""

    def limited(t):
        made, limits = old(t), {"x-max-length": 10, "x-overflow": "reject-publish"}
        # It refuses until it has drained to 0.8 of its limit.
        ready = 10 if t % 15 else 8
        full_queue = queue(type="quorum", messages_ready=ready, messages_unacked=1, stats=stats(), arguments=limits)
        return {**made, "queues": (full_queue,)}

    verdict = look(film(limited, until=60))
    (finding,) = findings(verdict, "pub-nacked-overflow")

    assert "info" == finding.severity.value
    assert "AMQP 1.0 clients are not counted" in full_text(finding)
    assert "may be stuck" not in full_text(finding)
    assert ["links_not_reported"] == gaps(verdict, "pub-nacked-overflow")


def test_what_an_amqp10_consumer_takes_is_not_refused():
    """An AMQP 0-9-1 client publishes as much as is settled, to a queue that is full at each reading."""

    def drained(t):
        made = full(t)
        done = int(8 * t)
        return {
            **made,
            "queues": (queue(type="quorum", messages_ready=10, messages_unacked=1, stats=stats(publish=done),
                             arguments={"x-max-length": 10, "x-overflow": "reject-publish"}),),
            "sessions": (consumes(done + 1, done),),
            "connections": (made["connections"][0],),
        }  # fmt: skip

    (finding,) = findings(look(film(drained, until=60)), "pub-nacked-overflow")

    assert ("info", 0) == (finding.severity.value, finding.facts["refused"])


def test_an_alarm_stops_a_publisher_whose_connection_stays_running():
    """The window of its session is closed; that of a consumer does not matter, as its outcomes are read."""

    def alarmed(t, *checks):
        made = frame(t, published=100, sent=100, settled=90, state="running")
        sessions = tuple(replace(each, incoming_window=0) for each in made["sessions"])
        return {**made, "sessions": sessions, "health": checks}

    verdict = look(film(lambda t: alarmed(t, ALARM), until=60))
    (finding,) = findings(verdict, "pub-blocked-by-alarm")

    assert (["shop"], (SHOP,)) == (finding.facts["clients"], finding.involved.connections)
    assert "'shop' (AMQP 1.0" in full_text(finding)
    assert "shop" in findings(verdict, "memory-alarm")[0].involved.clients
    assert [] == findings(look(film(lambda t: alarmed(t, OK), until=60)), "pub-blocked-by-alarm")
