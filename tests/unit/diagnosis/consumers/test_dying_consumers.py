import pytest

from ackscope.snapshot import Overview
from tests.unit.diagnosis.consumers.results import ever, found, urgent
from tests.unit.diagnosis.pictures import channel, connection, consumer, film, look, queue, stats, text


def dying(*, lives=5.0, away=10.0, prefetch=8, acked=0, automatic=False, kind="classic", rate=2.0, name="resize", **of):
    """A consumer that takes `prefetch` messages each time it comes, acknowledges some, and ends."""

    def frame(t):
        rounds, inside = divmod(t, lives + away)
        times, here = int(rounds) + 1, inside < lives
        published, settled = int(40 + rate * t), acked * int(rounds)
        delivered = (prefetch * times) if not automatic else published - (0 if here else int(rate * (inside - lives)))
        held = prefetch if here and not automatic else 0
        again = max(0, delivered - settled - prefetch)
        counters = (
            stats(publish=published, deliver_no_ack=delivered)
            if automatic
            else stats(publish=published, deliver=delivered, redeliver=again, ack=settled)
        )
        waiting = published - (delivered if automatic else settled + held)
        subscribed = (consumer(name, tag=f"c{times}", prefetch_count=prefetch, ack_required=not automatic),)
        return {
            "queues": (
                queue(
                    name, type=kind, consumers=int(here), messages_ready=max(0, waiting), messages_unacked=held,
                    stats=counters, **of,
                ),
            ),
            "consumers": subscribed if here else (),
            "channels": (channel(messages_unacked=held, stats=stats(deliver=prefetch)),) if here else (),
            "connections": (connection(client_name="resizer"),) if here else (),
        }  # fmt: skip

    return frame


@pytest.mark.parametrize("pause", [{}, {"lives": 5.0, "away": 5.0}, {"lives": 5.0, "away": 20.0}])
@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_a_consumer_that_dies_on_the_same_messages_stops_the_queue(pause, kind):
    """However long the pauses between its starts are."""
    result = look(film(dying(kind=kind, **pause), until=100))
    finding = next(each for each in result.findings if each.rule == "consumer-flapping")

    assert ("critical", "resize") == (finding.severity, finding.subject.name)
    assert finding.facts["rounds"] >= 3
    assert "makes no progress" in text(finding).summary
    assert [("consumer-flapping", "critical", "resize")] == urgent(result)


def test_nothing_is_deleted_before_its_cause_is_known():
    """A handler that is longer than two heartbeats dies on good messages: that comes before the advice to reject."""
    result = look(film(dying(), until=100))
    steps = [each.text for each in text(next(iter(result.findings))).steps]
    (deletes,) = [place for place, words in enumerate(steps) if "That deletes it" in words]

    assert deletes > max(place for place, words in enumerate(steps) if place != deletes and "heartbeat" in words)


@pytest.mark.parametrize("until", range(130, 165, 5))
def test_the_consumer_is_named_also_when_it_has_just_come_back(until):
    """With pauses as long as consumers are remembered."""
    result = look(film(dying(lives=10.0, away=20.0), until=until))
    finding = next(each for each in result.findings if each.rule == "consumer-flapping")

    assert (["resizer"], ("resizer",)) == (finding.facts["clients"], finding.involved.clients)


def test_a_deployment_that_fails_once_is_no_warning():
    """It comes back twice at most."""
    assert [] == urgent(look(film(dying(away=20.0), until=35)))


def test_a_consumer_that_comes_to_work_and_acknowledges_is_making_progress():
    """A job that runs every 15 s."""
    results = [look(film(dying(acked=8, prefetch=8), until=until)) for until in (40, 70, 100)]

    assert [] == [
        each
        for result in results
        for each in result.findings
        if each.rule == "consumer-flapping" and each.facts["rounds"]
    ]


def test_what_a_client_with_automatic_acknowledgement_held_is_lost():
    """Each time that it ends; one look at its property would be information."""
    result = look(film(dying(automatic=True, rate=30.0, name="points"), until=100))
    finding = next(each for each in result.findings if each.rule == "auto-ack-consumer")

    assert ("warning", "points", "queue") == (finding.severity, finding.subject.name, finding.subject.kind)
    assert finding.facts["ends"] >= 3
    assert "probably loses messages" in text(finding).summary
    assert "consumer-flapping" not in {rule for rule, _, _ in urgent(result)}


def test_a_lasting_consumer_with_automatic_acknowledgement_stays_information():
    """Nothing was lost yet."""
    frame = dying(automatic=True, lives=1000.0, rate=30.0)

    assert [("auto-ack-consumer", "info", "/")] == found(look(film(frame, until=100)))


def test_messages_that_reach_the_delivery_limit_by_disconnects_are_reported_so():
    """The advice is a small prefetch, because the others in it are counted too."""

    def frame(t):
        picture = dying(kind="quorum", prefetch=30, arguments={"x-delivery-limit": 3})(t)
        (waiting,) = picture["queues"]
        lost = 30 * int(t / 45)
        ready = max(0, (waiting.messages_ready or 0) + 60 - lost)
        counters = stats(
            publish=(waiting.stats.publish or 0) + 60, deliver=waiting.stats.deliver, redeliver=int(2.0 * t)
        )
        fields = {"arguments": waiting.arguments, "messages_unacked": waiting.messages_unacked}
        return {
            **picture,
            "queues": (
                queue(
                    "resize", type="quorum", consumers=waiting.consumers, messages_ready=ready, stats=counters, **fields
                ),
            ),
        }

    finding = next(each for each in look(film(frame, until=180)).findings if each.rule == "poison-drop")

    assert finding.facts["disconnects"]
    assert "a prefetch of 1" in " ".join(step.text for step in text(finding).steps)
    assert "consumer-flapping" in ever([look(film(frame, until=180))])


def test_a_check_that_puts_messages_back_until_the_delivery_limit_deletes_them_is_reported_so():
    """Three messages are looked at every two seconds; each is gone after its fifth return. Nobody consumes."""

    def frame(t):
        published, taken = 60 + int(t), int(1.5 * t)
        counters = stats(publish=published, get=taken, deliver_get=taken, redeliver=max(0, taken - taken // 6))
        ready = published - taken // 6
        kept = queue("claims", type="quorum", consumers=0, messages_ready=ready, stats=counters, delivery_limit=5)
        return {"queues": (kept,), "consumers": (), "channels": (), "connections": ()}

    finding = next(each for each in look(film(frame, until=180)).findings if each.rule == "poison-drop")

    assert finding.facts["polled"]
    assert "no consumer" in text(finding).cause


@pytest.mark.parametrize("polls", [True, False])
def test_polling_without_an_acknowledgement_is_reported_as_such(polls):
    """Each run of a script takes three messages and ends; no consumer ever subscribed."""

    def frame(t):
        taken, published = int(2 * t), int(2 * t) + 40
        kind = {"get" if polls else "deliver": taken}
        counters = stats(publish=published, redeliver=max(0, taken - 3), deliver_get=taken, **kind)
        churn = {"connection_created": int(t / 2), "connection_closed": int(t / 2)}
        return {
            "overview": Overview(
                rabbitmq_version="4.3.6", statistics=True, stats=stats(publish=published), churn=churn
            ),
            "queues": (queue("coupons", consumers=0, messages_ready=published, stats=counters),),
            "consumers": (),
            "channels": (),
            "connections": (),
        }

    finding = next(each for each in look(film(frame, until=60)).findings if each.rule == "consumer-flapping")

    assert polls == ("polled (basic.get)" in text(finding).summary)
    assert ("warning" if polls else "critical") == finding.severity
