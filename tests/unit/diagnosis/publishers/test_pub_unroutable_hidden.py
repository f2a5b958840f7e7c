"""An exchange whose messages reach two queues loses some, although more leave it than it receives."""

import pytest

from ackscope.snapshot import Overview
from ackscope.topology import Binding, Bindings
from tests.unit.diagnosis.pictures import WALL, film, look, queue, stats, text
from tests.unit.diagnosis.publishers.films import exchange, facts, findings, of, publisher, shop

DROPPED, RETURNED = "pub-unroutable-dropped", "pub-unroutable-returned"
COUNTERS = {DROPPED: "drop_unroutable", RETURNED: "return_unroutable"}


def copied(*, rate=30.0, share=0.4, to=("billing", "archive"), name="orders", rule=DROPPED, more=(), kind="direct"):
    """A publisher whose messages reach each of some queues, but for a share that reaches none.

    `more` are other exchanges: name, messages received a second, to how many queues each goes, and how many are bound.
    """

    def frame(t):
        sent = int(rate * t)
        lost = int(share * sent)
        counters = {COUNTERS[rule]: lost} if lost else {}
        bound = [(name, each) for each in to] + [
            (other, f"{other}.{number}") for other, _, _, bindings in more for number in range(bindings)
        ]
        others = [
            exchange(other, received=int(often * t), routed=copies * int(often * t)) for other, often, copies, _ in more
        ]
        made = stats(publish=sent - lost, deliver=sent - lost, ack=sent - lost)
        return {
            "queues": tuple(queue(each, stats=made) for _, each in bound),
            "channels": (publisher(t, rate=rate, before=0, counters=counters, confirm=False),),
            "connections": (shop(connected_at=WALL, client_name="depot"),),
            "exchanges": (exchange(name, received=sent, routed=len(to) * (sent - lost), type=kind), *others),
            "bindings": Bindings(
                counts={},
                listed=tuple(
                    Binding(vhost="/", source=source, destination=each, destination_type="queue", routing_key="new")
                    for source, each in bound
                ),
            ),
        }

    return frame


@pytest.mark.parametrize("rule", [DROPPED, RETURNED])
@pytest.mark.parametrize("rate", [4.0, 30.0, 900.0])
@pytest.mark.parametrize(("share", "to"), [(0.4, ("billing", "archive")), (0.1, ("a", "b", "c")), (0.7, ("x", "y"))])
def test_the_only_exchange_that_can_hide_a_loss_is_where_it_is_lost(rule, rate, share, to):
    """It is named with what its publisher loses, not with what its own counters leave."""
    verdict = look(film(copied(rule=rule, rate=rate, share=share, to=to), until=75))

    assert [("exchange", "orders")] == [(kind, name) for _, kind, name in of(verdict, rule)]
    found = facts(verdict, rule)
    assert pytest.approx(rate * share, rel=0.15) == found["lost_rate"]
    assert pytest.approx(share, rel=0.2) == found["lost"] / found["received"]
    assert ["depot"] == found["clients"]


def test_it_is_a_warning_after_a_minute_where_the_exchange_hands_out_work():
    """As where each message reaches one queue."""
    verdict = look(film(copied(), until=80))

    assert [("warning", "exchange", "orders")] == of(verdict, DROPPED)
    assert "drops" in text(findings(verdict, DROPPED)[0]).summary


@pytest.mark.parametrize(
    "more", [[("stock", 30.0, 1, 1)], [("stock", 30.0, 2, 2)], [("stock", 400.0, 2, 4), ("prices", 3.0, 1, 3)]]
)
def test_exchanges_that_cannot_be_the_publishers_are_left_out(more):
    """One whose messages reach all bound queues hides nothing; others receive more than is published, or less."""
    verdict = look(film(copied(more=more), until=75))

    assert [("exchange", "orders")] == [(kind, name) for _, kind, name in of(verdict, DROPPED)]


@pytest.mark.parametrize("version", ["3.10.8", "3.12.1", "3.13.0", "4.3.6"])
@pytest.mark.parametrize(("unnamed", "places"), [(8.0, "orders"), (80.0, "orders"), (30.0, None)])
def test_older_versions_count_on_the_default_exchange_what_reaches_no_queue(version, unnamed, places):
    """There it may be lost as well, if as much is published to it as this publisher publishes."""
    frame = copied()

    def versioned(t):
        made, passed = frame(t), int(unnamed * t)
        overview = Overview(rabbitmq_version=version, statistics=True, rates_mode="basic", stats=stats())
        return {
            **made,
            "overview": overview,
            "exchanges": (*made["exchanges"], exchange("", received=passed, routed=passed)),
        }

    reported = [(kind, name) for _, kind, name in of(look(film(versioned, until=75)), DROPPED)]

    old = version.startswith(("3.10", "3.12"))
    assert [("exchange", "orders") if places or not old else ("vhost", "/")] == reported


def test_of_two_that_fit_none_is_named():
    """Both may be where the messages are lost."""
    verdict = look(film(copied(more=[("stock", 30.0, 2, 3)]), until=200))

    assert [("info", "vhost", "/")] == of(verdict, DROPPED)
    assert "several" == facts(verdict, DROPPED)["exchange_unknown"]
