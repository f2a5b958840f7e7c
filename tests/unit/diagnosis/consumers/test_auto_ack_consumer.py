import pytest

from tests.unit.diagnosis.consumers.results import found, only
from tests.unit.diagnosis.pictures import channel, connection, consumer, film, look, queue, stats, text


def automatic(*, of=None, on=None, queues=1, sent=10):
    """Consumers with automatic acknowledgement."""

    def frame(t):
        counters = stats(publish=int(sent * t), deliver_no_ack=int(sent * t))
        names = [f"orders{number}" for number in range(queues)]
        return {
            "queues": tuple(queue(name, stats=counters, **(of or {})) for name in names),
            "consumers": tuple(
                consumer(name, **{"tag": name, "ack_required": False, "prefetch_count": 0, **(on or {})})
                for name in names
            ),
            "channels": (channel(),),
            "connections": (connection(),),
        }

    return frame


def test_they_are_listed_once_a_virtual_host():
    """It is a fact about applications, so it is information."""
    finding = only(look(film(automatic(queues=5), until=15)))

    assert ("auto-ack-consumer", "info", "/") == (finding.rule, finding.severity, finding.subject.name)
    assert [f"orders{number}" for number in range(5)] == finding.facts["queues"]
    assert {"tag": "orders0", "queue": "orders0"} == finding.facts["consumers"][0]
    assert (["billing"], 150) == (finding.facts["clients"], finding.facts["delivered"] // 5)
    assert 5 == len(finding.involved.queues)


@pytest.mark.parametrize(
    "frame",
    [
        automatic(of={"exclusive": True}),
        automatic(of={"auto_delete": True}),
        automatic(of={"durable": False}),
        automatic(on={"ack_required": True, "prefetch_count": 10}),
        automatic(on={"ack_required": None, "prefetch_count": 10}),
        automatic(sent=0),
    ],
    ids=["exclusive", "auto-delete", "transient", "manual", "not reported", "nothing delivered"],
)
def test_what_is_no_risk(frame):
    """Such a queue is deleted with its client anyway, or nothing is known."""
    assert [] == found(look(film(frame, until=30)))


def ending(*, at=40.0, backlog=0, rate=2.0, came=20.0, back=None, name="orders", **of):
    """A consumer with automatic acknowledgement that came, got the backlog at once, and ended; one may come back."""

    def frame(t):
        published = int(100 + rate * t)
        here = came <= t < at or (back is not None and t >= back)
        sent = 0 if t < came else backlog + int(rate * (min(t, at) - came))
        sent += int(rate * (t - back)) if back is not None and t > back else 0
        counters = stats(publish=published, **({"deliver_no_ack": sent} if sent else {}))
        on = (consumer(name, ack_required=False, prefetch_count=0),) if here else ()
        return {
            "queues": (queue(name, consumers=len(on), messages_ready=5, stats=counters, **of),),
            "consumers": on,
            "channels": (channel(),) if here else (),
            "connections": (connection(),) if here else (),
        }

    return frame


def ended(until, **fields):
    """Findings of this rule about the queue."""
    result = look(film(ending(**fields), until=until))
    return [each for each in result.findings if (each.rule, each.subject.kind) == ("auto-ack-consumer", "queue")]


@pytest.mark.parametrize(("name", "backlog", "rate"), [("orders", 400, 2.0), ("x.y", 5000, 30.0), ("mail", 60, 0.2)])
def test_what_was_sent_to_a_consumer_just_before_its_end_bounds_the_loss(name, backlog, rate):
    """A backlog at once: no client has processed it within seconds."""
    (finding,) = ended(60, name=name, backlog=backlog, rate=rate)

    assert ("warning", name, True) == (finding.severity, finding.subject.name, finding.facts["backlog"])
    assert backlog <= finding.facts["delivered"] <= backlog + 35 * rate
    assert "up to" in text(finding).summary


def test_the_end_of_a_consumer_that_kept_up_is_information():
    """A deployment looks the same."""
    severities = {each.severity.value for until in (45, 60, 90) for each in ended(until, came=0.0, back=50.0)}

    assert {"info"} == severities


@pytest.mark.parametrize(
    "fields",
    [{"backlog": 400, "auto_delete": True}, {"backlog": 400, "at": 900.0}, {"backlog": 0, "rate": 0.0}],
    ids=["its queue ends with it", "it stays", "nothing was sent"],
)
def test_what_is_no_loss(fields):
    """Each differs in one thing."""
    assert [] == ended(70, **fields)


def test_it_is_reported_for_some_minutes():
    """Not for ever."""
    assert ended(300, backlog=400)
    assert not ended(500, backlog=400)


def handed_over(*, left=30.0, came=32.0, rate=8.0, behind=2.0, beside=0):
    """A consumer that acknowledges ends, and one with automatic acknowledgement comes, or stays, of `beside` others.

    The broker counts consumers `behind` seconds later than messages.
    """

    def frame(t):
        shown = t - behind
        acknowledging = int(shown < left)
        automatic = beside or int(shown >= came)
        sent = int(rate * min(t, left))
        for_good = int(rate * (t if beside else max(0.0, t - came)))
        return {
            "queues": (
                queue(
                    "payouts",
                    consumers=acknowledging + automatic,
                    stats=stats(publish=int(rate * t), deliver=sent, ack=sent, deliver_no_ack=for_good or None),
                ),
            ),
        }

    return frame


@pytest.mark.parametrize("rate", [2.0, 8.0, 90.0])
@pytest.mark.parametrize("fields", [{}, {"came": 36.0}, {"behind": 5.0}, {"beside": 1}, {"beside": 3}])
def test_the_end_of_a_consumer_that_acknowledges_loses_nothing(fields, rate):
    """What was sent with automatic acknowledgement went to another one, which is still there."""
    verdict = look(film(handed_over(rate=rate, **fields), until=70))

    assert [] == [each for each in found(verdict) if "payouts" in each]


def test_the_end_of_the_one_that_acknowledges_automatically_is_named_beside_others():
    """Its deliveries stop, and the others go on."""

    def frame(t):
        sent, for_good = int(5 * t), int(5 * min(t, 40))
        counters = stats(publish=sent + for_good, deliver=sent, ack=sent, deliver_no_ack=for_good)
        return {"queues": (queue("payouts", consumers=2 if t < 40 else 1, stats=counters),)}

    assert ["payouts"] == [name for *_, name in found(look(film(frame, until=60)))]
