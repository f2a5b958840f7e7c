import pytest

from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.consumers.own import aside, found, only, urgent
from tests.unit.diagnosis.pictures import connection, film, look, queue, stats, told


def lonely(growth=5, name="orders", **fields):
    """A queue without consumers, to which so many messages a second are published."""

    def frame(t):
        counters = fields.get("counters", lambda t: {})(t)
        more = {key: value for key, value in fields.items() if key != "counters"}
        published = stats(**{"publish": int(100 + growth * t), **counters})
        return {"queues": (queue(name, consumers=0, messages_ready=int(100 + growth * t), stats=published, **more),)}

    return frame


def test_a_queue_that_grows_without_consumers_is_found_after_three_minutes():
    """The finding says since when, how many wait and how many came."""
    finding = only(look(film(lonely(), until=200)))

    assert ("no-consumer", "warning", "2027-01-15T08:00:00Z") == (finding.rule, finding.severity, finding.since)
    assert "1100 messages in queue 'orders' ('/')" in finding.summary
    assert "rabbitmqctl list_consumers -p / | grep -F -- orders" in told(finding)


def test_a_deployment_is_information_only():
    """Two minutes without a consumer is what a rolling restart takes; the finding says so."""
    assert [] == found(look(film(lonely(), until=10)))
    assert [("no-consumer", "info", "orders")] == found(look(film(lonely(), until=15)))

    finding = only(look(film(lonely(), until=120)))

    assert "info" == finding.severity
    assert "a deployment looks the same, a warning comes after 3 min" in finding.summary


def test_one_look_tells_of_it_at_once():
    """Two readings eight seconds apart: it was seen growing in both."""
    window = film(lonely(), until=8, every=8)

    assert [("no-consumer", "warning", "orders")] == found(look(window, thresholds=Thresholds.one_shot()))


def test_a_queue_that_stands_is_told_as_information_only():
    """Nothing comes and nobody takes: that is a fact, after ten minutes, and not an alarm."""
    window = film(lonely(growth=0), until=700)

    assert [("no-consumer", "info", "orders")] == found(look(window))
    assert [] == found(look(film(lonely(growth=0), until=500)))


@pytest.mark.parametrize("counter", ["get", "get_no_ack", "get_empty", "deliver_get"])
def test_a_polling_consumer_is_a_consumer(counter):
    """Who takes messages by basic.get has no consumer in the list."""
    frame = lonely(counters=lambda t: {counter: int(t)})

    assert [] == found(look(film(frame, until=400)))


@pytest.mark.parametrize(
    "fields",
    [
        {"arguments": {"x-message-ttl": 5000, "x-dead-letter-exchange": ""}},
        {"effective_policy": {"message-ttl": 5000, "dead-letter-exchange": "work"}},
        {"name": "orders.retry"},
        {"name": "shop.orders.dead"},
        {"type": "stream"},
        {"exclusive": True},
        {"name": "ackscope.probe.confirm.classic"},
    ],
    ids=["delay by arguments", "delay by policy", "retry", "dead letters", "stream", "private", "probe"],
)
def test_queues_without_consumers_on_purpose_are_left_alone(fields):
    """Delays, dead-letter stores, streams, private queues and the probes' own; for all but the last it is said why."""
    verdict = look(film(lonely(**fields), until=400))
    probe = fields.get("name", "").startswith("ackscope.probe")

    assert [] == found(verdict)
    assert (0 if probe else 1) == len([each for each in aside(verdict) if each[0] == "no-consumer"])


def test_a_name_that_only_resembles_a_dead_letter_store_is_judged():
    """A deadline is no dead letter."""
    window = film(lonely(name="deadlines"), until=400)

    assert [("no-consumer", "warning", "deadlines")] == found(look(window))


def test_a_dead_letter_target_is_known_by_its_source():
    """Whatever its name: another queue dead-letters to it by the default exchange."""

    def frame(t):
        source = queue("work", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "orders"})
        return {"queues": (*lonely()(t)["queues"], source)}

    assert [] == found(look(film(frame, until=400)))


def test_a_consumer_that_left_is_remembered():
    """While the window still holds it, the cause says that somebody was there."""

    def frame(t):
        if t < 30:
            return {"queues": (queue(messages_ready=1, stats=stats(publish=1)),)}
        return lonely()(t)

    finding = only(look(film(frame, until=300)))

    assert "its last consumer left" in finding.cause


def test_a_connection_without_channels_is_named():
    """The former consumer whose channel the broker closed keeps its connection."""

    def frame(t):
        return {**lonely()(t), "connections": (connection(channels=0, client_name="billing-7"),)}

    assert "billing-7" in told(only(look(film(frame, until=200))))


def test_a_restart_of_the_broker_begins_anew():
    """Counters that fell: what was seen before belongs to another life."""

    def frame(t):
        published = int(5000 + 5 * t) if t < 100 else int(5 * (t - 100))
        return {"queues": (queue(consumers=0, messages_ready=100 + int(t), stats=stats(publish=published)),)}

    assert [] == urgent(look(film(frame, until=250)))
    assert [("no-consumer", "warning", "orders")] == found(look(film(frame, until=300)))


def test_another_delay_for_one_queue_is_taken_from_its_override():
    """A queue that matters may warn sooner."""
    override = {"queues": "^orders$", "values": {"consumers": {"no_consumer_growing": "30s"}}}
    thresholds = Thresholds.model_validate({"overrides": [override]})

    assert [("no-consumer", "warning", "orders")] == found(look(film(lonely(), until=40), thresholds=thresholds))
    assert [] == urgent(look(film(lonely(name="others"), until=40), thresholds=thresholds))
