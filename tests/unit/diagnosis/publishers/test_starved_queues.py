"""Queues that get nothing any more while what fed them goes on."""

from dataclasses import replace

import pytest

from ackscope.snapshot import Part
from ackscope.topology import Binding, Bindings
from tests.unit.diagnosis.pictures import connection, consumer, film, look, queue, snapshot, stats, text
from tests.unit.diagnosis.publishers.films import exchange, facts, findings, of, publisher, shop, suppressed

SILENT, DROPPED, REFUSED = "publisher-silent", "pub-unroutable-dropped", "pub-nacked-overflow"
STOPPED = 60.0


def fed(name, number, **fields):
    """A queue with a waiting consumer that got so many messages."""
    counters = stats(publish=number, deliver=number, ack=number) if number else stats()
    return queue(name, vhost="vh", stats=counters, **fields)


def bound(*names, to="ship"):
    """One binding to each queue."""
    return Bindings(
        listed=tuple(
            Binding(vhost="vh", source=to, destination=name, destination_type="queue", routing_key=name)
            for name in names
        )
    )


def cut_off(t, *, rate=5.0, stopped=STOPPED, other=0.0, total=None, lost=0.0, moved=0.0, name="bill", key_of="ship"):
    """A queue that gets `rate` a second until second `stopped`, beside a sibling.

    The sibling gets as many all the time; `other` a second go elsewhere. The exchange receives `total` a second after
    that, as many as before by default, and drops `lost` of these. Another queue gets `moved` a second more.
    """
    since = max(0.0, t - stopped)
    read = t - t % 15
    read_since = max(0.0, read - stopped)
    whole = rate + other
    after = whole if total is None else total
    received = int(whole * min(read, stopped) + after * read_since)
    dropped = int(lost * since)
    mine = exchange(key_of, received=received, routed=received - int(lost * read_since), vhost="vh", type="topic")
    counters = {"drop_unroutable": dropped} if dropped else {}
    return {
        "queues": (
            fed(name, int(rate * min(t, stopped))),
            fed("audit", int(rate * t)),
            fed("second", int(20 + moved * since)),
        ),
        "bindings": bound(name, "audit", to=key_of),
        "exchanges": Part(value=(mine,), at=snapshot(read).taken, seconds=0.1),
        "channels": (publisher(t, rate=after, counters=counters, vhost="vh"),),
        "connections": (shop(vhost="vh"), connection(vhost="vh", client_name="biller")),
        "consumers": (consumer(name, vhost="vh"),),
    }


@pytest.mark.parametrize(
    ("fields", "until"),
    [({}, 150), ({"rate": 1.5}, 150), ({"rate": 40.0, "name": "q-77af"}, 150), ({"rate": 3.0, "other": 6.0}, 150)],
    ids=["all of it", "slow", "quick, no name", "a third of it"],
)
def test_a_queue_that_gets_nothing_while_its_exchange_goes_on_is_information(fields, until):
    """With its consumer, its former rate, and what goes on."""
    verdict = look(film(lambda t: cut_off(t, **fields), until=until))
    (finding,) = findings(verdict, SILENT)

    assert ("info", fields.get("name", "bill")) == (finding.severity, finding.subject.name)
    starved = finding.facts["starved"]
    assert (["biller"], ["ship"]) == (starved["clients"], starved["exchanges"])
    assert fields.get("rate", 5.0) == pytest.approx(starved["rate_before"], rel=0.2)
    assert "gets nothing any more" in text(finding).summary


def test_it_is_a_warning_after_five_minutes():
    """A job that is done, while another one began, looks the same at first."""
    assert [("warning", "queue", "bill")] == of(look(film(cut_off, until=400)), SILENT)


@pytest.mark.parametrize(
    "fields",
    [
        {"total": 0.0},
        {"other": 6.0, "total": 6.0},
        {"other": 60.0},
        {"stopped": 1e9},
        {"stopped": 0.0},
        {"rate": 0.1},
    ],
    ids=["all stopped", "its publisher stopped", "a small share", "goes on", "stopped before", "rare"],
)
def test_queues_whose_publisher_stopped_or_pauses_are_not_accused(fields):
    """What it got is then missing at the exchange; or it cannot be told."""
    verdict = look(film(lambda t: cut_off(t, **fields), until=200))

    assert [] == of(verdict, SILENT)


