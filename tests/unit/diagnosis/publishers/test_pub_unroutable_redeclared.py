from dataclasses import replace

import pytest

from ackscope.snapshot import Node, Part
from ackscope.topology import Binding, Bindings
from diagnosis.endings import MOST, Ending, come_back, endings
from tests.unit.diagnosis.pictures import NODE, connection, film, look, moment, queue, snapshot, stats, text
from tests.unit.diagnosis.publishers.films import exchange, facts, findings, of, publisher, shop

DROPPED, RETURNED = "pub-unroutable-dropped", "pub-unroutable-returned"
BEGAN = 40.0
STRANGER = "10.0.0.5:51111 -> b"


def redeclared(
    *,
    rate=9.0,
    missing=12.0,
    kind="topic",
    name="tickets",
    counter="drop_unroutable",
    publishers=1,
    held=0,
    always=0.0,
    starts=0.0,
    lost_long_ago=0,
    uptime=90_000.0,
    **fields,
):
    """A durable queue is deleted at second 40 and declared again; its publishers go on from second `starts` on."""

    def sent(t):
        return rate * max(0.0, t - starts)

    def dropped(t):
        return sent(min(max(t, BEGAN), BEGAN + missing)) - sent(BEGAN)

    def is_here(t):
        return not BEGAN < t <= BEGAN + missing

    def frame(t):
        if t <= BEGAN:
            passed = int(sent(t))
            kept = min(held, passed)
            stamps = queue(
                "stamps",
                messages_ready=kept,
                stats=stats(publish=passed, deliver=passed - kept, ack=passed - kept),
                **fields,
            )
        else:
            ready = int(sent(t) - sent(BEGAN) - dropped(t))
            stamps = queue("stamps", messages_ready=ready, consumers=0, stats=stats(publish=ready), **fields)
        other = queue("receipts", stats=stats(publish=int(5 * t), deliver=int(5 * t), ack=int(5 * t)))
        read = t - t % 15
        in_all = int(publishers * sent(read)) + int(always * read)
        out = in_all - int(publishers * dropped(read)) - int(always * read)
        binding = Binding(vhost="/", source=name, destination="stamps", destination_type="queue", routing_key="sale.#")
        peers = [f"10.0.0.9:{50100 + number} -> b" for number in range(publishers)]
        lost = int(dropped(t))
        channels = [
            publisher(t - starts, rate=rate, before=0, peer=peer, counters={counter: lost} if lost else {})
            for peer in peers
        ]
        if always:
            channels.append(publisher(t, rate=always, before=0, peer=STRANGER, counters={counter: int(always * t)}))
        if lost_long_ago:
            channels.append(publisher(t, rate=2.0, before=5000, peer=STRANGER, counters={counter: lost_long_ago}))
        return {
            "nodes": (Node(name=NODE, running=True, uptime_seconds=uptime + t),),
            "queues": ((stamps,) if is_here(t) else ()) + (other,),
            "connections": (
                *(connection(peer, client_name=f"till-{number}") for number, peer in enumerate(peers)),
                shop(STRANGER, client_name="kiosk"),
            ),
            "channels": tuple(channels) if t >= starts else (),
            "exchanges": Part(
                value=(exchange(name, received=in_all, routed=out, type=kind),), at=snapshot(read).taken, seconds=0.1
            ),
            "bindings": Part(
                value=Bindings(listed=(binding,) if name and is_here(read) else ()),
                at=snapshot(read).taken,
                seconds=0.1,
            ),
        }

    return frame


@pytest.mark.parametrize(("rate", "missing"), [(3.0, 7.0), (9.0, 12.0), (80.0, 25.0), (1.0, 50.0)])
@pytest.mark.parametrize(("kind", "name"), [("topic", "tickets"), ("direct", "tickets"), ("direct", "")])
def test_what_a_lasting_queue_missed_is_a_warning_while_the_readings_are_held(kind, name, rate, missing):
    """The number, the time, the publisher and the queue stay the same for minutes."""
    frame = redeclared(kind=kind, name=name, rate=rate, missing=missing)
    for after in (20, 60, 150, 300, 500):
        verdict = look(film(frame, until=BEGAN + missing + after))

        assert [("warning", "exchange", name)] == of(verdict, DROPPED), after
        found = facts(verdict, DROPPED)
        assert (["stamps"], ["till-0"], 1) == (found["away"], found["clients"], found["away_times"])
        # A few messages in one reading of the default exchange may be noise.
        assert rate * missing - (2 if name else 6) <= found["lost"] <= rate * missing + 2
        assert "08:00:40" == found["away_from"][11:19]
        assert 0 <= int(found["away_until"][14:16]) * 60 + int(found["away_until"][17:19]) - BEGAN - missing <= 5


