"""dead-letter-cycle: retries of some messages that do not end, while the others are acknowledged."""

import pytest

from tests.unit.diagnosis.pictures import film, look, queue, stats, text
from tests.unit.diagnosis.queues.films import frame, of, one

RULE = "dead-letter-cycle"


def circle(t, *, tries=10_000, ttl=4.0, comes=6.0, fails=1.0, already=0, **fields):
    """Return a film of messages of which some fail for good and wait for their next try, from second 0 on.

    Args:
        t: second of the film.
        tries: after so many a message is given up, and acknowledged.
        ttl: seconds for which it waits.
        comes: published a second; a function of time, or a number.
        fails: of these, how many fail a second; a function of time, or a number.
        already: messages that wait before the film begins.
        fields: `scheduled` (published to the delay queue by a client), `kind`, `names`, `settings` of the delay queue.
    """

    def total(rate, seconds):
        return sum(rate(at) for at in range(int(seconds))) if callable(rate) else rate * max(0.0, seconds)

    work, wait = fields.get("names", ("faturamento", "pedidos.espera"))
    rounds = range(min(tries, int(t / ttl) + 1))
    rejected = int(sum(total(fails, t - number * ttl) for number in rounds) + already * t / ttl)
    failed = int(already + total(fails, t) - total(fails, t - tries * ttl))
    scheduled = int(fields.get("scheduled", 0) * t)
    published = int(total(comes, t))
    acked, waiting = published - failed + already, failed + scheduled
    deliver = acked + rejected
    settings = {"x-message-ttl": int(ttl * 1000), "x-dead-letter-exchange": "", "x-dead-letter-routing-key": work}
    kind = fields.get("kind", "classic")
    return frame(
        queue(
            work,
            type=kind,
            stats=stats(
                publish=100 + published,
                ack=100 + acked,
                deliver=100 + deliver,
                deliver_get=100 + deliver,
                **({"redeliver": rejected} if kind == "quorum" else {}),
            ),
            arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": wait},
        ),
        queue(
            wait,
            type=kind,
            consumers=0,
            messages_ready=waiting,
            stats=stats(publish=scheduled) if scheduled else stats(),
            arguments=fields.get("settings", settings),
        ),
    )


def shot(until, **fields):
    """The result after this many seconds."""
    return look(film(lambda t: circle(t, **fields), until=until))


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"names": ("报表", "报表.等待"), "ttl": 3.0, "comes": 200.0, "fails": 3.0},
        {"kind": "quorum"},
        {"already": 60},
    ],
    ids=["field", "other rates", "dead letters count as redelivered", "it began earlier"],
)
def test_what_waits_for_a_retry_and_only_becomes_more_is_found(fields):
    """Information after ten rounds, a warning after twenty; most messages are acknowledged all the while."""
    ttl, name = fields.get("ttl", 4.0), fields.get("names", ("faturamento",))[0]

    assert [] == of(RULE, shot(ttl * 8, **fields))
    assert ("info", name) == of(RULE, shot(ttl * 18, **fields))[0]
    assert [("warning", name)] == of(RULE, shot(ttl * 45, **fields))


def test_the_finding_says_how_many_wait_and_how_fast_they_become_more():
    """Each is rejected once in a round."""
    finding = one(RULE, shot(120))
    endless = finding.facts["endless"]

    assert (["pedidos.espera"], 120, 0, 1.0) == tuple(
        endless[key] for key in ("delays", "waiting", "waited_before", "growth_rate")
    )
    assert 20 <= endless["rounds"] <= 30
    assert "do not end: 120 messages wait in 'pedidos.espera' for the next try" in text(finding).summary
    assert "may not end" in text(one(RULE, shot(70))).summary


@pytest.mark.parametrize(
    "fields",
    [
        {"tries": 3},
        {"tries": 5},
        {"tries": 8, "ttl": 10.0},
        {"tries": 12, "ttl": 0.5},
        {"tries": 5, "comes": lambda t: 6 + t / 60, "fails": lambda t: 1 + t / 360},
        {"tries": 3, "scheduled": 1.0},
        {"tries": 1, "fails": 0.5, "already": 0},
        {"ttl": 300.0},
        {"settings": {"x-message-ttl": 4000}},
    ],
    ids=[
        "three tries",
        "five tries",
        "eight tries",
        "tries that follow soon",
        "a load that rises",
        "a schedule",
        "each fails once",
        "a long delay",
        "no way back",
    ],
)
@pytest.mark.parametrize("until", [40, 100, 200, 400])
def test_retries_that_end_are_not_accused(fields, until):
    """What waits grows for as many rounds as there are tries, and no longer."""
    assert [] == of(RULE, shot(until, **fields))


def test_a_delay_without_a_ttl_is_judged_by_what_was_rejected():
    """Each message has its own expiration."""
    own = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "faturamento"}

    assert [("warning", "faturamento")] == of(RULE, shot(200, settings=own))


def test_a_long_delay_promises_no_warning():
    """Twenty rounds take longer than readings are held."""
    summary = text(one(RULE, shot(590, ttl=40.0))).summary

    assert "may not end" in summary
    assert "a warning after" not in summary
