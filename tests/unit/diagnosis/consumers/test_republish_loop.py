import math
from dataclasses import replace

import pytest

from ackscope.records import ProbeStep, Quantiles
from ackscope.second_source import ChannelPublishes, ExchangePublishes
from ackscope.snapshot import Overview, Part
from ackscope.topology import Binding, Bindings, Exchange
from tests.unit.diagnosis.consumers.films import trip
from tests.unit.diagnosis.consumers.results import found, only, urgent
from tests.unit.diagnosis.pictures import (
    NODE,
    WALL,
    channel,
    connection,
    consumer,
    film,
    full_text,
    look,
    moment,
    queue,
    stats,
    text,
)

SHOP = "10.0.0.9:51000 -> 10.0.0.1:5672"


def circling(*, again=20.0, comes=0.0, held=12, elsewhere=0.0, opened=0.0, unseen=0.0, own="jobs", dead=0.0):
    """A consumer that publishes `again` messages a second to its queue, and others that publish `comes` to it.

    `elsewhere`: messages a second that others publish to another queue; `dead`: dead letters a second that arrive;
    `unseen`: messages a second that the `opened` channels publish, which end before they are in a reading.
    """

    def frame(t):
        published, acked = int((again + comes) * t), int((again + comes + dead) * t)
        counters = stats(publish=published + held, deliver=acked + held, ack=acked)
        mine = stats(publish=int(again * t), deliver=acked, ack=acked)
        theirs = stats(publish=int((comes + elsewhere) * t))
        churn = {"channel_created": int(opened * t), "channel_closed": int(opened * t)}
        total = stats(publish=round(1000 + (again + comes + elsewhere + unseen) * t))
        return {
            "overview": Overview(
                rabbitmq_version="4.3.6", statistics=True, rates_mode="basic", stats=total, churn=churn
            ),
            "queues": (queue(own, messages_ready=held - 2, messages_unacked=2, stats=counters),),
            "consumers": (consumer(own),),
            "channels": (
                channel(messages_unacked=2, stats=mine),
                channel(f"{SHOP} (1)", consumer_count=0, stats=theirs),
            ),
            "connections": (connection(client_name="sender"), connection(SHOP, client_name="shop")),
        }

    return frame


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"again": 300.0, "held": 40},
        {"comes": 0.5},
        {"again": 60.0, "comes": 5.0},
        {"elsewhere": 3.0, "again": 90.0},
        {"opened": 4.0, "unseen": 1.0},
    ],
    ids=["alone", "quick", "some come", "many come", "others publish elsewhere", "channels too short to be seen"],
)
def test_a_consumer_that_publishes_its_messages_again_is_found(fields):
    """Nothing is redelivered, and all is acknowledged: the publishes of all others do not account for what arrives."""
    finding = next(each for each in look(film(circling(**fields), until=70)).findings if each.rule == "republish-loop")

    assert ("warning", "jobs") == (finding.severity, finding.subject.name)
    assert ["sender"] == finding.facts["clients"]
    assert finding.facts["again"] <= fields.get("again", 20.0) * finding.facts["over_seconds"]
    assert "circulate" in text(finding).summary


def test_it_is_information_at_first():
    """A job may publish its next step for some time."""
    assert [("republish-loop", "info", "jobs")] == found(look(film(circling(), until=25)))
    assert [] == urgent(look(film(circling(), until=40)))


@pytest.mark.parametrize(
    "fields",
    [
        {"again": 20.0, "comes": 20.0},
        {"again": 0.0, "comes": 40.0},
        {"again": 1.0, "held": 2},
        {"held": 2000},
        {"opened": 4.0, "unseen": 20.0},
        {"elsewhere": 40.0},
        {"again": 0.0, "dead": 30.0},
    ],
    ids=[
        "one more step each", "publishes of others", "a timer", "a long queue", "channels too short to be seen publish",
        "others may publish to it", "dead letters",
    ],
)  # fmt: skip
def test_what_has_another_explanation_is_left_alone(fields):
    """A rule that cannot prove it says nothing."""
    assert "republish-loop" not in {rule for rule, _, _ in found(look(film(circling(**fields), until=70)))}


