"""Pipelines whose consumers publish to the next queue: one full queue holds up all queues before it."""

import pytest

from ackscope.findings import flat
from tests.unit.diagnosis.pictures import channel, connection, consumer, film, look, queue, stats, text
from tests.unit.diagnosis.publishers.films import findings

RULE = "pub-nacked-overflow"
NAMES = ("scans.in", "scans.checked", "scans.out")


def stage(t, *, reads, number, rate, limit=40):
    """A client that has `limit` messages of a queue and publishes again and again what the next queue refuses."""
    peer = f"10.0.2.{number}:4{number} -> 10.0.0.1:5672"
    counters = stats(publish=int(300 + rate * t), confirm=300)
    taking = channel(f"{peer} (1)", messages_unacked=limit, prefetch_count=limit, stats=stats(deliver=340, ack=300))
    giving = channel(f"{peer} (2)", confirm=True, consumer_count=0, messages_unconfirmed=0, stats=counters)
    return {
        "channels": (taking, giving),
        "connections": (connection(peer, client_name=f"stage-{number}"),),
        "consumers": (consumer(reads, channel_name=taking.name, connection_name=peer, prefetch_count=limit),),
    }


def line(*, rate=2.0, other=None, last=None, names=NAMES, second_counts=True):
    """The last queue has no consumer and is full; the one before it is full as well, and the first one grows.

    If `second_counts` is false, the counters of the second queue do not show what it refuses.
    """
    first, second, third = names

    def frame(t):
        stages = [
            stage(t, reads=first, number=1, rate=rate),
            stage(t, reads=second, number=2, rate=rate if other is None else other),
        ]
        refused = (int(500 + rate * t * second_counts), int(400 + (rate if other is None else other) * t))
        limit = {"x-max-length": 100, "x-overflow": "reject-publish"}
        held = {"messages_ready": 100, "arguments": limit}
        return {
            "queues": (
                queue(
                    first,
                    messages=300 + int(12 * t),
                    messages_ready=260 + int(12 * t),
                    messages_unacked=40,
                    stats=stats(publish=int(600 + 12 * t), deliver=340, ack=300),
                ),
                queue(
                    second,
                    messages=140,
                    messages_unacked=40,
                    stats=stats(publish=refused[0], deliver=340, ack=300),
                    **held,
                ),
                queue(third, messages=100, consumers=0, stats=stats(publish=refused[1], deliver=50, ack=50), **held),
            ),
            **{key: tuple(it for each in stages for it in each[key]) for key in stages[0]},
            **(last(t) if last else {}),
        }

    return frame


@pytest.mark.parametrize("names", [NAMES, ("a", "z", "m"), ("dead", "orders", "retry")])
@pytest.mark.parametrize("rate", [0.6, 2.0, 40.0])
def test_they_are_one_finding_about_the_last_queue(names, rate):
    """Each client is refused by the queue that it publishes to, not by the one that it consumes from."""
    verdict = look(film(line(rate=rate, names=names), until=60))

    (cause,) = [each for each in verdict.findings if each.severity == "critical"]
    assert (RULE, names[2]) == (cause.rule, cause.subject.name)
    named = {each.subject.name: each.facts["nacked_clients"] for each in findings(verdict, RULE)}
    assert {names[2]: ["stage-2"], names[1]: ["stage-1"]} == named
    under = {(each.rule, each.subject.name) for each in flat([cause])} - {(RULE, names[2])}
    assert {(RULE, names[1]), ("stuck-consumer", names[0])} <= under


def test_the_client_that_waits_is_not_to_be_restarted():
    """It continues when the full queue has room."""
    finding = text(look(film(line(), until=60)).findings[0])

    assert "'stage-2' also consumes from queue 'scans.checked'" in finding.cause
    assert any("Do not restart 'stage-2'" in step.text for step in finding.steps)


@pytest.mark.parametrize("names", [NAMES, ("a", "z", "m"), ("m", "a", "z")])
@pytest.mark.parametrize("rate", [2.0, 40.0])
def test_a_client_that_consumes_from_a_full_queue_is_refused_by_another_one(names, rate):
    """The refusals of the second queue are not counted yet; its publisher has the same rate as that of the last one."""
    verdict = look(film(line(rate=rate, names=names, second_counts=False), until=30))

    (cause,) = [each for each in verdict.findings if each.severity == "critical"]
    assert (names[2], ["stage-2"]) == (cause.subject.name, cause.facts["nacked_clients"])
    assert [names[1]] == cause.facts["held_up"]
    assert (RULE, names[1]) in {(each.rule, each.subject.name) for each in flat([cause])}


@pytest.mark.parametrize("rate", [2.0, 40.0])
def test_nobody_is_named_if_two_clients_of_one_rate_fit(rate):
    """Both consume nothing, and a second full queue may have refused either."""

    def frame(t):
        return {**line(rate=rate, second_counts=False)(t), "consumers": ()}

    (cause,) = [each for each in findings(look(film(frame, until=30)), RULE) if each.severity == "critical"]

    assert ("scans.out", []) == (cause.subject.name, cause.facts["nacked_clients"])


def test_different_rates_are_assigned_as_before():
    """Each client is refused at the rate of its queue."""
    verdict = look(film(line(rate=2.0, other=30.0), until=60))

    named = {each.subject.name: each.facts["nacked_clients"] for each in findings(verdict, RULE)}
    assert {"scans.out": ["stage-2"], "scans.checked": ["stage-1"]} == named


def test_a_client_that_publishes_to_the_queue_that_it_consumes_from_is_named():
    """Nobody else is refused: it puts messages back itself."""

    def frame(t):
        made = line()(t)
        queues = tuple(each for each in made["queues"] if each.name == "scans.checked")
        own = stage(t, reads="scans.checked", number=2, rate=2.0)
        return {**made, **own, "queues": queues}

    (finding,) = findings(look(film(frame, until=15)), RULE)

    assert ["stage-2"] == finding.facts["nacked_clients"]
    assert [] == finding.facts["held_up"]
    assert not any("Do not restart" in step.text for step in text(finding).steps)


def test_a_refused_client_that_consumes_nothing_holds_up_nothing():
    """It only publishes."""

    def frame(t):
        made = line()(t)
        return {**made, "consumers": (), "queues": made["queues"][2:], "channels": made["channels"][3:]}

    (finding,) = findings(look(film(frame, until=15)), RULE)

    assert (["stage-2"], []) == (finding.facts["nacked_clients"], finding.facts["held_up"])
