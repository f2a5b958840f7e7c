import pytest

from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.consumers.results import ever, found
from tests.unit.diagnosis.pictures import channel, connection, consumer, film, full_text, look, queue, stats


def scheduled(*, rate=5.0, first=16, due=0.0, fixed=False, acks=5.0, named="celery"):
    """A client that raises its shared prefetch with each message that it holds; some become due."""

    def frame(t):
        held = int((rate - due) * t) + 3
        counters = stats(publish=int((rate + acks) * t) + 3, deliver=int((rate + acks) * t) + 3, ack=int(acks * t))
        return {
            "version": "3.10.8",
            "queues": (queue(named, messages_unacked=held, stats=counters),),
            "consumers": (consumer(named, prefetch_count=0),),
            "channels": (
                channel(
                    messages_unacked=held,
                    prefetch_count=0,
                    global_prefetch_count=1000 if fixed else first + held,
                    stats=counters,
                ),
            ),
            "connections": (connection(client_name="worker"),),
        }

    return frame


def of_rule(frame, until):
    """The findings of this rule, as severity and subject."""
    result = look(film(frame, until=until))
    return [(each.severity, each.subject.name) for each in result.findings if each.rule == "prefetch-grows"]


@pytest.mark.parametrize("change", [{}, {"rate": 1.0, "first": 4, "named": "jobs"}, {"acks": 0.0}])
def test_a_prefetch_that_rises_with_what_is_held_is_a_warning(change):
    """Whatever else the client acknowledges."""
    name = change.get("named", "celery")

    assert [("info", name)] == of_rule(scheduled(**change), 20)
    assert [("warning", name)] == of_rule(scheduled(**change), 60)


def test_it_says_that_the_client_holds_on_purpose():
    """It is not stuck, and a restart does not help."""
    report = full_text(
        next(each for each in look(film(scheduled(), until=60)).findings if each.rule == "prefetch-grows")
    )

    assert "on purpose" in report
    assert "Do not restart" in report


def test_what_it_holds_is_one_finding():
    """That its unacknowledged messages only grow follows from it."""
    result = look(film(scheduled(), until=100))

    assert ["global-prefetch", "prefetch-grows"] == sorted(rule for rule, _, _ in found(result))


@pytest.mark.parametrize("frame", [scheduled(fixed=True), scheduled(rate=5.0, due=5.0)], ids=["fixed", "as many due"])
def test_a_prefetch_that_does_not_rise_is_no_finding(frame):
    """It is a large limit, or as many tasks become due as are scheduled."""
    assert "prefetch-grows" not in ever([look(film(frame, until=60))])


def test_two_readings_show_it():
    """Both rise between them."""
    result = look(film(scheduled(), until=66, every=6, start=60), thresholds=Thresholds.as_if_lasting())

    assert ("prefetch-grows", "warning", "celery") in found(result)
