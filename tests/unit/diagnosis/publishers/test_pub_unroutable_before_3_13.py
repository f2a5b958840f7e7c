"""Before 3.13 the default exchange counts messages for queues that do not exist as routed."""

import pytest

from ackscope.snapshot import Overview
from ackscope.topology import Binding, Bindings
from tests.unit.diagnosis.pictures import WALL, film, look, text
from tests.unit.diagnosis.publishers.films import busy_queue, exchange, facts, findings, of, publisher, shop

DROPPED, RETURNED = "pub-unroutable-dropped", "pub-unroutable-returned"
COUNTERS = {DROPPED: "drop_unroutable", RETURNED: "return_unroutable"}
PROBE = "10.0.0.2:7 -> b"


def to_missing_queue(*others, rule=DROPPED, version="3.10.8", rate=6.0, passed=30.0, bound=(), own=0.0):
    """A client publishes by the name of a queue that does not exist; the default exchange seems to route it.

    `passed` messages a second reach other queues through the default exchange, `own` are those of our probe, and
    `others` are the rates at which other exchanges receive and route: (name, type, in, out).
    """

    def frame(t):
        lost, probed = int(rate * t), int(own * t)
        through = int(passed * t) + lost + probed
        return {
            "overview": Overview(rabbitmq_version=version, statistics=True, rates_mode="basic"),
            "queues": (busy_queue(t),),
            "channels": (
                publisher(t, rate=rate, before=0, counters={COUNTERS[rule]: lost} if lost else {}),
                publisher(t, rate=own, before=0, peer=PROBE, counters={"return_unroutable": probed} if probed else {}),
            ),
            "connections": (
                shop(client_name="invoices", connected_at=WALL),
                shop(PROBE, client_name="ackscope-probe confirm"),
            ),
            "exchanges": (
                exchange("", received=through, routed=through),
                *(
                    exchange(name, type=kind, received=int(into * t), routed=int(out * t))
                    for name, kind, into, out in others
                ),
            ),
            "bindings": Bindings(
                listed=tuple(
                    Binding(vhost="/", source=source, destination=to, destination_type="queue", routing_key=key)
                    for source, key, to in bound
                )
            ),
        }

    return frame


TWO = (("cases", "", "cases.files"), ("cases", "", "cases.search"))
BY_KEY = (("bills", "paid", "ledger"), ("bills", "open", "reminders"))


@pytest.mark.parametrize("version", ["3.10.8", "3.12.14"])
@pytest.mark.parametrize("rule", [DROPPED, RETURNED])
@pytest.mark.parametrize("rate", [0.8, 6.0, 200.0])
def test_the_default_exchange_is_named_although_it_seems_to_route_all(rule, version, rate):
    """No other exchange received as much as the client lost."""
    verdict = look(film(to_missing_queue(rule=rule, version=version, rate=rate), until=90))

    assert [("warning", "exchange", "")] == of(verdict, rule)
    assert ["invoices"] == facts(verdict, rule)["losers"]
    assert pytest.approx(rate, rel=0.1) == facts(verdict, rule)["lost_rate"]


def test_the_counter_that_misleads_is_no_evidence():
    """A reader who compares would find that as many messages left as came."""
    finding = findings(look(film(to_missing_queue(), until=90)), DROPPED)[0]

    assert ["exchange_received", "publisher"] == [each.key for each in finding.evidence]
    assert "there was no queue with that name" in text(finding).cause


@pytest.mark.parametrize(
    ("other", "bound"),
    [
        (("cases", "fanout", 9.0, 18.0), TWO),
        (("bills", "direct", 9.0, 9.0), BY_KEY),
        (("cases", "topic", 2.0, 3.0), TWO),
    ],
    ids=["each-message-twice", "one-queue-a-key", "less-than-is-lost"],
)
def test_an_exchange_that_cannot_have_lost_them_does_not_hide_it(other, bound):
    """It routed each message to as many queues as one message can reach, or received fewer than were lost."""
    verdict = look(film(to_missing_queue(other, bound=bound), until=90))

    assert [("warning", "exchange", "")] == of(verdict, DROPPED)


@pytest.mark.parametrize(
    ("other", "bound"),
    [(("cases", "topic", 12.0, 12.0), TWO), (("cases", "headers", 12.0, 18.0), TWO)],
)
def test_an_exchange_that_may_have_lost_them_leaves_it_open(other, bound):
    """Half of its messages may reach two queues, and the other half none."""
    verdict = look(film(to_missing_queue(other, bound=bound), until=90))

    assert [("info", "vhost", "/")] == of(verdict, DROPPED)


@pytest.mark.parametrize("rate", [0.8, 6.0, 40.0])
@pytest.mark.parametrize("late", [14.0, 29.0])
def test_an_exchange_that_lost_them_until_now_may_be_refreshed_late(rate, late):
    """A busy broker counts nothing in the latest readings of an exchange, which lost as much before."""
    frame = to_missing_queue(("tariffs", "fanout", rate, 0.0), rate=rate)

    def delayed(t):
        return {**frame(t), "exchanges": (frame(t)["exchanges"][0], frame(min(t, 90 - late))["exchanges"][1])}

    assert "" not in [name for _, _, name in of(look(film(delayed, until=90)), DROPPED)]


def test_an_exchange_that_loses_them_is_named_instead():
    """One loss belongs to one exchange."""
    verdict = look(film(to_missing_queue(("tariffs", "direct", 6.0, 0.0)), until=90))

    assert ["tariffs"] == [name for _, _, name in of(verdict, DROPPED)]


def test_what_our_probe_loses_there_is_not_counted():
    """It publishes to no queue on purpose."""
    verdict = look(film(to_missing_queue(own=2.0), until=90))

    assert [("warning", "exchange", "")] == of(verdict, DROPPED)
    assert pytest.approx(6.0, rel=0.1) == facts(verdict, DROPPED)["lost_rate"]
    assert [] == of(verdict, RETURNED)


def test_since_3_13_the_counters_of_the_default_exchange_decide():
    """It routed all that it received, so the messages were lost elsewhere."""
    verdict = look(film(to_missing_queue(version="3.13.7"), until=90))

    assert [("info", "vhost", "/")] == of(verdict, DROPPED)
