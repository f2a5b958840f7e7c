"""A queue whose consumers end and return their messages, while others of the client stay and acknowledge none."""

import pytest

from ackscope.findings import flat
from ackscope.snapshot import Overview
from diagnosis.brief import diagnose_briefly
from tests.unit.diagnosis.consumers.results import found, urgent
from tests.unit.diagnosis.pictures import WALL, channel, connection, consumer, film, look, moment, queue, stats, text


def dying(*, every=3.0, stays=2, prefetch=5, comes=1.0, kind="classic", name="contract.sign", acks=0.0, requeues=0):
    """Return a film of a client that dies `every` seconds, and of whose connections each `stays`-th stays open.

    Each life takes `prefetch` messages, which come back when its connection ends. `acks` is what another consumer
    acknowledges per second, and `requeues` how many messages each one that stays requeues per second.
    """

    def frame(t):
        lives = int(t / every) + 1
        open_ones = [life for life in range(lives) if life == lives - 1 or life % stays == 0]
        redelivered = prefetch * (lives - len(open_ones)) + int(requeues * t)
        held = prefetch * len(open_ones)
        published = int(60 + 100 * prefetch / every + (comes + acks) * t)
        acked = int(acks * t)
        names = [f"10.0.0.7:{50001 + life} -> 10.0.0.1:5672" for life in open_ones]
        total = stats(
            publish=published, deliver=acked + held + redelivered, redeliver=redelivered, ack=acked, deliver_get=acked
        )
        of_one = stats(deliver=prefetch + int(requeues * t), redeliver=int(requeues * t))
        return {
            "overview": Overview(
                rabbitmq_version="3.10.8",
                statistics=True,
                connections=len(names),
                churn={"connection_created": lives, "connection_closed": lives - len(names)},
                stats=stats(publish=published),
            ),
            "queues": (
                queue(
                    name,
                    type=kind,
                    consumers=len(names),
                    messages_ready=max(0, published - acked - held),
                    messages_unacked=held,
                    stats=total,
                ),
            ),
            "consumers": tuple(
                consumer(name, tag="c", channel_name=f"{each} (1)", connection_name=each, prefetch_count=prefetch)
                for each in names
            ),
            "channels": tuple(channel(f"{each} (1)", messages_unacked=prefetch, stats=of_one) for each in names),
            "connections": tuple(
                connection(each, client_name="signer", user="guest", peer_host="h", connected_at=WALL + life * every)
                for each, life in zip(names, open_ones, strict=True)
            ),
        }

    return frame


@pytest.mark.parametrize(
    "shape",
    [
        {},
        {"kind": "quorum", "name": "scans", "comes": 12.0},
        {"every": 7.0, "prefetch": 40},
        {"stays": 5},
        {"stays": 100, "every": 4.0},
    ],
)
def test_a_queue_that_nobody_acknowledges_is_at_a_standstill_while_consumers_come_and_go(shape):
    """Redeliveries of consumers that ended settle nothing; how many of their connections stay does not matter."""
    verdict = look(film(dying(**shape), until=120, every=5))
    finding = next(each for each in verdict.findings if each.rule == "stuck-consumer")

    assert [("stuck-consumer", "critical", shape.get("name", "contract.sign"))] == urgent(verdict)
    assert finding.facts["returned"] > 0
    assert "makes no progress" in text(finding).summary
    assert "'signer'" in text(finding).summary


def test_a_prefetch_of_one_is_a_warning():
    """A long job looks the same."""
    assert [("stuck-consumer", "warning", "contract.sign")] == urgent(
        look(film(dying(prefetch=1, comes=3.0), until=150, every=5))
    )


def test_one_look_names_it_too():
    """Two readings, after the samples of the queue that the broker kept: these know neither consumers nor clients."""
    past = film(lambda t: {"queues": dying()(t)["queues"]}, until=110, every=10)
    now = film(dying(), start=120, until=130, every=10)
    whole = type(now)(now.cluster, (*past.snapshots, *now.snapshots))

    verdict = diagnose_briefly(whole, (), moment(130))

    assert [("stuck-consumer", "critical", "contract.sign")] == found(verdict)


def test_the_connections_of_the_client_are_consequences_and_agree():
    """One says that they come and go, and that some stay; the other does not say that it closes none."""
    verdict = look(film(dying(stays=2, every=1.0, comes=5.0), until=120, every=5))
    consequences = {each.rule: each for each in flat(verdict.findings)}

    assert ["stuck-consumer"] == [each.rule for each in verdict.findings if each.involved.clients == ("signer",)][:1]
    assert {"connection-churn", "connection-leak"} <= set(consequences)
    assert not {"connection-churn", "connection-leak"} & {each.rule for each in verdict.findings}
    assert "stay open" in text(consequences["connection-churn"]).summary
    assert "it closes some, and leaves others open" in text(consequences["connection-leak"]).summary


