"""A broker that lists no clients: some rules judge channels by their Erlang process, the others do not see them."""

from dataclasses import replace

import pytest

from ackscope.findings import FieldRef, flat
from ackscope.second_source import MetricsReading, NativeTotals
from ackscope.snapshot import Channel, Consumer, Overview, Part, ProcessLists
from diagnosis.preconditions import CLIENT_LISTS
from diagnosis.window import Window
from tests.unit.diagnosis.pictures import look, moment, queue, snapshot, stats, text

JOINED = MetricsReading(nodes=("rabbit@a",), families=("queues", "overview", "nodes"), native=NativeTotals())
UNACKED = ("/metrics/detailed", "rabbitmq_detailed_channel_messages_unacked")


def process(number, *, held=0, consumers=1, prefetch=20, node="rabbit@a", **counters):
    """A channel that is known by its process."""
    return Channel(
        name=f"<0.{number}.0> {node}",
        node=node,
        vhost="/",
        consumer_count=consumers,
        prefetch_count=prefetch,
        messages_unacked=held,
        messages_unconfirmed=0,
        acks_uncommitted=0,
        stats=stats(**counters),
    )


def of(channel, name, number=1):
    """Its consumer."""
    return Consumer(
        tag=str(number),
        vhost="/",
        queue=name,
        channel_name=channel.name,
        node=channel.node,
        prefetch_count=channel.prefetch_count,
    )


def seen(frame, *, until=120, used=None, reading=JOINED):
    """What is found in a film of queues, channels and consumers, by second, of a broker that lists no clients."""
    window = Window.empty("shop")
    for seconds in range(0, until, 5):
        queues, channels, consumers = frame(seconds)
        overview = Overview(rabbitmq_version="4.3.6", statistics=False, stats=stats(publish=1000 + 10 * seconds))
        lists = ProcessLists(channels=channels, consumers=consumers, used=used or {})
        window = window.add(
            replace(
                snapshot(seconds, overview=overview, queues=queues),
                prometheus=Part(value=reading, at=moment(seconds)),
                processes=Part(value=lists, at=moment(seconds), origins={"messages_unacknowledged": UNACKED}),
                **dict.fromkeys(CLIENT_LISTS, Part()),
            )
        )
    return look(window)


def left_behind(t, *, name="invoices", number=913, rate=4, consumes=1):
    """A client cancels and consumes again on one channel: what it holds grows beyond its prefetch."""
    acked, held = 50 + rate * t, 20 + rate * t
    counters = {"deliver": acked + held, "ack": acked, "deliver_get": acked + held}
    channel = process(number, held=held, consumers=consumes, **counters)
    it = queue(name, messages_ready=0, messages_unacked=held, stats=stats(publish=acked + held, **counters))
    return (it,), (channel,), (of(channel, name),) if consumes else ()


@pytest.mark.parametrize(("name", "number", "rate"), [("invoices", 913, 4), ("telemetry.eu", 77001, 11)])
def test_a_channel_is_judged_by_its_process(name, number, rate):
    """The finding names the process and its node, and the first step finds the client."""
    found = seen(lambda t: left_behind(t, name=name, number=number, rate=rate))
    (finding,) = [each for each in flat(found.findings) if each.rule == "held-after-cancel"]
    report = text(finding)

    assert ("queue", name, "warning") == (finding.subject.kind, finding.subject.name, finding.severity)
    assert [{"node": "rabbit@a", "process": f"<0.{number}.0>"}] == finding.facts["processes"]
    assert f"its Erlang process only, <0.{number}.0> on node rabbit@a" in report.summary
    assert f"rabbitmqctl -n rabbit@a list_channels pid name user | grep -F -- '.{number}.0>'" == report.steps[0].command
    assert not [each for each in report.next_steps if "/api/connections" in each]
    assert FieldRef(*UNACKED) in {ref for each in finding.evidence for ref in each.source}


def test_a_channel_of_a_probe_is_left_out():
    """It is known by the queues that it uses."""
    own = {"<0.913.0> rabbit@a": ("ackscope.probe.rtt",)}

    assert [] == [each.rule for each in flat(seen(left_behind, used=own).findings) if each.rule == "held-after-cancel"]


