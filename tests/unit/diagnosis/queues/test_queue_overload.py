import pytest

from ackscope.findings import Severity, flat
from diagnosis.brief import diagnose_briefly
from tests.unit.diagnosis.pictures import PEER, consumer, film, look, queue, stats, text
from tests.unit.diagnosis.queues.films import of, one

RULE = "queue-overload"
SURGE = 40.0


def busy(t, *, before=8.0, now=30.0, consumed=8.0, consumes=10.0, **fields):
    """A queue whose consumers keep up until second 40, when more is published."""
    late = max(0.0, t - SURGE)
    published, acked = before * min(t, SURGE) + now * late, consumed * min(t, SURGE) + consumes * late
    counters = stats(publish=int(100 + published), ack=int(acked), deliver=int(acked) + 20)
    made = {"messages_ready": int(max(0.0, published - acked)), "messages_unacked": 20, "stats": counters, **fields}
    return {"queues": (queue(**made),), "consumers": (consumer(prefetch_count=20),)}


def shot(until, **fields):
    """The result after this many seconds."""
    return look(film(lambda t: busy(t, **fields), until=until))


def test_a_surge_is_information_first_and_a_warning_after_three_minutes():
    """A burst looks the same."""
    assert [] == of(RULE, shot(45))
    assert [("info", "orders")] == of(RULE, shot(65))
    assert [("warning", "orders")] == of(RULE, shot(260))


def test_a_surge_has_the_rates_before_and_after():
    """The load changed, the consumers did not."""
    facts = one(RULE, shot(65)).facts
    rates = [round(facts[key], 1) for key in ("publish_rate_before", "publish_rate", "consume_rate")]

    assert ("surge", [8.0, 26.3, 9.7]) == (facts["reason"], rates)


@pytest.mark.parametrize("started", [2.0, 3.0, 12.0])
def test_publishers_that_have_just_started_are_no_surge(started):
    """The first reading has no counters, and the mean of the next interval contains the time before the start."""

    def frame(t):
        ran = max(0.0, t - started)
        left = 2 * max(0.0, ran - 4)
        counters = (
            stats(publish=int(10 * ran), ack=int(10 * ran - left), deliver=int(10 * ran - left)) if ran else stats()
        )
        there = queue(messages_ready=int(left), messages_unacked=5, stats=counters)
        return {"queues": (there,), "consumers": (consumer(prefetch_count=5),)}

    verdicts = [look(film(frame, until=until)) for until in (40, 60, 90)]

    assert "surge" not in [each.facts.get("reason") for verdict in verdicts for each in flat(verdict.findings)]


def test_it_says_how_many_consumers_keep_up():
    """One processes 9.7/s of 26.3/s published; its connection is named."""
    finding = one(RULE, shot(65))

    assert (1, 3) == (finding.facts["consumers"], finding.facts["consumers_needed"])
    assert (PEER,) == finding.involved.connections


def test_consumers_that_slowed_down_are_another_cause():
    """The same growth for another reason."""
    assert [] == of(RULE, shot(120, now=8.0, consumes=2.0))


def test_a_queue_whose_consumers_have_room_is_the_limit_itself():
    """Its consumers are idle while messages are ready."""
    verdict = shot(120, before=30.0, now=30.0, consumed=10.0, consumes=10.0, messages_unacked=2)

    assert "queue_limit" == one(RULE, verdict).facts["reason"]


@pytest.mark.parametrize(
    "fields",
    [{"now": 8.0, "consumes": 8.0}, {"consumers": 0}, {"consumes": 0.0}, {"messages_ready": 40}, {"type": "stream"}],
    ids=["no surge", "no consumer", "nothing is consumed", "it does not grow", "stream"],
)
def test_other_queues_are_not_reported(fields):
    """Each has another cause, or none."""
    assert [] == of(RULE, shot(120, **fields))


@pytest.mark.parametrize("rate", [0.6, 8.0, 300.0])
@pytest.mark.parametrize("held", [0, 1, 9])
def test_a_queue_that_delivers_nothing_to_consumers_with_room_stands_still(rate, held):
    """It is no overload: what the consumers did before the standstill says nothing."""
    fields = {"before": rate, "now": rate, "consumed": rate, "consumes": 0.0, "messages_unacked": held}
    early, late = (one(RULE, shot(until, **fields)) for until in (62, 110))

    assert ("info", "warning") == (early.severity, late.severity)
    assert ("standstill", 0.0) == (late.facts["reason"], late.facts["consume_rate"])
    assert "delivers nothing, although its 1 consumer may hold more" in text(late).summary
    assert "receives more" not in text(late).summary


@pytest.mark.parametrize("consumes", [0.4, 8.0])
def test_a_queue_that_delivers_again_does_not_stand_still(consumes):
    """Slowly, too."""
    verdict = shot(110, before=8.0, now=8.0, consumed=8.0, consumes=consumes, messages_unacked=1)

    assert [] == [each for each in verdict.findings if each.facts.get("reason") == "standstill"]


@pytest.mark.parametrize(("comes", "goes", "waiting"), [(30.0, 10.0, 900), (4.0, 1.0, 60), (800.0, 500.0, 50_000)])
def test_one_look_says_what_it_becomes(comes, goes, waiting):
    """The consumers may hold more than they do, and the queue grows: a burst would end, and this is a warning later."""

    def frame(t):
        published, acked = int(waiting + comes * t), int(goes * t)
        counters = stats(publish=published, deliver=acked + 3, ack=acked)
        there = queue(messages_ready=published - acked - 3, messages_unacked=3, stats=counters)
        return {"queues": (there,), "consumers": (consumer(prefetch_count=200),)}

    window = film(frame, until=20, every=10, start=10)
    finding = one(RULE, diagnose_briefly(window, (), window.latest.taken))

    assert (Severity.INFO, Severity.WARNING) == (finding.severity, finding.if_it_lasts)
    assert 180.0 == finding.facts["warning_after_seconds"]
    assert "a warning after 3 min" in text(finding).summary


@pytest.mark.parametrize(("comes", "goes"), [(30.0, 30.0), (30.0, 60.0), (0.0, 10.0)])
def test_one_look_promises_nothing_where_consumers_keep_up(comes, goes):
    """The queue does not grow, whatever waits in it."""

    def frame(t):
        published, acked = int(9000 + comes * t), int(goes * t)
        counters = stats(publish=published, deliver=acked + 3, ack=acked)
        there = queue(messages_ready=published - acked - 3, messages_unacked=3, stats=counters)
        return {"queues": (there,), "consumers": (consumer(prefetch_count=200),)}

    window = film(frame, until=20, every=10, start=10)

    assert [] == of(RULE, diagnose_briefly(window, (), window.latest.taken))