def test_the_text_tells_what_is_lost_and_when():
    """It cannot be saved any more, so the steps are about what was published then."""
    said = text(findings(look(film(redeclared(), until=BEGAN + 200)), DROPPED)[0])

    assert (
        "Exchange 'tickets' in vhost '/' dropped 108 messages of 'till-0' while queue 'stamps' was away, "
        "between 08:00:40 and 08:00:55 UTC: they are lost." == said.summary
    )
    assert "Publish again what 'till-0' published between" in said.steps[0].text
    assert not any("auto-delete" in each.text for each in said.steps)


@pytest.mark.parametrize("publishers", [2, 5])
def test_several_publishers_are_named(publishers):
    """Each lost its part."""
    found = facts(look(film(redeclared(publishers=publishers), until=BEGAN + 120)), DROPPED)

    assert [f"till-{number}" for number in range(publishers)] == found["clients"]
    assert abs(publishers * 108 - found["lost"]) <= 2


def test_a_publisher_that_lost_messages_at_another_time_is_not_named():
    """Its number does not fit."""
    found = facts(look(film(redeclared(lost_long_ago=7), until=BEGAN + 120)), DROPPED)

    assert ["till-0"] == found["clients"]


def test_with_messages_in_the_queue_it_is_a_consequence_of_the_deletion():
    """One cause, one finding."""
    verdict = look(film(redeclared(held=200), until=BEGAN + 120))

    cause = next(each for each in verdict.findings if each.rule == "queue-deleted")
    assert DROPPED in [each.rule for each in cause.consequences]


@pytest.mark.parametrize(
    "fields",
    [{"starts": 60.0}, {"missing": 12.0, "rate": 0.0}, {"uptime": -20.0}],
    ids=["published later", "nobody publishes", "the node started"],
)
def test_a_queue_that_is_declared_late_loses_nothing(fields):
    """A deployment declares it before anybody publishes, and after a start a queue is not listed at once."""
    for after in (15, 30, 120):
        assert "warning" not in {
            severity for severity, *_ in of(look(film(redeclared(**fields), until=BEGAN + after)), DROPPED)
        }


def test_an_exchange_that_always_drops_a_share_is_not_explained_by_it():
    """That one loses messages at other times, too."""
    found = facts(look(film(redeclared(always=4.0), until=BEGAN + 200)), DROPPED)

    assert ([], ["stamps"]) == (found["away"], found["also_away"])


def test_messages_that_come_back_are_not_lost():
    """The publisher sets `mandatory`, and can publish them again."""
    frame = redeclared(counter="return_unroutable")

    assert [("info", "exchange", "tickets")] == of(look(film(frame, until=BEGAN + 30)), RETURNED)
    assert [] == of(look(film(frame, until=BEGAN + 120)), RETURNED)


@pytest.mark.parametrize("fields", [{"auto_delete": True}, {"exclusive": True}, {"durable": False}])
def test_a_queue_that_is_not_made_to_last_is_no_warning(fields):
    """It goes once with its consumer, as a deployment does."""
    assert "warning" not in {
        severity for severity, *_ in of(look(film(redeclared(**fields), until=BEGAN + 25)), DROPPED)
    }
    assert [] == of(look(film(redeclared(**fields), until=BEGAN + 120)), DROPPED)


def test_the_end_of_an_empty_lasting_queue_is_kept_until_it_is_back():
    """Only the first reading with it counts, and queues that never had a message are not kept."""
    used = queue("stamps", stats=stats(publish=5, ack=5))
    others = (queue("idle"), queue("reply", exclusive=True, stats=stats(publish=5)), queue("stays"))
    ended = endings([(moment(0), (used, *others))], moment(5), others[2:])
    first, second = queue("stamps", stats=stats(publish=1)), queue("stamps", stats=stats(publish=2))

    assert ["stamps"] == [each.queue.name for each in ended]
    back = come_back(ended, moment(10), others, (*others, first))
    assert (moment(10), first) == back[0].back
    assert back == come_back(back, moment(15), (*others, first), (*others, second))
    assert len(ended) < MOST
    assert replace(back[0], back=None) == Ending(((moment(0), used),), moment(5), None)
