"""Unroutable messages in one look: how long it lasts, and which bindings are there, by what the readings prove."""

import pytest

from ackscope.snapshot import Part
from ackscope.topology import Binding, Bindings
from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.pictures import WALL, film, look, queue, snapshot, stats, text
from tests.unit.diagnosis.publishers.films import exchange, findings, publisher, shop

RULE = "pub-unroutable-dropped"


def away(
    *, rate=4.0, earlier=100, gone_at=102.0, name="sms.out", read_again=False, never=False, kind="topic", expires=6000
):
    """A publisher lost messages in earlier outages of a queue. Now it is gone again, since a moment.

    With `read_again`, bindings are read once more after the queue was deleted; before that, they list its binding.
    """

    def frame(t):
        lost = earlier + int(rate * max(0.0, t - 100.0))
        routed = 0 if never else int(rate * min(t, 100.0))
        sent = lost + routed
        fed = queue(
            name,
            stats=stats(publish=routed, deliver=routed, ack=routed),
            arguments={"x-expires": expires} if expires else {},
        )
        bound = Binding(vhost="/", source="notify", destination=name, destination_type="queue", routing_key="sms.#")
        read = t if read_again else 100.0
        return {
            "queues": (fed,) if t < gone_at else (),
            "channels": (publisher(0, before=sent, counters={"drop_unroutable": lost} if lost else {}),),
            "connections": (shop(connected_at=WALL - 900, client_name="crm"),),
            "exchanges": (exchange("notify", received=sent, routed=routed, type=kind),),
            "bindings": Part(
                value=Bindings(listed=(bound,) if read < gone_at else ()), at=snapshot(read).taken, seconds=0.1
            ),
        }

    return frame


def one_look(**fields):
    """The finding of a look that begins when the exchange routes nothing."""
    window = film(away(**fields), start=100, until=112, every=6)
    (finding,) = findings(look(window, thresholds=Thresholds.as_if_lasting()), RULE)
    return finding


@pytest.mark.parametrize(("rate", "earlier"), [(4.0, 100), (40.0, 3000), (2.0, 7), (4.0, 0)])
@pytest.mark.parametrize("kind", ["topic", "direct"])
def test_earlier_losses_of_an_exchange_that_routed_do_not_make_it_last_longer(rate, earlier, kind):
    """They may be of other outages. A publisher that was never routed has lost them in one go."""
    assert one_look(rate=rate, earlier=earlier, kind=kind).seen_seconds <= 12
    if earlier:
        assert one_look(rate=rate, earlier=earlier, never=True).seen_seconds > earlier / rate


@pytest.mark.parametrize(("name", "read_again"), [("sms.out", False), ("z", False), ("sms.out", True)])
def test_a_binding_that_went_with_its_queue_is_not_said_to_be_there(name, read_again):
    """Bindings are read less often than queues."""
    finding = one_look(name=name, read_again=read_again)

    assert 0 == finding.facts["bindings"]
    assert "Its 1 binding" not in text(finding).cause
    assert "has no binding" in text(finding).cause


@pytest.mark.parametrize(("expires", "blamed"), [(None, True), (6000, False)])
def test_a_binding_whose_queue_is_listed_is_there(expires, blamed):
    """It does not match, unless its queue may have been away when the messages came."""
    finding = one_look(gone_at=1000.0, expires=expires)

    assert 1 == finding.facts["bindings"]
    assert blamed == ("Its 1 binding did not match" in text(finding).cause)
    assert blamed != ("or 'sms.out' was away" in text(finding).cause)


@pytest.mark.parametrize(("lost", "lasts"), [(0.25, True), (0.05, False)])
def test_a_steady_share_that_is_lost_tells_how_long(lost, lasts):
    """A quarter is lost now. Since the channel was opened it was a quarter as well, or less."""

    def frame(t):
        sent = 2000 + int(40 * (t - 100))
        dropped = int(2000 * lost) + int(10 * (t - 100))
        return {
            "channels": (publisher(0, before=sent, counters={"drop_unroutable": dropped}),),
            "connections": (shop(connected_at=WALL - 900),),
            "exchanges": (exchange("notify", received=sent, routed=sent - dropped, type="direct"),),
        }

    window = film(frame, start=100, until=112, every=6)
    (finding,) = findings(look(window, thresholds=Thresholds.as_if_lasting()), RULE)

    assert lasts == (finding.seen_seconds > 30)


@pytest.mark.parametrize("confirm", [True, False])
def test_confirms_are_claimed_only_of_publishers_that_use_them(confirm):
    """Both lose the same messages."""

    def frame(t):
        lost = int(300 + 7 * t)
        return {
            "queues": (queue("billing.in", stats=stats()),),
            "channels": (publisher(t, rate=7.0, before=300, counters={"drop_unroutable": lost}, confirm=confirm),),
            "connections": (shop(client_name="till"),),
            "exchanges": (exchange("receipts", received=lost, type="topic"),),
        }

    finding = findings(look(film(frame, until=40)), RULE)[0]

    assert confirm is finding.facts["confirms"]
    assert confirm == ("confirms them all the same" in text(finding).cause)
