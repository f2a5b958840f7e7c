"""One consumer among several holds its full prefetch and acknowledges nothing; also as one look sees it."""

from dataclasses import replace

import pytest

from ackscope.findings import Severity, flat
from diagnosis.brief import diagnose_briefly, unsettled
from tests.unit.diagnosis.pictures import WALL, channel, connection, consumer, film, look, queue, stats, text

RULE = "stuck-consumer"


def pods(*, name="capture.q", prefetch=8, rate=4.0, hung=1, working=2, held=None, busy=0.0, since=20.0, **fields):
    """Return a film in which some consumers hang since `since` seconds before, and others acknowledge `rate` together.

    Each hung consumer holds `held` messages, by default its prefetch, and acknowledges `busy` per second.
    """
    hosts = [f"127.0.0.{number}:4000{number} -> 127.0.0.1:5672" for number in range(1, hung + working + 1)]
    holds = prefetch if held is None else held

    def frame(t):
        done, few = int(100 + rate * t), int(22 + busy * t)
        each = done // working
        channels = [
            channel(
                f"{host} (1)",
                messages_unacked=holds,
                prefetch_count=prefetch,
                idle_since=None if busy else WALL - since,
                stats=stats(deliver=few + holds, ack=few),
            )
            for host in hosts[:hung]
        ] + [channel(f"{host} (1)", stats=stats(deliver=each, ack=each)) for host in hosts[hung:]]
        acked = each * working + few * hung
        counters = stats(publish=acked + hung * holds, deliver=acked + hung * holds, ack=acked)
        of = {"messages_unacked": hung * holds, "consumers": len(hosts), **fields}
        return {
            "queues": (queue(name, stats=counters, **of),),
            "consumers": tuple(
                consumer(name, tag=host, prefetch_count=prefetch, channel_name=f"{host} (1)", connection_name=host)
                for host in hosts
            ),
            "channels": tuple(channels),
            "connections": tuple(connection(host, client_name="payment-svc") for host in hosts),
        }

    return frame


def one_look(frame, seconds=6.5):
    """The findings of this rule of one look."""
    window = film(frame, until=seconds, every=seconds)
    result = diagnose_briefly(window, (), window.latest.taken)
    return result, [each for each in flat(result.findings) if each.rule == RULE]


@pytest.mark.parametrize(
    "kind",
    [
        {},
        {"name": "thumbs", "prefetch": 4, "rate": 12.0, "hung": 2, "working": 3, "type": "quorum"},
        {"name": "x", "prefetch": 250, "rate": 300.0, "working": 9},
        {"prefetch": 2, "rate": 1.0, "working": 1},
    ],
)
def test_one_look_says_what_it_becomes(kind):
    """Information, with the time after which it is a warning, so that the look goes on until then."""
    result, (finding,) = one_look(pods(since=2.0, **kind))

    assert (Severity.INFO, Severity.WARNING, "early") == (finding.severity, finding.if_it_lasts, finding.certainty)
    assert kind.get("hung", 1) == finding.facts["stuck_consumers"]
    assert 20.0 == finding.facts["warning_after_seconds"]
    assert [RULE] == [each.rule for each in unsettled(result, 40.0)]
    assert "may be stuck" in text(finding).summary
    assert "more urgent after 20 s" in text(finding).summary


def test_one_look_is_certain_if_the_broker_tells_that_it_lasts():
    """Its channel has been idle for half a minute."""
    _, (finding,) = one_look(pods(since=30.0))

    assert (Severity.WARNING, ("127.0.0.1:40001 -> 127.0.0.1:5672",)) == (
        finding.severity, finding.involved.connections
    )  # fmt: skip


@pytest.mark.parametrize(
    "kind",
    [
        {"prefetch": 1, "since": 2.0},
        {"held": 7, "since": 2.0},
        {"busy": 0.3, "since": 2.0},
        {"rate": 0.4, "since": 2.0},
        {"prefetch": 0, "held": 8, "since": 2.0},
    ],
    ids=["one message at a time", "not full", "acknowledges now and then", "others take as long", "no limit"],
)
def test_what_only_resembles_it_is_no_finding(kind):
    """Each differs in one thing."""
    assert [] == one_look(pods(**kind))[1]


def test_the_exporter_reports_it_early_and_then_as_a_warning():
    """What is proven is not mixed with what is early."""
    found = {
        until: [each.severity.value for each in flat(look(film(pods(since=0.0), until)).findings) if each.rule == RULE]
        for until in (5, 10, 15, 20, 40)
    }

    assert {5: [], 10: [], 15: ["info"], 20: ["warning"], 40: ["warning"]} == found


def test_only_the_certain_ones_are_named():
    """A second consumer has been full for 15 s."""
    frame = pods(hung=2, since=40.0)

    def later(t):
        of = frame(t)
        first, second, *others = of["channels"]
        young = replace(second, messages_unacked=8 if t >= 25 else 0, idle_since=WALL + 25 if t >= 25 else None)
        return {**of, "channels": (first, young, *others)}

    finding = next(each for each in look(film(later, until=40)).findings if each.rule == RULE)

    assert ("warning", 1) == (finding.severity.value, finding.facts["stuck_consumers"])
