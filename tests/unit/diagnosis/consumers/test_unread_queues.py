"""Queues without a consumer that are polled in time, and those that are one share of a hash exchange."""

import pytest

from ackscope.topology import Binding, Bindings, Exchange
from tests.unit.diagnosis.pictures import connection, film, full_text, look, queue, stats, text

RULE = "no-consumer"


def polled(t, *, every, rate, name="idoc.outbound", ends=10_000.0, stays=0):
    """A queue that a job empties by basic.get every so many seconds, until it is not started any more."""
    latest = min(t, ends) // every * every
    published, taken = int(rate * t) + stays, int(rate * latest)
    counters = stats(publish=published, get=taken, ack=taken, deliver_get=taken)
    return {"queues": (queue(name, consumers=0, messages_ready=published - taken, stats=counters),)}


def reported(frame, until):
    """The findings of the rule."""
    return [each for each in look(film(frame, until=until)).findings if each.rule == RULE]


@pytest.mark.parametrize(("every", "rate"), [(20, 1.4), (20, 30.0), (55, 2.0), (100, 0.5)])
@pytest.mark.parametrize("times", [2.4, 2.95, 5.9])
def test_a_queue_that_a_job_polls_again_and_again_needs_no_consumer(every, rate, times):
    """Whatever waits between two polls."""
    assert [] == reported(lambda t: polled(t, every=every, rate=rate, stays=40), int(times * every))


def test_a_job_that_does_not_come_back_is_missed():
    """After twice its longest pause, and the finding says how it was read before."""
    ended = lambda t: polled(t, every=20, rate=3.0, ends=60.0)  # noqa: E731
    (finding,) = reported(ended, 130)

    assert [] == reported(ended, 90)
    assert "Clients polled 180 messages with basic.get before" in text(finding).cause
    assert "had a consumer" not in text(finding).cause


def sharded(t, *, kind, lost=(2,), of=4, rate=5.0, names="billing.shard-{}"):
    """Queues bound to one exchange; some lose their consumer after 20 s."""

    def shard(number):
        taken = int(rate * (20 if number in lost and t >= 20 else t))
        counters = stats(publish=int(rate * t), deliver=taken, ack=taken)
        fields = {"consumers": int(number not in lost or t < 20), "messages_ready": int(rate * t) - taken}
        return queue(names.format(number), stats=counters, **fields)

    bindings = tuple(
        Binding(
            vhost="/", source="readings", destination=names.format(number), destination_type="queue", routing_key="1"
        )
        for number in range(of)
    )
    return {
        "queues": tuple(shard(number) for number in range(of)),
        "exchanges": (Exchange(vhost="/", name="readings", type=kind),),
        "bindings": Bindings(listed=bindings),
    }


@pytest.mark.parametrize("names", ["billing.shard-{}", "pod{}-meters", "meters.{}.eu"])
def test_a_share_of_a_hash_exchange_says_whose_it_is(names):
    """And neither its messages nor its binding are given up."""
    (finding,) = reported(lambda t: sharded(t, kind="x-consistent-hash", names=names), 220)
    said = full_text(finding)

    assert {"name": "readings", "queues": 4, "consumed": 3} == finding.facts["hash_exchange"]
    assert "divides its messages among 4 queues by a hash, and 3 of them have a consumer" in said
    assert "Do not unbind the queue while messages are in it" in said
    assert "purge" not in said
    assert "remove the binding" not in said


def test_queues_of_another_exchange_are_no_shares():
    """A topic exchange gives each of them its own copies or keys."""
    (finding,) = reported(lambda t: sharded(t, kind="topic"), 220)

    assert finding.facts["hash_exchange"] is None


def test_a_client_without_a_channel_is_named_in_the_step():
    """It was connected before the queue lost its consumer."""
    there = "10.0.0.9:50009 -> 10.0.0.1:5672"

    def frame(t):
        counters = stats(publish=int(6 * t) + 40, deliver=7, ack=6)
        return {
            "queues": (queue("contact-sync", consumers=0, messages_ready=int(6 * t) + 30, stats=counters),),
            "connections": (connection(there, client_name="crm-sync", channels=0),),
        }

    (finding,) = reported(frame, 200)

    assert "Read the log of 'crm-sync' for a closed channel (404, 406, 403), and restart it" in full_text(finding)