def counted(frame, exchange, *, unread=None):
    """The same, with what the endpoint counts: the consumer uses the default exchange, the others one of this name."""

    def process(number, name, published):
        return ChannelPublishes(
            node=NODE, process=f"<0.{number}.0>", vhost="/", exchange=name, published=published, confirmed=0,
            returned=0, dropped=0,
        )  # fmt: skip

    def with_rows(t):
        picture, at = frame(t), t - t % 10 + 0.5
        mine, theirs = (each.stats.publish for each in frame(at)["channels"])
        rows = (process(1, "", mine), process(2, exchange, theirs))
        behind = tuple(replace(each, node=NODE) for each in frame(max(0.0, t - 3))["channels"])
        value = ExchangePublishes(nodes=(NODE,), unread=unread or {}, seconds=0.1, channels=rows)
        alternate = {"spare": {"alternate-exchange": "orders"}}
        others = tuple(
            Exchange(vhost="/", name=name, type="topic", arguments=alternate.get(name, {}))
            for name in ("", "prices", "orders", "spare")
        )
        bound = Binding(vhost="/", source="orders", destination="jobs", destination_type="queue", routing_key="#")
        return {
            **picture,
            "channels": behind,
            "exchanges": others,
            "bindings": Bindings(listed=(bound,)),
            "exchange_publishes": Part(value=value, at=moment(at), seconds=0.1),
        }

    return with_rows


def test_what_others_publish_to_another_exchange_does_not_hide_it():
    """As many as the consumer publishes again; only the endpoints say where to."""
    frame = circling(again=20.0, elsewhere=43.0)

    assert "republish-loop" not in {rule for rule, _, _ in found(look(film(frame, until=70)))}
    verdict = look(film(counted(frame, "prices"), until=70))
    finding = next(each for each in verdict.findings if each.rule == "republish-loop")

    assert (["sender"], 0) == (finding.facts["clients"], finding.facts["by_others"])
    assert "rabbitmq_detailed_channel_messages_published_total" in full_text(finding)


@pytest.mark.parametrize("exchange", ["orders", "", "spare", "gone"])
def test_what_others_publish_to_an_exchange_that_may_lead_there_counts(exchange):
    """Bound to the queue, the default one, one with an alternate exchange, and one that is not known."""
    verdict = look(film(counted(circling(again=20.0, elsewhere=43.0), exchange), until=70))

    assert "republish-loop" not in {rule for rule, _, _ in found(verdict)}


def test_the_channels_of_our_own_probes_are_not_those_of_others():
    """The redelivery probe closes one every five seconds, and opens another."""
    closes = ProbeStep(attempts=12, seconds=Quantiles(count=12, p50=0.01, p90=0.01, p99=0.01, max=0.01))
    probe = replace(trip(0.001), probe="redelivery", stream="classic", at=WALL + 70, steps={"channel-close": closes})
    window = film(circling(opened=0.25, unseen=20.0), until=70)

    assert "republish-loop" not in {rule for rule, _, _ in found(look(window))}
    assert "republish-loop" in {rule for rule, _, _ in found(look(window, outcomes=(probe,)))}


def test_a_stage_that_forwards_to_another_queue_is_left_alone():
    """It publishes as many messages as it acknowledges, and so do the publishers of its queue."""

    def frame(t):
        picture = circling(again=0.0, comes=30.0)(t)
        first, second = picture["channels"]
        forwards = replace(first, stats=replace(first.stats, publish=int(30 * t)))
        return {**picture, "channels": (forwards, second)}

    assert [] == found(look(film(frame, until=70)))


@pytest.mark.parametrize("rate", [40.0, 300.0])
def test_what_is_published_in_another_vhost_says_nothing_of_a_stage_that_forwards(rate):
    """The endpoints count it too, at an exchange that leads to no queue of this one."""
    far = "10.0.0.8:52000 -> 10.0.0.1:5672"

    def frame(t):
        picture = circling(again=0.0, comes=30.0)(t)
        first, second = picture["channels"]
        forwards = replace(first, stats=replace(first.stats, publish=int(30 * t)))
        foreign = channel(f"{far} (1)", vhost="far", consumer_count=0, stats=stats(publish=int(rate * t)))
        connections = (*picture["connections"], connection(far, vhost="far", client_name="far"))
        return {**picture, "channels": (forwards, second, foreign), "connections": connections}

    def with_rows(t):
        near = counted(lambda at: {**frame(at), "channels": frame(at)["channels"][:2]}, "orders")(t)
        at = near["exchange_publishes"].at.mono - moment(0).mono
        row = replace(
            near["exchange_publishes"].value.channels[1],
            process="<0.3.0>",
            vhost="far",
            exchange="news",
            published=int(rate * at),
        )
        rows = (*near["exchange_publishes"].value.channels, row)
        value = replace(near["exchange_publishes"].value, channels=rows)
        far_channel = replace(frame(max(0.0, t - 3))["channels"][2], node=NODE)
        return {
            **near,
            "channels": (*near["channels"], far_channel),
            "exchanges": (*near["exchanges"], Exchange(vhost="far", name="news", type="topic")),
            "exchange_publishes": replace(near["exchange_publishes"], value=value),
        }

    assert [] == found(look(film(with_rows, until=70)))