def test_rules_that_need_the_client_do_not_see_processes():
    """They are inconclusive, as without these lists."""
    reasons = {gap.rule: gap.reason for gap in seen(left_behind).inconclusive}

    assert {
        "consumer-ack-timeout": "no_client_lists",
        "zombie-connection": "no_client_lists",
    }.items() <= reasons.items()
    assert "held-after-cancel" not in reasons


def test_queues_whose_consumers_are_not_known_are_inconclusive():
    """Silence about them would look like health."""

    def frame(t):
        queues, channels, consumers = left_behind(t)
        return (*queues, queue("idle", consumers=3)), channels, consumers

    gaps = [each for each in seen(frame).inconclusive if each.rule == "prefetch-hoarder"]

    assert [("unlisted_consumers", 1, ["'idle' in vhost '/'"])] == [
        (gap.reason, gap.facts["queues"], gap.facts["names"]) for gap in gaps
    ]


@pytest.mark.parametrize("rule", ["requeue-loop", "poison-drop", "reject-loss", "stuck-consumer", "slow-consumer"])
def test_consumers_of_other_protocols_are_counted_by_their_queue_only(rule):
    """What they return, reject and hold shows in no counter, so each rule says once that it cannot tell."""
    found = seen(lambda t: ((queue("invoices.v1", type="quorum", messages_unacked=30, consumers=1),), (), ()))

    assert [("unlisted_consumers", 1)] == [
        (gap.reason, gap.facts["queues"]) for gap in found.inconclusive if gap.rule == rule
    ]


def test_a_stuck_consumer_among_working_ones_is_named():
    """By totals alone, the queue works."""

    def frame(t):
        acked = 300 + 10 * t
        works = process(5, held=3, deliver=acked + 3, ack=acked, deliver_get=acked + 3)
        hangs = process(6, held=20, deliver=120, ack=100, deliver_get=120)
        counters = stats(publish=acked + 200 + 5 * t, deliver=acked + 123, ack=acked + 100, deliver_get=acked + 123)
        it = queue("jobs", messages_ready=77 + 5 * t, messages_unacked=23, consumers=2, stats=counters)
        return (it,), (works, hangs), (of(works, "jobs"), of(hangs, "jobs", 2))

    (finding,) = [each for each in flat(seen(frame, until=180).findings) if each.rule == "stuck-consumer"]

    assert ["<0.6.0>"] == [each["process"] for each in finding.facts["processes"]]
    assert "unknown" in text(finding).cause or "process" in text(finding).summary


@pytest.mark.parametrize(("listed", "rule"), [(True, "sac-stuck"), (False, "sac-stuck")])
def test_a_stuck_single_active_consumer_has_standbys(listed, rule):
    """Also where its standbys were sent nothing, so that no channel is known to consume."""

    def frame(t):
        acked = 100 + 5 * min(t, 40)
        held = 20 if t > 40 else 2
        channel = process(8, held=held, deliver=acked + held, ack=acked, deliver_get=acked + held)
        counters = stats(publish=130 + 5 * t, deliver=acked + held, ack=acked, deliver_get=acked + held)
        it = queue(
            "ledger",
            messages_ready=130 + 5 * t - acked - held,
            messages_unacked=held,
            consumers=2,
            stats=counters,
            arguments={"x-single-active-consumer": True},
        )
        waits = process(9)
        pair = (replace(of(channel, "ledger"), active=True), replace(of(waits, "ledger", 2), active=False))
        return (it,), (channel, waits), pair if listed else ()

    found = [each for each in flat(seen(frame, until=200).findings) if each.rule in ("sac-stuck", "stuck-consumer")]

    assert [rule] == [each.rule for each in found]
    assert 1 == found[0].facts["standbys"]
    assert text(found[0]).summary


def test_a_queue_is_stuck_whatever_its_settings():
    """With the Prometheus endpoints alone, nobody knows whether it has a single active consumer."""

    def frame(t):
        acked = 100 + 5 * min(t, 40)
        held = 20 if t > 40 else 2
        counters = stats(publish=130 + 5 * t, deliver=acked + held, ack=acked, deliver_get=acked + held)
        ready = 130 + 5 * t - acked - held
        known = {"settings_known": False, "type": "classic", "consumers": 2}
        return (queue("tariffs", messages_ready=ready, messages_unacked=held, stats=counters, **known),), (), ()

    found = flat(seen(frame, until=200, reading=replace(JOINED, alone=True)).findings)

    assert ["stuck-consumer"] == [each.rule for each in found if each.rule in ("sac-stuck", "stuck-consumer")]
