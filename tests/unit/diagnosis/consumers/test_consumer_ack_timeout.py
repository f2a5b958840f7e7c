from dataclasses import replace

import pytest

from ackscope.findings import flat
from diagnosis.text import Cluster, render
from diagnosis.window import Window
from tests.unit.diagnosis.consumers.results import ever, found, only
from tests.unit.diagnosis.pictures import (
    CHANNEL,
    PEER,
    WALL,
    channel,
    connection,
    consumer,
    film,
    look,
    queue,
    snapshot,
    stats,
    text,
)


def holding(
    *, timeout_ms=100_000, acts=1e9, kind="quorum", comes_back=False, client_goes=False, held=5, idle=True, acked=0
):
    """A consumer of prefetch 100 that holds five messages from second 0 on, until the broker acts."""

    def frame(t):
        over = t >= acts
        here = not over or comes_back
        again = held if over and comes_back else 0
        counters = stats(publish=100, deliver=held + again, redeliver=again)
        since = WALL + (acts if over else 0.0)
        return {
            "queues": (
                queue(
                    type=kind,
                    consumers=int(here),
                    messages_ready=0 if here else held,
                    messages_unacked=held if here else 0,
                    stats=counters,
                ),
            ),
            "consumers": (consumer(prefetch_count=100, consumer_timeout_ms=timeout_ms),) if here else (),
            "channels": (
                channel(
                    messages_unacked=held if here else 0,
                    consumer_count=int(here),
                    idle_since=since if idle else None,
                    stats=stats(deliver=held + acked, ack=acked),
                ),
            ),
            "connections": () if over and client_goes else (connection(),),
        }

    return frame


def at(version, frame, until):
    """The result for a broker of some version."""
    window = Window.empty("shop")
    for seconds in range(0, until + 1, 5):
        window = window.add(snapshot(float(seconds), version=version, **frame(float(seconds))))
    return look(window)


def test_half_of_the_timeout_is_a_warning():
    """So that somebody can act before the broker does."""
    assert "consumer-ack-timeout" not in ever([look(film(holding(), until=45))])

    finding = only(look(film(holding(), until=60)))

    assert ("consumer-ack-timeout", "warning", "orders") == (finding.rule, finding.severity, finding.subject.name)
    assert (False, 60.0, 100.0, 40.0) == tuple(
        finding.facts[key] for key in ("ended", "held_seconds", "timeout_seconds", "remaining_seconds")
    )
    assert (["billing"], 5) == (finding.facts["clients"], finding.facts["unacked"])
    assert [{"tag": "ctag1", "channel": CHANNEL}] == finding.facts["consumers"]
    assert ((CHANNEL,), (PEER,)) == (finding.involved.channels, finding.involved.connections)


@pytest.mark.parametrize(
    ("version", "cancels"), [("4.0.5", False), ("4.3.6", True)], ids=["closes the channel", "cancels the consumer"]
)
@pytest.mark.parametrize("comes_back", [False, True])
def test_what_the_broker_did_is_reported(version, cancels, comes_back):
    """It is reported even if the application consumes again at once under the same names."""
    finding = only(at(version, holding(acts=110.0, comes_back=comes_back), 120))

    assert (True, cancels, 5, 100.0) == tuple(
        finding.facts[key] for key in ("ended", "cancels_consumer", "unacked", "timeout_seconds")
    )


def test_a_client_that_disconnects_is_no_timeout():
    """Its connection is closed too."""
    assert [] == found(at("4.3.6", holding(acts=110.0, client_goes=True), 120))


@pytest.mark.parametrize(
    ("version", "frame"),
    [
        ("4.3.6", holding(kind="classic")),
        ("4.0.5", holding(timeout_ms=None)),
        ("4.3.6", holding(timeout_ms=0)),
        ("4.3.6", holding(held=0)),
        ("4.3.6", holding(idle=False)),
        ("3.10.8", holding(timeout_ms=None)),
    ],
    ids=["4.3 classic", "not reported", "off", "holds nothing", "busy", "far from the default"],
)
def test_what_is_not_near_its_timeout(version, frame):
    """No limit, no message, or a channel that is not idle."""
    assert "consumer-ack-timeout" not in ever([at(version, frame, 90)])


def test_before_4_0_the_default_timeout_is_assumed():
    """Those brokers do not report it; the finding says so."""

    def frame(t):
        picture = holding(timeout_ms=None)(t)
        return {**picture, "channels": (channel(messages_unacked=5, idle_since=WALL - 1000),)}

    finding = next(each for each in flat(at("3.10.8", frame, 30).findings) if each.rule == "consumer-ack-timeout")

    assert (1800.0, False) == (finding.facts["timeout_seconds"], finding.facts["timeout_reported"])


@pytest.mark.parametrize(("version", "offered"), [((3, 10), False), ((3, 12), True), ((4, 3), True)])
def test_a_timeout_per_queue_is_offered_where_the_broker_has_one(version, offered):
    """Policies accept `consumer-timeout` from 3.12 on. It helps a consumer that works, and none that hangs."""

    def offers(acked):
        report = render(only(look(film(holding(acked=acked), until=60))), Cluster(version))
        return any(
            "rabbitmqctl set_policy -p / queue-orders '^orders$'" in (each.command or "") for each in report.steps
        )

    assert offered is offers(50)
    assert not offers(0)


