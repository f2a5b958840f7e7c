"""Stuck consumers that published subtasks to the queue that they read, and wait for them."""

import pytest

from tests.unit.diagnosis.consumers.results import only
from tests.unit.diagnosis.pictures import channel, connection, consumer, film, look, queue, stats, text

STOPS = 20.0


def renderers(number=3, *, prefetch=1, subtasks=(2, 1, 4), elsewhere=False, feeds=(3.0,), beside=0.0, forgotten=0):
    """Workers of `scenes` that stand still from second 20 on, each waiting for what it has published.

    With `elsewhere`, their publishes go to another queue. `feeds` are the rates of the clients that feed the queue,
    `beside` of one that publishes elsewhere. `forgotten` messages came from channels that are closed.
    """

    def frame(t):
        handled = int(2 * min(t, STOPS))
        mine = [subtasks[place % len(subtasks)] for place in range(number)]
        fed = sum(100 + int(rate * t) for rate in feeds)
        published = fed + forgotten + (0 if elsewhere else sum(mine))
        held = number * prefetch
        counters = stats(publish=published, deliver=handled * number + held, ack=handled * number)
        waiting = published - handled * number - held
        made = {"connections": [], "channels": [], "consumers": []}

        def client(name, **fields):
            peer = f"10.0.4.{len(made['connections'])}:5{len(made['connections'])} -> 10.0.0.1:5672"
            made["connections"].append(connection(peer, client_name=name))
            made["channels"].append(channel(f"{peer} (1)", **fields))
            return peer

        for place, own in enumerate(mine):
            counted = stats(publish=own or None, deliver=handled + prefetch, ack=handled)
            peer = client(f"renderer-{place}", messages_unacked=prefetch, prefetch_count=prefetch, stats=counted)
            made["consumers"].append(
                consumer(
                    "scenes",
                    tag=f"r{place}",
                    channel_name=f"{peer} (1)",
                    connection_name=peer,
                    prefetch_count=prefetch,
                )
            )
        for place, rate in enumerate(feeds):
            client(f"studio-{place}", consumer_count=0, stats=stats(publish=100 + int(rate * t)))
        if beside:
            client("billing", consumer_count=0, stats=stats(publish=50 + int(beside * t)))
        there = queue(
            "scenes",
            consumers=number,
            messages=waiting + held,
            messages_ready=waiting,
            messages_unacked=held,
            stats=counters,
        )
        return {"queues": (there,), **{key: tuple(value) for key, value in made.items()}}

    return frame


@pytest.mark.parametrize("number", [1, 3])
@pytest.mark.parametrize("prefetch", [1, 5])
@pytest.mark.parametrize("traffic", [{}, {"beside": 40.0}, {"feeds": (3.0, 1.5)}], ids=["alone", "beside", "two"])
def test_consumers_that_wait_behind_themselves_are_a_deadlock(number, prefetch, traffic):
    """The queue got what they and its publishers published; a job that waits for a later one never ends."""
    finding = only(look(film(renderers(number, prefetch=prefetch, **traffic), until=110)))

    assert ("stuck-consumer", "critical") == (finding.rule, finding.severity.value)
    expected = {"clients": [f"renderer-{place}" for place in range(number)], "published": sum((2, 1, 4)[:number])}
    assert expected == {key: finding.facts["self_fed"][key] for key in expected}
    said = text(finding)
    assert "a deadlock" in said.cause
    assert "long job" not in said.cause
    assert any("a queue of their own" in step.text for step in said.steps)
    assert any("does not help for long" in step.text for step in said.steps)


@pytest.mark.parametrize(
    "fields",
    [
        {"elsewhere": True},
        {"elsewhere": True, "beside": 40.0},
        {"subtasks": (2, 0, 4)},
        {"forgotten": 17},
        {"subtasks": (0,)},
    ],
    ids=["to another queue", "to another queue beside others", "one asks nobody", "unknown publishers", "none asks"],
)
def test_others_may_do_a_long_job(fields):
    """Their publishes went elsewhere, it is not known where, or one of them waits for nothing."""
    finding = only(look(film(renderers(**fields), until=110)))

    assert ("stuck-consumer", "warning") == (finding.rule, finding.severity.value)
    assert finding.facts["self_fed"] is None
    assert "long job" in text(finding).cause
    assert "deadlock" not in text(finding).cause
