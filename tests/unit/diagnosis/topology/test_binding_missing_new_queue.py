"""A queue that is deleted and declared again without its binding, while its exchange goes on."""

import pytest

from ackscope.snapshot import Part
from ackscope.topology import Binding, Bindings, Exchange
from tests.unit.diagnosis.pictures import film, look, moment, queue, stats, text

RULE = "binding-missing"


def again(
    t,
    *,
    name="push.gateway-7",
    others=("push.gateway-8", "push.gateway-9"),
    source="push.all",
    rate=8.0,
    away=(40.0, 43.0),
    bound=False,
    named=0.0,
    consumers=1,
    pauses=False,
    was_bound=True,
    got=True,
    keys=("", ""),
    kind="fanout",
    read_bindings=None,
):
    """A queue goes with its consumer and comes back without its binding; others of the exchange get all messages.

    Args:
        t: second of the film.
        name: of that queue.
        others: queues that stay bound.
        source: the exchange.
        rate: messages a second.
        away: seconds in which the queue does not exist.
        bound: whether it is bound again.
        named: messages a second that come to the new queue by its name.
        consumers: of the new queue.
        pauses: whether the publisher stops, too.
        was_bound: whether the former queue was bound.
        got: whether it got messages.
        keys: routing keys of its binding and of those of the others.
        kind: type of the exchange.
        read_bindings: second after which the bindings are not read any more.
    """
    gone, back = away
    n = int(rate * (min(t, gone) if pauses else t))
    there = t < gone or t >= back
    here = 500 + int(rate * t) if t < gone else int(named * (t - back))
    if bound and t >= back:
        here = int(rate * (t - back))
    mine = Binding(vhost="/", source=source, destination=name, destination_type="queue", routing_key=keys[0])
    theirs = tuple(
        Binding(vhost="/", source=source, destination=each, destination_type="queue", routing_key=keys[1])
        for each in others
    )
    seen = t if read_bindings is None else min(t, read_bindings)
    is_mine = (was_bound and seen < gone) or (bound and seen >= back)
    counters = stats(publish=here or None) if got or t >= gone else stats()
    own = (queue(name, auto_delete=True, consumers=1 if t < gone else consumers, stats=counters),) if there else ()
    return {
        "bindings": Part(value=Bindings(listed=(*theirs, *((mine,) if is_mine else ()))), at=moment(seen), seconds=0.1),
        "exchanges": (
            Exchange(vhost="/", name=source, type=kind, stats=stats(publish_in=n, publish_out=n * len(others))),
        ),
        "queues": (*own, *(queue(each, consumers=1, stats=stats(publish=n)) for each in others)),
    }


def missed(until=120, **options):
    """The findings of the rule."""
    verdict = look(film(lambda t: again(t, **options), until=until))
    return [each for each in verdict.findings if each.rule == RULE]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"rate": 0.6},
        {"rate": 180.0},
        {"away": (40.0, 41.0)},
        {"away": (30.0, 95.0)},
        {"name": "Inventory/Cache", "others": ("ledger",), "source": "stock", "keys": ("sku.*", "#"), "kind": "topic"},
    ],
    ids=["siblings", "seldom", "fast", "at once", "later", "others"],
)
def test_a_queue_that_was_declared_again_without_its_binding(options):
    """It counts from the beginning, so what came before is that of the former queue."""
    name = options.get("name", "push.gateway-7")
    (finding,) = missed(until=options["away"][1] + 75 if "away" in options else 110, **options)

    assert ("warning", "queue", name) == (finding.severity, finding.subject.kind, finding.subject.name)
    assert [name] == finding.facts["new_queues"]
    assert options.get("rate", 8.0) == pytest.approx(finding.facts["rate_before"], rel=0.25)
    assert f"Queue '{name}' was deleted and declared again without that binding" in text(finding).cause


def test_minutes_later_the_other_queues_show_the_pace():
    """Of the former queue one reading is left by then."""
    (finding,) = missed(until=300)

    assert ("warning", pytest.approx(8.0, rel=0.1)) == (finding.severity, finding.facts["rate_before"])


def test_it_is_information_for_a_minute():
    """A deployment may bind it again."""
    (finding,) = missed(until=75)

    assert "info" == finding.severity


@pytest.mark.parametrize(
    "options",
    [
        {"bound": True},
        {"named": 3.0},
        {"consumers": 0},
        {"pauses": True},
        {"was_bound": False},
        {"got": False},
        {"read_bindings": 42.0},
    ],
    ids=[
        "bound again",
        "fed by its name now",
        "nobody consumes",
        "the publisher stopped",
        "it never was bound",
        "it never got a message",
        "the bindings were not read since",
    ],
)
def test_what_looks_alike_is_not_reported(options):
    """The queue gets what it should, or nobody waits for it, or it is not known."""
    assert [] == missed(**options)


def test_a_queue_that_exists_for_some_seconds_is_not_reported():
    """Its application is about to bind it."""
    assert [] == missed(until=46)