def test_a_stuck_consumer_is_the_cause():
    """The timeout is its consequence."""

    def frame(t):
        picture = holding()(t)
        full = stats(publish=int(200 + 5 * t), deliver=5)
        return {
            **picture,
            "queues": (queue(type="quorum", messages_ready=int(5 * t) + 1, messages_unacked=5, stats=full),),
            "consumers": (consumer(prefetch_count=5, consumer_timeout_ms=100_000),),
        }

    finding = only(look(film(frame, until=60)))

    assert "stuck-consumer" == finding.rule
    assert ["consumer-ack-timeout"] == [each.rule for each in finding.consequences if each.rule.startswith("consumer")]
    assert any(PEER in (step.command or "") for step in text(finding).steps)


def test_an_idle_time_that_the_broker_renews_is_not_the_time_that_messages_are_held():
    """It renews it once a minute; nothing of the queue was settled for longer."""

    def frame(t):
        picture = holding(timeout_ms=300_000)(t)
        (idle,) = picture["channels"]
        return {**picture, "channels": (replace(idle, idle_since=WALL + 60 * (t // 60)),)}

    finding = next(each for each in flat(look(film(frame, until=170)).findings) if each.rule == "consumer-ack-timeout")

    assert 165 <= finding.facts["held_seconds"] <= 170


@pytest.mark.parametrize(
    ("unacked", "active"), [(0, True), (5, False)], ids=["its queue counts none", "it waits to become active"]
)
def test_what_the_broker_has_taken_back_does_not_time_out(unacked, active):
    """The channel still counts it."""

    def frame(t):
        picture = holding()(t)
        (known,), (one,) = picture["queues"], picture["consumers"]
        return {
            **picture,
            "queues": (replace(known, messages_unacked=unacked),),
            "consumers": (replace(one, active=active),),
        }

    assert "consumer-ack-timeout" not in ever([look(film(frame, until=90))])


def working(*, held=600, pace=0.25, kind="quorum", timeout_ms=1_800_000, queues=("orders",)):
    """A consumer that always holds `held` messages and acknowledges `pace` of them a second."""

    def frame(t):
        acked = int(pace * t)
        counters = stats(publish=1000, deliver=held + acked, ack=acked)
        return {
            "queues": tuple(
                queue(name, type=kind, consumers=1, messages_ready=50, messages_unacked=held, stats=counters)
                for name in queues
            ),
            "consumers": tuple(consumer(name, prefetch_count=held, consumer_timeout_ms=timeout_ms) for name in queues),
            "channels": (channel(messages_unacked=held, stats=stats(deliver=held + acked, ack=acked)),),
            "connections": (connection(),),
        }

    return frame


def ahead(version, frame, until=180):
    """The finding for a consumer that works; None without one."""
    result = at(version, frame, until)
    return next((each for each in flat(result.findings) if each.rule == "consumer-ack-timeout"), None)


@pytest.mark.parametrize(
    ("version", "frame", "fits"),
    [
        ("4.3.6", working(), 225),
        ("4.0.5", working(kind="classic"), 225),
        ("3.10.8", working(kind="classic", timeout_ms=None), 225),
        ("4.3.6", working(held=40, pace=2.0, timeout_ms=10_000), 10),
    ],
    ids=["4.3 quorum", "4.0 classic", "3.10 default", "own timeout"],
)
def test_a_prefetch_that_takes_longer_than_the_timeout_is_a_warning(version, frame, fits):
    """The last of what a consumer holds waits past the timeout, though it acknowledges all the time."""
    finding = ahead(version, frame)

    assert ("warning", False) == (finding.severity, finding.facts["ended"])
    assert finding.facts["held_seconds"] >= finding.facts["timeout_seconds"]
    assert fits == pytest.approx(finding.facts["fitting_prefetch"], rel=0.05)
    report = render(finding, Cluster((4, 0)))
    assert "a message that comes now waits for" in report.summary
    assert any("Set the prefetch of 'billing' to" in step.text for step in report.steps)


def test_a_pace_from_few_acknowledgements_is_information():
    """Ten messages, and a job of two minutes: two acknowledgements are seen."""
    finding = ahead("4.0.5", working(held=10, pace=1 / 120, timeout_ms=600_000), until=270)

    assert ("info", 10) == (finding.severity, finding.facts["unacked"])
    assert "a warning once the pace is known better" in render(finding, Cluster((4, 0))).summary


@pytest.mark.parametrize(
    ("version", "frame", "until"),
    [
        ("4.3.6", working(pace=0.5), 180),
        ("4.3.6", working(kind="classic"), 180),
        ("4.3.6", working(), 90),
        ("4.3.6", working(queues=("orders", "bills")), 180),
        ("4.3.6", working(held=1, pace=0.0005), 180),
    ],
    ids=["quick enough", "no timeout", "not known yet", "several queues", "one at a time"],
)
def test_a_consumer_that_acknowledges_in_time(version, frame, until):
    """Or nobody can know."""
    assert ahead(version, frame, until) is None