def test_a_queue_with_long_pauses_waits_for_longer():
    """Bursts every 50 s; the last pause is no longer than the one before."""

    def frame(t):
        bursts = int(t // 50) + 1
        made = cut_off(t)
        return {**made, "queues": (fed("bill", 100 * min(bursts, 5)), *made["queues"][1:])}

    assert [] == of(look(film(frame, until=290)), SILENT)


def test_a_planned_move_is_suppressed():
    """Another queue with a consumer gets the messages."""
    verdict = look(film(lambda t: cut_off(t, moved=5.0), until=150))

    assert [] == of(verdict, SILENT)
    assert [("bill", "moved")] == suppressed(verdict, SILENT)


def test_a_queue_whose_consumer_left_is_drained_on_purpose():
    """Nobody waits for messages."""

    def frame(t):
        made = cut_off(t)
        first, *rest = made["queues"]
        gone = queue(first.name, vhost="vh", stats=first.stats, consumers=0 if t > 80 else 1)
        return {**made, "queues": (gone, *rest)}

    assert [] == of(look(film(frame, until=150)), SILENT)


@pytest.mark.parametrize("until", [100, 150])
def test_an_exchange_that_drops_what_a_queue_got_names_that_queue(until):
    """A change of a key or a header: as many are dropped as the queue got. Then it is no event without a subscriber."""
    verdict = look(film(lambda t: cut_off(t, rate=2.0, other=6.0, lost=2.0), until=until))

    assert [("warning" if until > 130 else "info", "exchange", "ship")] == of(verdict, DROPPED)
    if until > 130:
        assert ["bill"] == facts(verdict, DROPPED)["fed"]
        assert "'bill' got" in text(findings(verdict, DROPPED)[0]).cause
        assert "harmless" not in text(findings(verdict, DROPPED)[0]).summary


def test_what_nobody_subscribed_to_stays_information():
    """All queues of the exchange get their messages."""
    verdict = look(film(lambda t: cut_off(t, stopped=1e9, rate=2.0, other=6.0), until=150))

    assert [] == of(verdict, DROPPED)


def renamed(t, *, waits=True, bound_to=()):
    """A relay publishes to three queues by their names; one has another name now, and its consumer waits."""
    third = int(2 * t)
    names = ("hop.a", "hop.b")
    default = exchange("", received=3 * third, routed=2 * third, vhost="vh")
    return {
        "queues": (
            *(fed(name, third) for name in names),
            fed("hop.c2", 0, consumers=int(waits)),
        ),
        "bindings": Bindings(
            listed=tuple(
                Binding(vhost="vh", source=to, destination="hop.c2", destination_type="queue", routing_key="#")
                for to in bound_to
            )
        ),
        "exchanges": (default, *(exchange(to, vhost="vh", type="topic") for to in bound_to)),
        "channels": (publisher(t, rate=6, before=0, counters={"drop_unroutable": third} if third else {}, vhost="vh"),),
        "connections": (shop(vhost="vh"),),
    }


@pytest.mark.parametrize(
    ("fields", "unfed"),
    [({}, ["hop.c2"]), ({"waits": False}, []), ({"bound_to": ("events",)}, [])],
    ids=["waits", "nobody waits", "waits for an event"],
)
def test_a_queue_that_waits_for_its_first_message_may_be_meant(fields, unfed):
    """Only its name reaches it."""
    verdict = look(film(lambda t: renamed(t, **fields), until=60))

    assert unfed == facts(verdict, DROPPED)["unfed"]


def blocked(t, *, confirmed=0.0, other=0.0):
    """An outbox repeats its first message, which a full queue refuses; another queue of the exchange gets nothing."""
    full = queue(
        "export",
        vhost="vh",
        consumers=0,
        messages_ready=300,
        arguments={"x-max-length": 300, "x-overflow": "reject-publish"},
        stats=stats(publish=int(500 + 2 * t)),
    )
    mine = publisher(t, vhost="vh")
    counters = stats(publish=int(800 + (2 + confirmed) * t), confirm=int(600 + confirmed * t))
    return {
        "queues": (full, fed("billing", int(600 + other * t))),
        "bindings": bound("export", "billing", to="erp"),
        "exchanges": (exchange("erp", received=int(900 + 2 * t), routed=int(900 + 2 * t), vhost="vh"),),
        "channels": (replace(mine, stats=counters),),
        "connections": (shop(vhost="vh"),),
    }


@pytest.mark.parametrize(
    ("fields", "behind"),
    [({}, ["billing"]), ({"confirmed": 3.0, "other": 3.0}, []), ({"confirmed": 3.0}, [])],
    ids=["repeats", "goes on", "publishes elsewhere"],
)
def test_queues_behind_a_refused_message_are_named(fields, behind):
    """All that the publisher sends is refused."""
    verdict = look(film(lambda t: blocked(t, **fields), until=100))

    assert behind == facts(verdict, REFUSED)["behind"]
