import pytest

from tests.unit.diagnosis.consumers.results import found, only
from tests.unit.diagnosis.pictures import channel, connection, consumer, film, look, queue, stats, text

OLD, NEW = (f"10.0.3.{number}:5000{number} -> 10.0.0.1:5672" for number in (1, 2))


def handover(
    t, *, since=40.0, rate=6.0, held=1, prefetch=20, priorities=(0, 10), kind="quorum", settles=None, name="gl"
):
    """The active consumer holds some messages; from `since` on a standby waits, and nothing is delivered.

    It settles what it holds at second `settles`, and the standby continues.
    """
    stopped = since <= t and (settles is None or t < settles)
    works = t if t < since else since + max(0.0, t - settles if settles is not None else 0.0)
    taken, published = int(rate * works), int(rate * t)
    kept = held if settles is None or t < settles else 0
    there = queue(
        name,
        type=kind,
        arguments={"x-single-active-consumer": True},
        consumers=1 + (t >= since),
        messages=published - taken + kept,
        messages_ready=published - taken,
        messages_unacked=kept,
        stats=stats(publish=published, deliver=taken, deliver_get=taken, ack=max(0, taken - kept)),
    )
    clients = ((OLD, "ledger-blue", priorities[0]), (NEW, "ledger-green", priorities[1]))[: 1 + (t >= since)]
    channels = [
        channel(
            f"{peer} (1)",
            messages_unacked=kept if peer == OLD else 0,
            prefetch_count=prefetch,
            stats=stats(deliver=taken, ack=max(0, taken - kept)) if peer == OLD else stats(),
        )
        for peer, _, _ in clients
    ]
    consumers = [
        consumer(
            name,
            tag=peer,
            channel_name=f"{peer} (1)",
            connection_name=peer,
            prefetch_count=prefetch,
            active=peer == OLD if stopped or t < since else peer == NEW,
            priority=priority,
        )
        for peer, _, priority in clients
    ]
    return {
        "queues": (there,),
        "channels": tuple(channels),
        "connections": tuple(connection(peer, client_name=client) for peer, client, _ in clients),
        "consumers": tuple(consumers),
    }


@pytest.mark.parametrize(
    "fields", [{}, {"rate": 0.5, "name": "dlq"}, {"rate": 200.0, "held": 7}, {"priorities": (None, 1)}]
)
def test_an_active_consumer_that_does_not_settle_all_stops_the_handover(fields):
    """One message is enough, far below its prefetch; the client that holds it is named, not the one that waits."""
    finding = only(look(film(lambda t: handover(t, **fields), until=110)))
    said = text(finding)

    assert ("sac-stuck", "critical") == (finding.rule, finding.severity)
    assert ("ledger-blue", ["ledger-green"]) == (finding.facts["stuck_consumer"]["client"], finding.facts["successors"])
    assert "'ledger-green' has a higher priority" in said.cause
    assert "as many messages as its prefetch allows" not in said.cause
    assert ("ledger-blue",) == finding.involved.clients


def test_it_is_information_early():
    """A client that settles soon hands over, as it should."""
    assert [("sac-stuck", "info")] == [each[:2] for each in found(look(film(handover, until=60)))]


@pytest.mark.parametrize("until", [45, 50, 55, 60, 65])
def test_it_is_never_an_overload(until):
    """Also before it lasts for long enough to be reported."""
    assert "queue-overload" not in {each.rule for each in look(film(handover, until=until)).findings}


@pytest.mark.parametrize(
    "fields",
    [
        {"settles": 46.0},
        {"since": 1e9},
        {"held": 0},
    ],
    ids=["settles after 6 s", "no standby", "holds nothing"],
)
def test_a_handover_that_ends_is_no_finding(fields):
    """Its standbys wait by design."""
    assert [] == [
        each for each in found(look(film(lambda t: handover(t, **fields), until=110))) if each[0] == "sac-stuck"
    ]


@pytest.mark.parametrize("fields", [{"priorities": (10, 10)}, {"priorities": (10, 0)}, {"kind": "classic"}])
def test_without_a_standby_of_higher_priority_nothing_is_handed_over(fields):
    """Then the broker has another reason to deliver nothing, and the consumer is not to blame."""
    assert "sac-stuck" not in [each[0] for each in found(look(film(lambda t: handover(t, **fields), until=110)))]


def test_a_consumer_that_works_on_one_message_at_a_time_gets_longer():
    """A long job looks the same."""
    frame = lambda t: handover(t, prefetch=1, since=20.0)  # noqa: E731
    finding = only(look(film(frame, until=60)))

    assert ("info", 60.0) <= (finding.severity, finding.facts["warning_after_seconds"])
