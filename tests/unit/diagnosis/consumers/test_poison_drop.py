import pytest

from ackscope.findings import flat
from tests.unit.diagnosis.consumers.results import ever, found, only
from tests.unit.diagnosis.pictures import channel, connection, consumer, film, look, queue, stats, text


def dropping(*, limit=3, lost=2.0, comes=2.0, again=None, begins=20.0, version_limit=None, initial=0, **fields):
    """Return a film in which this many messages per second are published and deleted at the delivery limit."""

    def frame(t):
        seconds = max(0.0, t - begins)
        published, dropped = int(comes * seconds) + initial, int(lost * seconds)
        redelivered = int((again if again is not None else lost * limit) * seconds)
        counters = stats(publish=published, redeliver=redelivered, deliver=dropped + redelivered)
        settings = {"type": "quorum", "arguments": {"x-delivery-limit": limit}, **fields}
        return {
            "queues": (
                queue(messages=published - dropped, messages_ready=published - dropped, stats=counters, **settings),
            ),
            "consumers": (consumer(),),
            "channels": (channel(),),
            "connections": (connection(),),
        }

    return frame


def of_rule(result):
    """Findings of this rule."""
    return [each for each in found(result) if each[0] == "poison-drop"]


def test_messages_that_disappear_at_the_delivery_limit_are_lost():
    """It is critical from the start; the finding has how many, and how to stop it."""
    finding = only(look(film(dropping(), until=60)))

    assert ("poison-drop", "critical", "orders") == (finding.rule, finding.severity, finding.subject.name)
    assert (80, 240, 3) == tuple(finding.facts[key] for key in ("dropped", "redelivered", "delivery_limit"))
    assert (
        "rabbitmqctl set_policy -p / queue-orders '^orders$' "
        """'{"dead-letter-exchange": "", "dead-letter-routing-key": "orders.dead-letters"}' """
        "--apply-to queues --priority 100"
    ) in [step.command for step in text(finding).steps]
    assert "requeue-loop" not in {each for each, _, _ in found(look(film(dropping(), until=60)))}


def test_the_delivery_limit_that_the_broker_reports_counts():
    """From 4.0 on it reports it; 20 unless set."""
    frame = dropping(limit=20, arguments={}, delivery_limit=20)

    assert [("poison-drop", "critical", "orders")] == of_rule(look(film(frame, until=90)))


@pytest.mark.parametrize(
    "frame",
    [
        dropping(type="classic"),
        dropping(arguments={"x-delivery-limit": 3, "x-dead-letter-exchange": "dlx"}),
        dropping(arguments={"x-delivery-limit": 3, "x-message-ttl": 1000}, again=3.0),
        dropping(arguments={"x-delivery-limit": 3, "x-max-length": 10}, again=3.0),
        dropping(arguments={}, delivery_limit=None),
        dropping(arguments={}, delivery_limit=-1),
        dropping(again=0.5),
        dropping(lost=0.0, again=50.0),
    ],
    ids=["classic", "dead letters", "TTL", "length", "no limit", "limit off", "purged", "circulates"],
)
def test_what_is_no_poison_drop(frame):
    """Nothing is lost, or something else removes the messages."""
    results = [look(film(frame, until=until)) for until in (40, 120)]

    assert "poison-drop" not in ever(results)


@pytest.mark.parametrize("more", [{"x-message-ttl": 1000}, {"x-max-length": 10}, {"x-max-length-bytes": 10_000}])
@pytest.mark.parametrize("limit", [0, 3, 20])
def test_a_queue_with_a_ttl_or_a_length_limit_deletes_at_its_delivery_limit_too(more, limit):
    """No other rule reports these messages: they were delivered, so they neither expired nor were dropped."""
    result = look(film(dropping(limit=limit, arguments={"x-delivery-limit": limit, **more}), until=60))

    assert [("poison-drop", "critical", "orders")] == of_rule(result)


def test_counters_of_different_moments_are_no_loss():
    """The counter of publishes is ahead of the queue length by up to 10 s."""

    def frame(t):
        counters = stats(publish=int(20 * t), redeliver=int(60 * t), deliver=int(80 * t), ack=int(20 * max(0, t - 5)))
        settings = {"type": "quorum", "delivery_limit": 3}
        return {"queues": (queue(messages=0, stats=counters, **settings),)}

    results = [look(film(frame, until=until)) for until in (20, 60, 120)]

    assert "poison-drop" not in ever(results)


def mixed(*, limit=3, poison=2.0, rejected=2.0, retried=0.0, name="orders"):
    """A quorum queue whose consumers reject some messages, and return others until the delivery limit deletes them."""

    def frame(t):
        dropped, gone, again = int(poison * t), int(rejected * t), int(poison * t) * limit + int(retried * t)
        counters = stats(publish=dropped + gone + 3, redeliver=again, deliver=dropped + gone + again)
        return {
            "queues": (
                queue(name, messages_ready=3, stats=counters, type="quorum", arguments={"x-delivery-limit": limit}),
            ),
            "consumers": (consumer(name),),
            "channels": (channel(),),
            "connections": (connection(),),
        }

    return frame


@pytest.mark.parametrize("limit", [1, 2, 3, 20])
@pytest.mark.parametrize(("poison", "rejected"), [(2.0, 2.0), (5.0, 1.0), (4.0, 5.0)])
def test_rejected_messages_are_not_counted_as_dropped_at_the_limit(limit, poison, rejected):
    """Each rule counts its own, by the redeliveries that a message needs until the limit."""
    result = look(film(mixed(limit=limit, poison=poison, rejected=rejected), until=60))
    facts = {each.rule: each.facts for each in flat(result.findings)}

    assert 60 * poison == pytest.approx(facts["poison-drop"]["dropped"], rel=0.15, abs=3)
    assert 60 * rejected == pytest.approx(facts["reject-loss"]["lost"], rel=0.1, abs=3)


def test_messages_that_are_rejected_after_a_retry_are_rejected():
    """A few redeliveries prove no delivery limit."""
    result = look(film(mixed(limit=5, poison=0.0, rejected=4.0, retried=4.0), until=60))
    rules = {each.rule for each in flat(result.findings)}

    assert "poison-drop" not in rules
    assert "reject-loss" in rules