def test_the_finding_never_claims_more_than_its_own_clients_published():
    """The publishes of a client that shares the vhost are not theirs."""
    finding = only(look(film(circling(again=50.0), until=70)))

    assert finding.facts["again"] <= finding.facts["published"] - finding.facts["by_others"]


def several(*, names=("jobs", "prices"), held=12, comes=0.0, rate=18.0, exchanged=True, wave=0, split=1, **fields):
    """Applications that each consume one queue and publish to the next one, and others that publish to the first.

    `exchanged`: the last one publishes to the first queue, too; `split`: messages that the first makes of each.
    """
    peers = [f"10.0.0.{7 + place}:50001 -> 10.0.0.1:5672" for place in range(len(names))]

    def frame(t):
        inside = held + int(wave * (1 + math.sin(t)))
        flow = int(rate * t)
        last = len(names) - 1
        queues, consumers, channels, connections = [], [], [], []
        for place, (name, peer) in enumerate(zip(names, peers, strict=True)):
            factor = 1 if place == 0 else split
            counters = stats(publish=factor * flow + held, deliver=factor * flow + inside, ack=factor * flow)
            there = inside // len(names) + (inside % len(names) if place == 0 else 0)
            queues.append(queue(name, messages_ready=there, stats=counters, **fields))
            consumers.append(consumer(name, channel_name=f"{peer} (1)", connection_name=peer))
            sent = (split if place == 0 else 1) * flow if place < last or exchanged else 0
            mine = stats(publish=sent, deliver=factor * flow, ack=factor * flow)
            channels.append(channel(f"{peer} (1)", connection_name=peer, stats=mine))
            connections.append(connection(peer, client_name=f"{name}-service"))
        theirs = stats(publish=int(comes * t))
        return {
            "overview": circling()(t)["overview"],
            "queues": tuple(queues),
            "consumers": tuple(consumers),
            "channels": (*channels, channel(f"{SHOP} (1)", consumer_count=0, stats=theirs)),
            "connections": (*connections, connection(SHOP, client_name="shop")),
        }

    return frame


@pytest.mark.parametrize("names", [("jobs", "prices"), ("a", "b", "c")])
def test_queues_whose_consumers_feed_each_other_are_one_finding(names):
    """Their messages stay as many, and nobody else publishes."""
    finding = only(look(film(several(names=names), until=70)))

    assert ("republish-loop", "warning") == (finding.rule, finding.severity)
    assert set(names) == {finding.subject.name, *finding.facts["others"]}
    assert [f"{name}-service" for name in names] == sorted(finding.facts["clients"])
    assert "Messages circulate between" in text(finding).summary
    assert "their number does not change" in text(finding).cause


@pytest.mark.parametrize(
    "fields",
    [
        {"exchanged": False, "comes": 18.0},
        {"names": ("a", "b", "c", "d", "e"), "exchanged": False, "comes": 18.0},
        {"exchanged": False, "comes": 18.0, "split": 20},
        {"wave": 12},
        {"held": 0},
        {"exclusive": True},
        {"comes": 18.0},
    ],
    ids=["a pipeline", "a long pipeline", "a splitter", "requests", "empty", "reply queues", "others publish as much"],
)
def test_queues_that_may_be_fed_by_others_are_left_alone(fields):
    """A pipeline hands on what comes; requests become more and fewer."""
    assert "republish-loop" not in {rule for rule, _, _ in found(look(film(several(**fields), until=70)))}


