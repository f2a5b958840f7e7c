"""Answers to direct reply-to count at the default exchange as received and not routed: no publisher loses them."""

import pytest

from ackscope.snapshot import Part
from tests.unit.diagnosis.pictures import film, look, snapshot
from tests.unit.diagnosis.publishers.films import busy_queue, exchange, findings, of, publisher, shop

RETURNED = "pub-unroutable-returned"
RULES = {"drop_unroutable": "pub-unroutable-dropped", "return_unroutable": RETURNED}
SERVER = "10.0.0.7:41000 -> 10.0.0.1:5672"


def beside_answers(
    name, *, rate=5.0, share=0.4, answers=20.0, begin=4.0, kind="headers", counter="return_unroutable", copies=1
):
    """A client loses a share of what it publishes to an exchange, beside a server that answers by direct reply-to.

    All begin together, and exchanges are read every 15 s. A message that is routed reaches `copies` queues.
    """

    def frame(t):
        read = t - t % 15
        ran, runs = max(0.0, read - begin), max(0.0, t - begin)
        lost = int(share * rate * ran)
        listed = (
            exchange("", received=int(3 * answers * ran), routed=int(2 * answers * ran)),
            exchange(name, received=int(rate * ran), routed=copies * (int(rate * ran) - lost), type=kind),
        )
        return {
            "queues": (busy_queue(t, answers),),
            "channels": (
                publisher(runs, rate=rate, before=0, counters={counter: int(share * rate * runs)}),
                publisher(runs, rate=answers, before=0, peer=SERVER, consumer_count=1),
            ),
            "connections": (shop(), shop(SERVER, client_name="quotes")),
            "exchanges": Part(value=listed, at=snapshot(read).taken, seconds=0.1),
        }

    return frame


@pytest.mark.parametrize("counter", RULES)
@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("permits", {}),
        ("permits", {"rate": 9.0, "answers": 31.0, "begin": 6.0}),
        ("bookings", {"kind": "direct", "share": 0.8, "answers": 55.0}),
        ("bookings", {"kind": "topic", "share": 1.0, "rate": 2.0, "begin": 8.0}),
        ("notes", {"rate": 3.0, "answers": 12.0, "begin": 11.0}),
    ],
)
def test_answers_are_not_what_another_client_loses(name, fields, counter):
    """From the first reading on; its own exchange is named as soon as it is sure."""
    rule, film_of = RULES[counter], beside_answers(name, counter=counter, **fields)
    for until in (15, 20, 25, 30, 35, 45, 60, 90, 130):
        named = {subject for _, _, subject in of(look(film(film_of, until=until)), rule)}
        assert "" not in named, until
        assert until < 45 or named == {name}


@pytest.mark.parametrize(("rate", "answers"), [(5.0, 20.0), (30.0, 70.0), (1.0, 9.0)])
def test_an_exchange_whose_loss_is_refreshed_late_is_waited_for(rate, answers):
    """The default exchange shows its answers a reading before the exchange of the publisher shows its loss."""
    made = beside_answers("permits", rate=rate, answers=answers)

    def frame(t):
        now, late = made(t), made(max(0.0, t - 15))
        both = (now["exchanges"].value[0], late["exchanges"].value[1])
        return {**now, "exchanges": Part(value=both, at=now["exchanges"].at, seconds=0.1)}

    for until in range(15, 95, 5):
        assert "" not in {subject for _, _, subject in of(look(film(frame, until=until)), RETURNED)}, until


@pytest.mark.parametrize("answers", [15.0, 40.0])
def test_a_loss_that_copies_hide_is_not_sought_among_answers(answers):
    """Messages reach two queues, so the exchange of the publisher seems to lose none."""
    window = film(beside_answers("fares", kind="direct", copies=2, answers=answers), until=75)
    assert "" not in {subject for _, _, subject in of(look(window), RETURNED)}


@pytest.mark.parametrize("rate", [2.0, 11.0])
def test_what_a_client_loses_at_the_default_exchange_is_found_beside_answers(rate):
    """No other exchange loses anything."""

    def frame(t):
        made = beside_answers("permits", share=0.0)(t)
        read, (default, other) = t - t % 15, made["exchanges"].value
        lost = int(rate * max(0.0, read - 4))
        received, routed = (default.stats.publish_in or 0) + lost, default.stats.publish_out or 0
        default, gone, runs = (
            exchange("", received=received, routed=routed),
            "10.0.0.8:52 -> 10.0.0.1:5672",
            max(0, t - 4),
        )
        lost = {"drop_unroutable": int(rate * runs)}
        made["channels"] += (publisher(runs, rate=rate, before=0, peer=gone, counters=lost),)
        made["connections"] += (shop(gone, client_name="fleet"),)
        made["exchanges"] = Part(value=(default, other), at=snapshot(read).taken, seconds=0.1)
        return made

    found = findings(look(film(frame, until=75)), "pub-unroutable-dropped")
    assert ["fleet"] == [client for each in found for client in each.facts["clients"]]
    assert [""] == [each.subject.name for each in found]
