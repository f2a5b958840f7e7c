"""Stuck consumers that may wait for a reply to a request of their own."""

import pytest

from tests.unit.diagnosis.consumers.results import found, only
from tests.unit.diagnosis.pictures import channel, connection, consumer, film, look, queue, stats, text

HELD = "Send nested calls"


def workers(number=2, *, replies=True, publishes=True, beside=False):
    """Consumers of a queue that stopped in second 20; each has a reply queue and has published requests.

    With `beside`, another worker neither publishes nor has a reply queue.
    """

    def frame(t):
        handled = int(4 * min(t, 20))
        queues = [
            queue(
                "quotes",
                consumers=number + beside,
                messages=int(4 * max(0.0, t - 20)) + 2,
                messages_ready=int(4 * max(0.0, t - 20)),
                messages_unacked=number + beside,
                stats=stats(publish=int(4 * t) + 2, deliver=handled + number, ack=handled),
            )
        ]
        made = {"consumers": [], "channels": [], "connections": []}
        for place in range(number + beside):
            peer, asks = f"10.0.3.{place}:5{place} -> 10.0.0.1:5672", place < number
            counters = stats(deliver=handled, ack=handled)
            made["connections"].append(connection(peer, client_name=f"quoter-{place}"))
            made["channels"].append(channel(f"{peer} (1)", messages_unacked=1, prefetch_count=1, stats=counters))
            made["consumers"].append(
                consumer("quotes", tag=f"w{place}", channel_name=f"{peer} (1)", connection_name=peer, prefetch_count=1)
            )
            if asks and publishes:
                made["channels"].append(channel(f"{peer} (2)", stats=stats(publish=3)))
            if asks and replies:
                queues.append(queue(f"amq.gen-{place}", exclusive=True, durable=False))
                made["consumers"].append(
                    consumer(f"amq.gen-{place}", tag=f"r{place}", channel_name=f"{peer} (2)", connection_name=peer)
                )
        return {"queues": tuple(queues), **{key: tuple(value) for key, value in made.items()}}

    return frame


@pytest.mark.parametrize("number", [1, 3])
def test_a_nested_call_is_among_the_causes(number):
    """All consumers of the queue hold a message, have published, and consume from reply queues."""
    finding = only(look(film(workers(number), until=120)))

    assert [f"quoter-{place}" for place in range(number)] == finding.facts["awaiting_replies"]
    assert "a nested call" in text(finding).cause
    assert any(HELD in step.text for step in text(finding).steps)


@pytest.mark.parametrize("fields", [{"replies": False}, {"publishes": False}, {"beside": True}])
def test_others_wait_for_something_else(fields):
    """Without a request or a reply queue they wait for no reply; one that asks nobody is free to answer."""
    verdict = look(film(workers(**fields), until=120))

    assert ["stuck-consumer"] == [rule for rule, _, _ in found(verdict)]
    assert [] == only(verdict).facts["awaiting_replies"]
    assert not any(HELD in step.text for step in text(only(verdict)).steps)


def callers(*names, stops=(20.0,), vhosts=("/",), ready=5, lacking=1, replies=True):
    """Clients of several queues, each with a reply queue, that stand still from some seconds on.

    For each message they send a request and, with `replies`, a reply. They lack `lacking` replies to their requests.
    """

    def frame(t):
        made = {"queues": [], "consumers": [], "channels": [], "connections": []}
        for place, name in enumerate(names):
            stop, vhost = stops[place % len(stops)], vhosts[place % len(vhosts)]
            handled = int(3 * max(0.0, min(t, stop)))
            waiting = ready if t >= stop else 0
            peer, own = f"10.0.4.{place}:6{place} -> 10.0.0.1:5672", f"amq.gen-{name}"
            asked = stats(publish=handled * (1 + replies) + lacking, ack=handled, deliver=handled + 1)
            made["queues"] += [
                queue(
                    name,
                    vhost=vhost,
                    messages_ready=waiting,
                    messages_unacked=1,
                    stats=stats(publish=handled + 1 + waiting, deliver=handled + 1, ack=handled),
                ),
                queue(own, vhost=vhost, exclusive=True, durable=False, stats=stats(deliver_no_ack=handled)),
            ]
            made["connections"].append(connection(peer, vhost=vhost, client_name=f"{name}-svc"))
            made["channels"].append(
                channel(f"{peer} (1)", vhost=vhost, messages_unacked=1, prefetch_count=1, consumer_count=2, stats=asked)
            )
            for of in (name, own):
                made["consumers"].append(
                    consumer(
                        of,
                        tag=of,
                        vhost=vhost,
                        channel_name=f"{peer} (1)",
                        connection_name=peer,
                        prefetch_count=1,
                        ack_required=of == name,
                    )
                )
        return {key: tuple(value) for key, value in made.items()}

    return frame


@pytest.mark.parametrize(
    ("names", "how"),
    [
        (("konto", "limit"), {}),
        (("a", "b", "c"), {"stops": (30.0, 31.0, 34.0), "replies": False}),
        (("konto", "limit"), {"stops": (-1.0,)}),
    ],
    ids=["two", "three, one after the other", "since before"],
)
def test_clients_that_call_each_other_are_one_finding(names, how):
    """One of the queues explains the others, and a restart of one client is not the advice."""
    finding = only(look(film(callers(*names, **how), until=180)))
    said = text(finding)

    assert ["stuck-consumer"] * (len(names) - 1) == [each.rule for each in finding.consequences]
    assert sorted(names) == finding.facts["mutual"]["queues"]
    assert "probably wait for each other" in said.summary
    assert "A restart of one of them alone does not help" in " ".join(step.text for step in said.steps)


@pytest.mark.parametrize(
    "how",
    [
        {"stops": (20.0, 70.0)},
        {"vhosts": ("/", "other")},
        {"lacking": 0},
        {"lacking": 0, "replies": False},
    ],
    ids=[
        "at different times",
        "of different virtual hosts",
        "replies to all, and got all replies",
        "got all replies",
    ],
)
def test_clients_that_stop_for_other_reasons_do_not_wait_for_each_other(how):
    """Such as a database that both use: they lack no reply."""
    verdict = look(film(callers("konto", "limit", **how), until=180))

    assert verdict.findings
    assert all(each.facts.get("mutual") is None for each in verdict.findings if each.rule == "stuck-consumer")
