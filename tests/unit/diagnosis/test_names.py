"""Names that people take for the same, of queues and of exchanges, and whether a finding shows how they differ."""

import io

import pytest

from ackscope.printable import PrintableStream
from ackscope.topology import Binding, Bindings
from diagnosis.names import look_alike, unseen_differences
from tests.unit.diagnosis.pictures import WALL, film, look, queue, stats, text
from tests.unit.diagnosis.publishers.films import exchange, findings, of, publisher, shop

ALIKE = [
    ("orders", "orders ", "U+0020 SPACE"),
    (" bills.v2", "bills.v2", "U+0020 SPACE"),
    ("orders", "\u043erders", "U+043E CYRILLIC SMALL LETTER O"),
    ("t\u0430sks", "tasks", "U+0430 CYRILLIC SMALL LETTER A"),
    ("\u03a1ayments", "payments", "U+03A1 GREEK CAPITAL LETTER RHO"),
    ("or\u200bders", "orders", "U+200B ZERO WIDTH SPACE"),
    ("orders\ufeff", "orders", "U+FEFF ZERO WIDTH NO-BREAK SPACE"),
    ("a\u00a0b", "a b", "U+00A0 NO-BREAK SPACE"),
    ("caf\u00e9", "cafe\u0301", "U+0301 COMBINING ACUTE ACCENT"),
    ("\uff4fut", "out", "U+FF4F FULLWIDTH LATIN SMALL LETTER O"),
    ("jobs\t", "jobs", "U+0009"),
    ("Orders", "orders", None),
    ("orders.new", "ORDERS-new", None),
]
OTHERS = [
    ("orders", "ordres"),
    ("q1", "q2"),
    ("---", "..."),
    ("\u0441\u043e\u0440", "cop"),
    ("orders", "orders"),
    ("mail", "mails"),
    ("\u0437\u0430\u043a\u0430\u0437", "\u0432\u043e\u043b\u043d\u0430"),
]


@pytest.mark.parametrize(("one", "other", "unseen"), ALIKE)
def test_names_that_look_alike(one, other, unseen):
    """In both directions; what a reader does not see is named by its number."""
    assert look_alike(one, other)
    assert look_alike(other, one)
    assert bool(unseen) == bool(unseen_differences(one, other))
    assert unseen is None or unseen in str(unseen_differences(one, other))


@pytest.mark.parametrize(("one", "other"), OTHERS)
def test_names_that_do_not(one, other):
    """Other letters, other numbers, no letters, another language, or the same name."""
    assert not look_alike(one, other)


def lonely(name, other, *, consumers=1):
    """A queue that grows without a consumer beside one that has a consumer and gets nothing."""

    def frame(t):
        growing = queue(name, consumers=0, messages_ready=int(5 * t), stats=stats(publish=int(5 * t)))
        return {"queues": (growing, queue(other, consumers=consumers, stats=stats()))}

    return next(each for each in look(film(frame, until=60)).findings if each.rule == "no-consumer")


def shown(words):
    """What a terminal gets."""
    written = io.StringIO()
    PrintableStream(written).write(words)
    return written.getvalue()


@pytest.mark.parametrize(("one", "other", "unseen"), ALIKE)
def test_the_consumers_of_the_other_queue_are_a_hint(one, other, unseen):
    """The finding shows in a terminal how the names differ, whichever of them has the messages."""
    for name, idle in ((one, other), (other, one)):
        finding = lonely(name, idle)
        words = shown(text(finding).cause)

        assert idle == finding.facts["similar_queue"]
        assert (unseen or "nearly the same") in words
        assert words.isprintable()


@pytest.mark.parametrize(("one", "other"), [each for each in OTHERS if each[0] != each[1] and each[0] != "mail"])
def test_the_consumers_of_another_queue_are_none(one, other):
    """A queue that is idle for another reason."""
    assert lonely(one, other).facts["similar_queue"] is None


def wrong_exchange(one, other, *, kind="fanout", bound=True, busy=False, own=False):
    """A publisher uses an exchange without bindings; `busy`: the bound one gets messages from somebody else."""

    def frame(t):
        lost = int(6 * t)
        made = [Binding(vhost="/", source=other, destination="work", destination_type="queue", routing_key="k")] * bound
        made += [Binding(vhost="/", source=one, destination="work", destination_type="queue", routing_key="x")] * own
        passed = int(3 * t) if busy else 0
        return {
            "queues": (queue("work", stats=stats(publish=passed, deliver=passed, ack=passed) if passed else stats()),),
            "channels": (publisher(t, rate=6.0, before=0, counters={"drop_unroutable": lost} if lost else {}),),
            "connections": (shop(connected_at=WALL, client_name="till"),),
            "exchanges": (
                exchange(one, received=lost, type=kind),
                exchange(other, received=passed, routed=passed, type=kind),
            ),
            "bindings": Bindings(listed=tuple(made)),
        }

    return look(film(frame, until=80))


@pytest.mark.parametrize("kind", ["fanout", "topic", "direct"])
@pytest.mark.parametrize(("one", "other", "unseen"), ALIKE)
def test_an_exchange_whose_name_is_nearly_that_of_a_bound_one_is_a_warning(kind, one, other, unseen):
    """Nobody subscribes to it because the subscribers are at the other one."""
    result = wrong_exchange(one, other, kind=kind)
    (finding,) = findings(result, "pub-unroutable-dropped")

    assert ("warning", other) == (finding.severity, finding.facts["similar_exchange"])
    assert (unseen or "nearly the same") in shown(text(finding).cause)


@pytest.mark.parametrize(
    "fields", [{"bound": False}, {"busy": True}, {"own": True}, {"one": "events", "other": "orders"}]
)
def test_events_without_a_subscriber_stay_information(fields):
    """The other one is not bound, or is used by somebody; this one is bound, too; or the names are different."""
    result = wrong_exchange(**{"one": "orders", "other": "Orders", **fields})

    assert None is findings(result, "pub-unroutable-dropped")[0].facts["similar_exchange"]
    assert fields.get("own") or ["info"] == [severity for severity, *_ in of(result, "pub-unroutable-dropped")]
