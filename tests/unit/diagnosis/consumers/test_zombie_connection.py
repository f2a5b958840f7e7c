import pytest

from tests.unit.diagnosis.consumers.results import ever, found, own, urgent
from tests.unit.diagnosis.pictures import PEER, WALL, channel, connection, consumer, film, look, queue, stats

CLOSED = 40.0


def zombie(t, *, channels=0, received=lambda t: 400 + 8 * int(t / 30), others=0, consumed=True, born=-1000.0, grows=1):
    """A consumer whose channel is closed at second 40, while its connection stays open."""
    alive = t < CLOSED and consumed
    waiting = 0 if alive else 1 + int(grows * max(0.0, t - CLOSED))
    acked = int(5 * min(t, CLOSED))
    return {
        "queues": (
            queue(
                consumers=1 if alive else 0,
                messages_ready=waiting,
                stats=stats(publish=acked + waiting, ack=acked, deliver=acked),
            ),
        ),
        "consumers": (consumer(),) if alive else (),
        "channels": (channel(stats=stats(ack=acked, deliver=acked)),) if alive else (),
        "connections": (
            connection(channels=1 if alive else channels, connected_at=WALL + born, recv_oct=received(t), heartbeat=60),
            *(
                connection(
                    f"10.0.1.{n}:1 -> b", channels=0, connected_at=WALL + born, recv_oct=8, client_name=f"pool-{n}"
                )
                for n in range(others)
            ),
        ),
    }


def of_rule(result):
    """Findings of this rule."""
    return [each for each in found(result) if each[0] == "zombie-connection"]


def test_a_connection_that_lost_its_channel_is_found():
    """Information soon, a warning after 2 min without a consumer; the queue without a consumer is a consequence."""
    assert [] == of_rule(look(film(zombie, until=45)))
    assert [("zombie-connection", "info", PEER)] == of_rule(look(film(zombie, until=60)))

    (finding,) = own(look(film(zombie, until=180)))

    assert ("zombie-connection", "warning", PEER) == (finding.rule, finding.severity, finding.subject.name)
    assert ["no-consumer"] == [each.rule for each in finding.consequences if each.rule == "no-consumer"]
    assert ("billing", ["orders"], False) == tuple(finding.facts[key] for key in ("client", "queues", "consumer_seen"))
    assert ((PEER,), ("billing",)) == (finding.involved.connections, finding.involved.clients)


@pytest.mark.parametrize(
    "change",
    [{"channels": 1}, {"channels": None}, {"received": lambda t: int(1000 * t)}, {"others": 5}, {"born": 100.0}],
    ids=["it has a channel", "not reported", "it sends data", "a pool", "it connected later"],
)
def test_what_is_no_zombie(change):
    """A channel, traffic, many such connections, or one that was not connected then."""
    results = [look(film(lambda t: zombie(t, **change), until=until)) for until in (120, 200)]

    assert [] == [each for result in results for each in urgent(result) if each[0] == "zombie-connection"]


def test_a_connection_is_not_accused_of_the_consumer_of_another_one():
    """A shovel that was deleted left its connection; the queue was consumed by a client that still has its channel."""
    other = "10.0.0.9:7 -> 10.0.0.1:5672"

    def frame(t):
        made = zombie(t)
        served = (consumer(connection_name=other, channel_name=f"{other} (1)"),) if t < CLOSED else ()
        return {
            **made,
            "consumers": served,
            "channels": (
                channel(f"{other} (1)", connection_name=other, consumer_count=len(served), stats=stats(deliver=200)),
            ),
            "connections": (
                connection(PEER, channels=0, connected_at=WALL - 1000.0, recv_oct=400, client_name="Shovel meters"),
                connection(other, channels=1, connected_at=WALL - 1000.0, client_name="loyalty"),
            ),
        }

    results = [look(film(frame, until=until)) for until in (60, 180)]

    assert "zombie-connection" not in ever(results)
    assert "no-consumer" in ever(results)


def test_a_connection_that_never_consumed_is_no_finding():
    """A pool that opens its channels on demand looks like this from the start."""
    results = [look(film(lambda t: zombie(t, consumed=False, grows=0), until=until)) for until in (30, 300)]

    assert "zombie-connection" not in ever(results)