@pytest.mark.parametrize(
    "shape",
    [
        # Others acknowledge.
        {"acks": 5.0},
        # Those that stay requeue: that is a loop.
        {"requeues": 2},
    ],
)
def test_a_queue_with_progress_or_a_requeue_loop_is_not_at_a_standstill(shape):
    """Another rule may have something to say of it."""
    verdict = look(film(dying(**shape), until=120, every=5))

    assert not [each for each in flat(verdict.findings) if each.facts.get("returned")]


def test_a_deployment_in_which_each_consumer_is_replaced_once_is_none():
    """Three workers with jobs of minutes are replaced one by one, 20 s apart: each returns its messages."""

    def frame(t):
        replaced = min(3, int(t / 20))
        lives = [number + 10 * (number < replaced) for number in range(3)]
        names = [f"10.0.0.7:{50001 + life} -> 10.0.0.1:5672" for life in lives]
        total = stats(publish=200 + int(t), deliver=40 + 10 * replaced, redeliver=10 * replaced, ack=10)
        of_one = stats(deliver=10)
        begun = [WALL + (20 * (number + 1) if number < replaced else -300) for number in range(3)]
        return {
            "queues": (queue(consumers=3, messages_ready=160 + int(t), messages_unacked=30, stats=total),),
            "consumers": tuple(consumer(channel_name=f"{each} (1)", connection_name=each) for each in names),
            "channels": tuple(channel(f"{each} (1)", messages_unacked=10, stats=of_one) for each in names),
            "connections": tuple(connection(each, connected_at=at) for each, at in zip(names, begun, strict=True)),
        }

    for until in (30, 50, 70, 78):
        assert [] == [
            each for each in flat(look(film(frame, until=until, every=5)).findings) if each.facts.get("returned")
        ]


def test_a_client_without_connections_that_stay_is_another_case():
    """Each life ends before the next: that is a consumer that dies, and has a rule of its own."""

    def frame(t):
        lives = int(t / 25) + 1
        name = f"10.0.0.7:{50001 + lives} -> 10.0.0.1:5672"
        total = stats(publish=100 + int(t), deliver=5 * lives, redeliver=5 * (lives - 1))
        return {
            "queues": (queue(messages_ready=95 + int(t), messages_unacked=5, stats=total),),
            "consumers": (consumer(channel_name=f"{name} (1)", connection_name=name, prefetch_count=5),),
            "channels": (channel(f"{name} (1)", messages_unacked=5, stats=stats(deliver=5)),),
            "connections": (connection(name, connected_at=WALL + 25 * (lives - 1)),),
        }

    verdicts = [look(film(frame, until=until, every=5)) for until in (60, 85, 110, 120)]

    assert not [each for verdict in verdicts for each in flat(verdict.findings) if each.facts.get("returned")]


@pytest.mark.parametrize("every", [11, 20, 35])
def test_a_channel_that_the_broker_closes_is_no_connection_that_ends(every):
    """After an acknowledgement timeout the client consumes again on its old connection, and gets the same messages."""
    name = "10.0.0.7:50001 -> 10.0.0.1:5672"

    def frame(t):
        life = int(t / every)
        redelivered, held = 10 * life, 10
        own = stats(deliver=held, redeliver=held if life else 0)
        total = stats(publish=200 + t, deliver=held + redelivered, redeliver=redelivered, ack=0, deliver_get=held)
        return {
            "queues": (
                queue("jobs", consumers=1, messages_ready=190 + t, messages_unacked=held, stats=total, type="quorum"),
            ),
            "consumers": (
                consumer(
                    "jobs", tag="c", channel_name=f"{name} ({life + 1})", connection_name=name, prefetch_count=held
                ),
            ),
            "channels": (channel(f"{name} ({life + 1})", messages_unacked=held, stats=own),),
            "connections": (connection(name, client_name="worker", user="guest", peer_host="h", connected_at=WALL),),
        }

    for until in range(40, 180, 10):
        verdict = look(film(frame, until=until, every=5))
        stuck = [each for each in flat(verdict.findings) if each.rule == "stuck-consumer"]
        assert not [each for each in stuck if each.facts.get("returned")]