def through_a_delay(*, good=0.5, bad=25, wait=4.0):
    """A consumer that copies what fails to a delay queue, which leads back, and acknowledges it."""

    def frame(t):
        copies, new = int(bad * t / wait), int(good * t)
        picture = circling(again=0.0, comes=good)(t)
        counters = stats(publish=new + bad, deliver=copies + new, ack=copies + new)
        leads_back = {
            "x-message-ttl": int(wait * 1000),
            "x-dead-letter-exchange": "",
            "x-dead-letter-routing-key": "jobs",
        }
        later = queue("jobs.later", arguments=leads_back, consumers=0, messages_ready=bad, stats=stats(publish=copies))
        mine = stats(publish=copies, deliver=copies + new, ack=copies + new)
        first, second = picture["channels"]
        return {
            **picture,
            "queues": (queue("jobs", stats=counters), later),
            "channels": (replace(first, stats=mine, messages_unacked=0), second),
        }

    return frame


def test_copies_that_wait_in_a_delay_queue_circulate_as_well():
    """Twenty-five messages every four seconds, without end."""
    results = look(film(through_a_delay(), until=90))
    finding = next(each for each in results.findings if each.rule == "republish-loop")

    assert ("warning", "jobs", ["jobs.later"]) == (finding.severity, finding.subject.name, finding.facts["others"])
    assert "nothing limits the attempts" in text(finding).cause


def test_dead_letters_that_are_published_to_their_queue_again_circulate():
    """One application rejects them, another one puts them back."""
    rejecting = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "jobs"}

    def frame(t):
        picture = through_a_delay(good=0.0, bad=12, wait=1.0)(t)
        jobs, later = picture["queues"]
        turns = int(12 * t)
        peer = "10.0.0.8:50001 -> 10.0.0.1:5672"
        work = replace(later, name="work", arguments=rejecting, consumers=1, messages_ready=4, messages=4)
        return {
            **picture,
            "queues": (
                replace(jobs, messages_ready=8, messages=8),
                replace(work, stats=stats(publish=turns, deliver=turns)),
            ),
            "consumers": (*picture["consumers"], consumer("work", channel_name=f"{peer} (1)", connection_name=peer)),
            "channels": (*picture["channels"], channel(f"{peer} (1)", stats=stats(deliver=turns))),
            "connections": (*picture["connections"], connection(peer, client_name="worker")),
        }

    finding = next(each for each in look(film(frame, until=90)).findings if each.rule == "republish-loop")

    assert ("warning", "jobs", ["work"]) == (finding.severity, finding.subject.name, finding.facts["others"])
    assert "reject these messages" in text(finding).cause
    assert (["sender"], ("sender", "worker")) == (finding.facts["clients"], tuple(sorted(finding.involved.clients)))


def test_a_retry_after_a_delay_that_succeeds_is_left_alone():
    """One message in five waits once."""
    retry = through_a_delay(good=20.0, bad=16, wait=4.0)

    assert "republish-loop" not in {rule for rule, _, _ in found(look(film(retry, until=90)))}


HEALER, CRON = "10.0.0.5:52000 -> 10.0.0.1:5672", "10.0.0.6:53000 -> 10.0.0.1:5672"


def healed(*, turns=40.0, good=9.0, new=10.0, held=60, work="work", bin_="orders", sent=None, polled=None, **other):
    """Dead letters that one client polls and publishes to their queue again, `turns` a second, among good messages.

    `sent`: messages a second that this client publishes; `polled`: those that it polls; `again`: those that come to the
    work queue again; `dead`: dead letters a second; `cron`: messages a second that another client polls elsewhere;
    `results`: messages a second that the worker publishes; `how`: counters of the client.
    """
    again, dead, cron = (
        other.get(each, default) for each, default in (("again", turns), ("dead", turns), ("cron", 0.0))
    )
    into = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": bin_}
    how = other.get("how", ("get", "ack"))

    def frame(t):
        came, rejected, gone = int(new * t) + int(again * t), int(dead * t), int(turns * t)
        left = held + rejected - gone
        counters = stats(publish=came, deliver=int(good * t) + rejected, ack=int(good * t))
        fetched = dict.fromkeys(how, gone)
        mine = dict.fromkeys(how, gone if polled is None else int(polled * t))
        elsewhere = dict.fromkeys(("get", "ack"), int(cron * t))
        return {
            "overview": circling()(t)["overview"],
            "queues": (
                queue(work, arguments=into, stats=counters),
                queue(bin_, consumers=0, messages_ready=left, stats=stats(**fetched)),
                queue("other", consumers=0, stats=stats(publish=int(cron * t), **elsewhere)),
            ),
            "consumers": (consumer(work),),
            "channels": (
                channel(
                    stats=stats(deliver=counters.deliver, ack=counters.ack, publish=int(other.get("results", 0.0) * t))
                ),
                channel(f"{SHOP} (1)", consumer_count=0, stats=stats(publish=int(new * t))),
                channel(
                    f"{HEALER} (1)",
                    consumer_count=0,
                    stats=stats(publish=int((turns if sent is None else sent) * t), **mine),
                ),
                channel(f"{CRON} (1)", consumer_count=0, stats=stats(**elsewhere)),
            ),
            "connections": (
                connection(client_name="worker"),
                connection(SHOP, client_name="shop"),
                connection(HEALER, client_name="healer"),
                connection(CRON, client_name="cron"),
            ),
        }

    return frame


