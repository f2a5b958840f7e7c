"""A queue expires, and its publisher goes on to send to its name: what is lost, and which queue is the cause."""

import pytest

from ackscope.findings import flat
from ackscope.snapshot import Part
from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.pictures import WALL, channel, connection, consumer, film, look, queue, snapshot, stats, text
from tests.unit.diagnosis.publishers.films import exchange, findings, publisher, shop

RULE, EXPIRED = "pub-unroutable-dropped", "queue-expired"
LEFT, GONE = 40.0, 62.0
IDLE = "10.0.0.8:50008 -> 10.0.0.1:5672"


def expiring(
    t, *, name="commands.eu", rate=4.0, passes=160.0, late=5.0, other=None, waits=WALL - 100.0, opened=-100.0, start=0.0
):
    """A queue loses its consumer in second 40 and expires in second 62; another queue waits for a first message.

    Through the default exchange pass `passes` other messages a second. One reading counts as routed what the others
    count `late` seconds later. `other` is a busier queue that goes in the same second.
    """
    sent, lost = int(rate * (t - opened)), int(rate * max(0.0, t - GONE))
    read = t - t % 15
    passed, dropped = (passes + rate) * (read + 100), rate * max(0.0, read - GONE)
    ahead = passes * late if 59 < read < 61 else 0
    fed = queue(
        name,
        consumers=1 if t < LEFT else 0,
        messages_ready=int(rate * max(0.0, t - LEFT)),
        stats=stats(publish=sent, deliver=int(rate * min(t, LEFT) + 400), ack=int(rate * min(t, LEFT) + 400)),
        arguments={"x-expires": 20_000},
    )
    gone = (fed, *(() if other is None else (queue("busy.old", stats=stats(publish=int(other * (t + 100)))),)))
    unused = queue("invoices.outbox", stats=stats())
    return {
        "queues": (*(gone if t < GONE else ()), unused),
        "consumers": (consumer("invoices.outbox", channel_name=f"{IDLE} (1)", connection_name=IDLE),),
        "channels": (
            publisher(0, before=sent, confirm=False, counters={"drop_unroutable": lost} if lost else {}),
            channel(f"{IDLE} (1)"),
        ),
        "connections": (
            shop(client_name="fleet", connected_at=WALL + opened),
            connection(IDLE, client_name="archiver", connected_at=waits),
        ),
        "exchanges": Part(
            value=(exchange("", received=int(passed), routed=int(passed - dropped + ahead)),),
            at=snapshot(read).taken,
            seconds=0.1,
        ),
    }


def seen(until, start=0.0, **fields):
    """The result after some seconds."""
    return look(film(lambda t: expiring(t, **fields), until=until, start=start))


@pytest.mark.parametrize(
    ("rate", "passes", "late"), [(4.0, 160.0, 5.0), (10.0, 160.0, 4.0), (2.0, 40.0, 5.5), (30.0, 900.0, 5.0)]
)
@pytest.mark.parametrize("until", [75, 80, 85, 90, 120])
def test_no_client_loses_more_than_it_publishes(rate, passes, late, until):
    """What one late refresh of the exchange adds is nobody's loss."""
    for finding in findings(seen(until, rate=rate, passes=passes, late=late), RULE):
        assert finding.facts["lost"] <= rate * (until - GONE) + rate * 5 + 1
        assert finding.facts["lost_rate"] <= 1.05 * rate


@pytest.mark.parametrize("name", ["commands.eu", "billing-eu-3"])
def test_the_queue_that_expired_is_the_cause_and_the_loss_its_consequence(name):
    """One incident. A queue that has waited for its first message all the time has nothing to do with it."""
    verdict = seen(90, name=name)

    (cause,) = (each for each in verdict.findings if each.rule == EXPIRED)
    (loss,) = (each for each in cause.consequences if each.rule == RULE)
    assert ([name], []) == (loss.facts["gone"], loss.facts["unfed"])
    assert f"'{name}' got messages until" in text(loss).cause
    assert "invoices.outbox" not in text(loss).cause


@pytest.mark.parametrize(("until", "severity"), [(90, "warning"), (120, "warning")])
def test_a_loss_because_a_queue_expired_is_soon_urgent(until, severity):
    """Its consumer was away for longer than the queue allows, so this is no deployment."""
    (loss,) = findings(seen(until), RULE)

    assert severity == loss.severity


def test_a_busier_queue_that_goes_in_the_same_second_is_not_named():
    """It got more than the publisher of what is lost publishes in all."""
    (loss,) = findings(seen(90, other=60.0), RULE)

    assert ["commands.eu"] == loss.facts["gone"]


@pytest.mark.parametrize(
    ("opened", "waits", "severity", "unfed"),
    [(-100.0, -100.0, "warning", []), (-100.0, 150.0, "warning", ["invoices.outbox"]), (-5000.0, -100.0, "info", [])],
    ids=["lost much", "waits since the loss", "lost a small part"],
)
def test_one_look_knows_what_a_publisher_has_lost_since_it_connected(opened, waits, severity, unfed):
    """It loses all now, and has lost 4/s for 138 s: half of all that it published, or a small part."""
    window = film(lambda t: expiring(t, opened=opened, waits=WALL + waits), start=190, until=200, every=10)
    (loss,) = findings(look(window, thresholds=Thresholds.brief()), RULE)

    assert (severity, unfed) == (loss.severity, loss.facts["unfed"])
    assert loss.seen_seconds <= 200 - opened


def test_what_unlisted_clients_lose_is_not_given_to_the_listed_one():
    """The exchange loses 154/s, the only listed publisher 4/s."""

    def frame(t):
        made = expiring(t, late=0.0)
        each = made["exchanges"].value[0]
        out = (each.stats.publish_out or 0) - int(150 * max(0.0, t - t % 15 - GONE))
        listed = (exchange("", received=each.stats.publish_in, routed=out),)
        return {**made, "exchanges": Part(value=listed, at=made["exchanges"].at, seconds=0.1)}

    (finding,) = findings(look(film(frame, until=120)), RULE)
    assert finding.facts["lost_rate"] > 100
    assert finding.facts["client_rate"] <= 4.5
    assert "of it from 'fleet'" in text(finding).summary


def test_no_loss_is_reported_where_nothing_is_lost():
    """The exchange counts late, and no channel loses a message."""
    verdict = look(film(lambda t: {**expiring(t), "channels": ()}, until=90))

    assert [] == [each for each in flat(verdict.findings) if each.rule == RULE]
