from dataclasses import replace

import pytest

from ackscope.findings import Certainty, flat
from ackscope.snapshot import Overview, Part
from diagnosis.text import Cluster, render
from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.consumers.results import found, only
from tests.unit.diagnosis.pictures import (
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


def loop(t, *, published=0.0, acked=0.0, share=1.0, rate=90.0, start=0.0, end=1e9, **fields):
    """Return a film of a consumer that requeues three messages at this rate and acknowledges hardly any."""
    seconds = max(0.0, min(t, end) - start)
    redelivered, done = int(rate * seconds), int(acked * t)
    delivered = int(redelivered / share) + done
    counters = {"redeliver": redelivered, "deliver": delivered, "deliver_get": delivered, "ack": done}
    total = stats(publish=3 + int(published * t), **counters)
    return {
        "queues": (queue(messages_ready=2, messages_unacked=1, stats=total, **fields),),
        "consumers": (consumer(prefetch_count=1),),
        "channels": (channel(messages_unacked=1, stats=stats(**counters)),),
        "connections": (connection(),),
    }


def test_a_loop_is_found_after_twenty_seconds():
    """It must last for two intervals in a row; before that it is information. The application is named."""
    finding = only(look(film(loop, until=40)))

    assert ("requeue-loop", "warning", "orders") == (finding.rule, finding.severity, finding.subject.name)
    assert (["billing"], ("billing",)) == (finding.facts["clients"], finding.involved.clients)
    assert (90.0, 0) == (finding.facts["redelivery_rate"], finding.facts["acked"])
    assert "ctag1" == evidence(finding, "consumer").facts["redelivered_to"]["tag"]
    assert [("requeue-loop", "info", "orders")] == found(look(film(loop, until=15)))
    assert Certainty.EARLY == only(look(film(loop, until=15))).certainty
    assert [] == found(look(film(loop, until=10)))


def test_while_messages_are_published_the_loop_is_critical():
    """No other message gets past the loop."""
    window = film(lambda t: loop(t, published=5.0), until=40)

    assert [("requeue-loop", "critical", "orders")] == found(look(window))


@pytest.mark.parametrize(("until", "severity"), [(75, "warning"), (130, "critical")])
@pytest.mark.parametrize("rate", [60.0, 900.0])
def test_a_queue_that_acknowledged_at_first_and_then_stands_still_is_critical(until, severity, rate):
    """Poison messages take one slot after the other; from second 60 on they have all."""

    def frame(t):
        made = loop(t, published=8.0, rate=rate)
        done = int(0.6 * min(t, 60))
        counters = {"redeliver": int(rate * t), "deliver": int(rate * t) + done, "ack": done}
        waiting = int(8 * t)
        total = stats(publish=waiting + 3, deliver_get=int(rate * t) + done, **counters)
        return {
            **made,
            "queues": (queue(messages_ready=waiting, messages_unacked=3, stats=total),),
            "channels": (channel(messages_unacked=3, stats=stats(**counters)),),
        }

    finding = next(each for each in look(film(frame, until=until)).findings if each.rule == "requeue-loop")

    assert severity == finding.severity
    assert ("none acknowledged for" in text(finding).summary) == (severity == "critical")


def test_a_single_look_is_enough():
    """Two readings 8 s apart."""
    window = film(loop, start=20, until=28, every=8)

    assert [("requeue-loop", "warning", "orders")] == found(look(window, thresholds=Thresholds.as_if_lasting()))


def test_a_burst_after_a_restart_is_no_loop():
    """A consumer that reconnects gets its unacknowledged messages once more, then works on."""
    results = [
        found(look(film(lambda t: loop(t, start=20, end=24, acked=20.0), until=until))) for until in range(20, 70, 5)
    ]

    assert [] == [result for result in results if result]


def test_a_burst_without_acknowledgements_is_no_loop_either():
    """Hundreds at once, all unacknowledged: they fill one interval, not two."""
    burst = {"start": 22, "end": 23, "rate": 300.0}
    results = [found(look(film(lambda t: loop(t, **burst), until=until))) for until in range(20, 90, 5)]

    assert "requeue-loop" not in [rule for result in results for rule, _, _ in result]


@pytest.mark.parametrize(
    "change",
    [{"acked": 50.0}, {"share": 0.3}, {"rate": 0.5}],
    ids=["acknowledges", "mostly first deliveries", "now and then"],
)
def test_what_only_resembles_a_loop_is_no_finding(change):
    """Messages are acknowledged, or redeliveries are few."""
    assert "requeue-loop" not in [rule for rule, _, _ in found(look(film(lambda t: loop(t, **change), until=60)))]


def test_a_few_messages_circulate_among_others_that_are_acknowledged():
    """Four redeliveries for each acknowledgement, for a minute: no message needs that many attempts on average."""
    early, late = (look(film(lambda t: loop(t, acked=4.0, published=4.0, rate=16.0), until=t)) for t in (40, 70))

    finding = only(late)
    assert ("requeue-loop", "warning", "orders") == (finding.rule, finding.severity, finding.subject.name)
    assert (True, ["billing"]) == (finding.facts["mixed"], finding.facts["clients"])
    assert "The other messages get through" in render(finding, Cluster()).cause
    assert [] == [each for each in found(early) if each[1] != "info"]


def test_messages_of_consumers_that_die_do_not_circulate_on_one_channel():
    """They are redelivered to another channel each time: the consumer does not requeue them."""

    def frame(t):
        picture = loop(t, acked=4.0, published=4.0, rate=16.0)
        name = f"10.0.0.7:{50000 + int(t // 10)} -> 10.0.0.1:5672"
        new = stats(redeliver=int(16 * (t % 10)), deliver=int(20 * (t % 10)), ack=int(4 * (t % 10)))
        return {
            **picture,
            "consumers": (consumer(prefetch_count=1, channel_name=f"{name} (1)", connection_name=name),),
            "channels": (channel(name=f"{name} (1)", connection_name=name, messages_unacked=1, stats=new),),
            "connections": (connection(name=name),),
        }

    assert "requeue-loop" not in [rule for rule, _, _ in found(look(film(frame, until=90)))]


def test_a_loop_that_ended_is_not_repeated():
    """The counters stay high, but no longer rise."""
    window = film(lambda t: loop(t, end=40), until=60)

    assert [] == found(look(window))


def test_without_deliver_get_its_parts_are_added_up():
    """The broker may not report the sum."""

    def frame(t):
        counters = stats(redeliver=int(60 * t) + int(31 * t), deliver=int(60 * t), get=int(31 * t))
        return {"queues": (queue(messages_ready=1, stats=counters),)}

    assert [("requeue-loop", "warning", "orders")] == found(look(film(frame, until=40)))


@pytest.mark.parametrize(
    ("kind", "version", "words"),
    [
        ("classic", (4, 3), "has no delivery limit, so this goes on"),
        ("quorum", (3, 10), "no delivery limit unless one is set"),
        ("quorum", (4, 0), "these messages are being lost"),
        ("quorum", (4, 3), "basic.nack does not count"),
    ],
)
def test_the_cause_says_what_this_version_does_with_such_messages(kind, version, words):
    """Delivery limits changed with 4.0 and again with 4.3."""
    finding = only(look(film(lambda t: loop(t, type=kind), until=40)))

    assert words in render(finding, Cluster(version=version)).cause


def two(t, *, rate=10.0, first=1.0, second=0.0, gone=0.0, peers=("10.0.0.7", "10.0.0.8")):
    """Two consumers of one queue: each acknowledges a share of what it is sent, and requeues the rest.

    `gone`: messages a second that come back from channels that ended.
    """
    names = [f"{peer}:50001 -> 10.0.0.1:5672" for peer in peers]
    # What comes back is sent again, to either of them, until it is acknowledged.
    sent = rate / (first + second) * t
    done = [int(sent * first), int(sent * second)]
    redelivered = int(2 * sent) - sum(done) + int(gone * t)
    counters = {"deliver": int(2 * sent) + int(gone * t), "ack": sum(done), "redeliver": redelivered}
    total = stats(publish=5 + sum(done), deliver_get=counters["deliver"], **counters)
    return {
        "queues": (queue("mail", messages_ready=2, messages_unacked=2, consumers=2, stats=total),),
        "consumers": tuple(consumer("mail", channel_name=f"{name} (1)", connection_name=name) for name in names),
        "channels": tuple(
            channel(
                f"{name} (1)",
                connection_name=name,
                messages_unacked=1,
                stats=stats(deliver=int(sent), ack=acked, redeliver=redelivered // 2),
            )
            for name, acked in zip(names, done, strict=True)
        ),
        "connections": tuple(
            connection(name, client_name=f"pod-{number}") for number, name in enumerate(names, start=1)
        ),
    }


def test_a_job_that_polls_and_fails_is_described_as_one():
    """It fetches thirty messages every ten seconds, and ends before it acknowledges them; nobody consumes."""

    def frame(t):
        fetched = 30 * int(t / 10)
        counters = stats(publish=100, get=fetched, deliver_get=fetched, redeliver=max(0, fetched - 30))
        return {"queues": (queue("exports", messages_ready=100, consumers=0, stats=counters),)}

    finding = next(each for each in look(film(frame, until=95)).findings if each.rule == "requeue-loop")
    report = render(finding, Cluster())

    assert "fetched with basic.get, returned and redelivered" in report.summary
    assert "ends before it acknowledges" in report.cause
    assert not any("list_consumers" in (step.command or "") for step in report.steps)


@pytest.mark.parametrize("rate", [2.0, 10.0, 300.0])
def test_a_consumer_that_returns_what_another_one_acknowledges_is_named(rate):
    """Half of the deliveries are for nothing, and the queue is empty: nothing else shows it."""
    finding = only(look(film(lambda t: two(t, rate=rate), until=90)))

    assert ("requeue-loop", "warning", "mail") == (finding.rule, finding.severity, finding.subject.name)
    assert (["pod-2"], ("pod-2",)) == (finding.facts["clients"], finding.involved.clients)
    assert ["redelivered", "acked", "depth", "returned"] == [each.key for each in finding.evidence]
    assert "'pod-2' requeues everything that it gets from queue 'mail'" in render(finding, Cluster()).summary


def test_consumers_that_each_return_a_part_are_information():
    """Two applications that share a queue by mistake."""
    finding = only(look(film(lambda t: two(t, first=0.5, second=0.5), until=90)))

    assert ("info", ["pod-1", "pod-2"]) == (finding.severity, sorted(finding.facts["clients"]))
    assert "Two applications that share a queue" in render(finding, Cluster()).cause


@pytest.mark.parametrize(
    ("fields", "until"),
    [
        ({"first": 0.9, "second": 0.8}, 90),
        ({"rate": 0.4}, 90),
        ({"first": 1.0, "second": 1.0, "gone": 20.0}, 90),
        ({}, 40),
    ],
    ids=["few come back", "rarely", "consumers that die", "a moment"],
)
def test_other_redeliveries_are_not_ascribed_to_consumers(fields, until):
    """Each differs in one thing only."""
    assert "requeue-loop" not in {rule for rule, _, _ in found(look(film(lambda t: two(t, **fields), until=until)))}


@pytest.mark.parametrize(
    ("held", "rate", "batch"),
    [(40, 8.0, 40), (30, 10.0, 30), (40, 200.0, None), (4, 1.5, None), (1, 90.0, None)],
    ids=["a batch", "another", "each at once", "a few", "one at a time"],
)
def test_a_batch_that_is_returned_whole_is_said(held, rate, batch):
    """One message of it may be the reason. A loop of single messages returns each at once, whatever the prefetch."""

    def frame(t):
        made = loop(t, rate=rate, published=3.0)
        (each,) = made["queues"]
        return {**made, "queues": (replace(each, messages_unacked=held, messages_ready=int(3 * t)),)}

    finding = only(look(film(frame, until=60)))

    assert batch == finding.facts["batch"]
    assert (batch is not None) == ("one by one" in " ".join(step.text for step in text(finding).steps))
    if batch is not None:
        assert f"holds up to {held} messages for about" in text(finding).cause


def late_lists(t, *, lists_until, begins=12.0):
    """A loop begins, and clients are read late: the lists are those of the time before, or of its first seconds."""
    made, known = loop(t, start=begins), min(t, lists_until)
    churn = {f"{kind}_{event}": int(t) for kind in ("connection", "channel") for event in ("created", "closed")}
    clients = ("consumers", "channels", "connections")
    return {
        "overview": Overview(rabbitmq_version="3.10.8", statistics=True, rates_mode="basic", churn=churn),
        "queues": made["queues"] if t >= begins - 2 else (),
        **{each: Part(value=made[each] if known >= begins else (), at=moment(known), seconds=0.1) for each in clients},
    }


@pytest.mark.parametrize("lists_until", [10, 15, 20])
@pytest.mark.parametrize("until", [25, 30, 35])
def test_a_consumer_that_was_not_listed_yet_does_not_come_and_go(until, lists_until):
    """On a busy machine clients are read less often than queues. A list from before the loop proves nothing."""
    verdict = look(film(lambda t: late_lists(t, lists_until=lists_until), until=until))
    loops = {"requeue-loop", "consumer-flapping"}

    assert ["requeue-loop"] == [finding.rule for finding in verdict.findings if finding.rule in loops]


@pytest.mark.parametrize(("until", "lists_until"), [(30, 10), (30, 20), (35, 15), (35, 20)])
def test_readings_without_a_consumer_prove_no_crash_before_clients_were_listed_again(until, lists_until):
    """A queue that was just declared may show no consumer in some readings, although one returns its messages."""

    def frame(t):
        made = late_lists(t, lists_until=lists_until)
        shown = [
            replace(each, consumers=1 - int(t / 5) % 2, messages_ready=3, messages_unacked=0) for each in made["queues"]
        ]
        return {**made, "queues": tuple(shown)}

    found_rules = {finding.rule for finding in flat(look(film(frame, until=until)).findings)}

    assert "requeue-loop" in found_rules
    assert "consumer-flapping" not in found_rules


def unlisted(t, **fields):
    """A loop whose consumers live too briefly for any list, while connections come and go."""
    made = loop(t, **fields)
    counts = {f"{kind}_{event}": int(t) for kind in ("connection", "channel") for event in ("created", "closed")}
    overview = Overview(rabbitmq_version="4.0.5", statistics=True, rates_mode="basic", churn=counts)
    return {**made, "overview": overview, "consumers": (), "channels": (), "connections": ()}


@pytest.mark.parametrize("fields", [{"rate": 6.0, "published": 2.0}, {"rate": 40.0, "acked": 0.2}])
def test_nobody_is_said_to_requeue_where_clients_may_have_ended(fields):
    """Messages of a client that ends come back without a requeue. Whom the lists have is named."""
    for frame, listed in ((unlisted, False), (loop, True)):
        verdict = look(film(lambda t, frame=frame: frame(t, **fields), until=90))
        shown = text(next(each for each in flat(verdict.findings) if each.rule == "requeue-loop"))

        assert listed == ("requeued by 'billing'" in shown.summary)
        assert listed == ("with requeue (basic.nack" in shown.cause)
        assert listed != ("ends before it acknowledges" in shown.cause)
        assert listed != any("connects again and again" in step.text for step in shown.steps)
        assert "unknown client" not in shown.summary