def loops(window):
    """The findings of this rule."""
    return [each for each in look(window).findings if each.rule == "republish-loop"]


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"turns": 600.0, "good": 30.0, "new": 31.0, "held": 400, "work": "bestellungen", "bin_": "later"},
        {"good": 0.0, "new": 0.0, "turns": 3.0, "held": 9},
        {"how": ("get_no_ack",)},
        {"cron": 12.0},
        {"results": 3.0},
    ],
    ids=[
        "among good ones",
        "quick",
        "alone",
        "without acknowledgement",
        "another client polls",
        "the worker publishes",
    ],
)
def test_dead_letters_that_are_polled_and_published_again_circulate(fields):
    """The client that takes them is no consumer."""
    (finding,) = loops(film(healed(**fields), until=120))
    made = text(finding)

    assert ("warning", fields.get("bin_", "orders")) == (finding.severity, finding.subject.name)
    assert ["healer"] == finding.facts["clients"]
    assert ("healer", HEALER) == (finding.involved.clients[0], finding.involved.connections[0])
    assert [fields.get("work", "work")] == finding.facts["others"]
    assert "reject these messages" in made.cause
    assert any("stop 'healer' alone" in step.text for step in made.steps)


def test_a_client_is_known_although_it_was_quicker_before_its_first_reading():
    """Queues are remembered for longer than channels."""
    window = film(lambda t: healed()(2 * min(t, 94.0) + max(0.0, t - 94.0)), until=120)

    assert [["healer"]] == [each.facts["clients"] for each in loops(window)]


def test_one_slow_interval_does_not_end_a_loop():
    """The broker refreshes its counters every 5 s, and now and then late."""
    window = film(lambda t: healed()(t - min(4.0, max(0.0, t - 60.0))), until=100)

    assert ["warning"] == [each.severity for each in loops(window)]


def test_polled_dead_letters_are_information_at_first():
    """As for consumers."""
    assert ["info"] == [each.severity for each in loops(film(healed(), until=30))]


def test_the_growth_of_their_queue_is_a_consequence():
    """More and more messages circulate."""
    results = look(film(healed(dead=41.0), until=120))

    assert "dlq-filling" not in {each.rule for each in results.findings}


@pytest.mark.parametrize(
    "fields",
    [
        {"dead": 0.0, "held": 6000},
        {"turns": 5.0, "good": 10.0},
        {"turns": 10.0, "good": 10.0},
        {"turns": 20.0, "good": 10.0},
        {"again": 0.0},
        {"again": 0.0, "new": 50.0, "good": 10.0},
        {"sent": 0.0},
        {"polled": 0.0},
        {"cron": 40.0, "polled": 0.0, "sent": 0.0},
        {"again": 30.0, "results": 30.0},
        {"turns": 1.0, "good": 0.0, "new": 0.0, "held": 3},
        {"turns": 2.7, "again": 2.0, "good": 9.3, "held": 8},
    ],
    ids=[
        "moved back once", "half succeed at the second attempt", "all succeed at the second attempt",
        "all succeed at the third attempt", "archived", "archived by a busy client", "another client publishes",
        "the client is not known", "another client polls as much", "the worker publishes copies", "slow",
        "given up after three attempts",
    ],
)  # fmt: skip
def test_dead_letters_that_may_end_are_left_alone(fields):
    """Or nobody is proven to publish them again."""
    assert [] == loops(film(healed(**fields), until=120))
