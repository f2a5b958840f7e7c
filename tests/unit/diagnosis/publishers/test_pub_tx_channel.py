from datetime import datetime

import pytest

from tests.unit.diagnosis.pictures import WALL, channel, connection, consumer, film, look, queue, stats, text
from tests.unit.diagnosis.publishers.films import busy_queue, findings, of, publisher, shop

RULE = "pub-tx-channel"
BEGAN = 20.0


def left_open(t, *, acks=5, publishes=7, commits=None, idle=True, **fields):
    """A client opens a transaction in second 20, and a new one every `commits` seconds."""
    late = t >= BEGAN
    age = t - BEGAN if commits is None else (t - BEGAN) % commits
    waits = channel(
        **{
            "transactional": True,
            "acks_uncommitted": acks if late and age >= 0 else 0,
            "messages_uncommitted": publishes if late else 0,
            "idle_since": WALL + BEGAN if late and idle and commits is None else None,
            "stats": stats(publish=100 if commits is None else int(100 + t)),
            **fields,
        }
    )
    return {
        "queues": (queue(messages_ready=0, messages_unacked=acks if late else 0),),
        "channels": (waits,),
        "connections": (connection(client_name="ledger"),),
    }


@pytest.mark.parametrize(("seconds", "severity"), [(5, None), (20, "info"), (65, "warning"), (300, "warning")])
def test_an_open_transaction_is_a_warning_after_a_minute(seconds, severity):
    """The broker reports since when the channel is idle."""
    verdict = look(film(left_open, until=BEGAN + seconds))
    found = [each for each in of(verdict, RULE) if each[1] == "connection"]

    assert [severity] * bool(severity) == [each for each, _, _ in found]


def test_an_open_transaction_shows_what_is_uncommitted_and_who_has_it():
    """Acknowledgements and publishes, client and connection."""
    finding = findings(look(film(left_open, until=BEGAN + 70)), RULE)[0]

    expected = {"client": "ledger", "acks_uncommitted": 5, "publishes_uncommitted": 7}
    assert expected == {key: finding.facts[key] for key in expected}
    assert ("ledger",) == finding.involved.clients


@pytest.mark.parametrize(("gather", "severity"), [(20.0, "info"), (300.0, "warning")])
def test_what_gathered_before_the_first_reading_tells_for_how_long_it_is_open(gather, severity):
    """At a steady rate: a client that had published 5/s for five minutes when ackscope began to look."""

    def frame(t):
        picture = left_open(t + BEGAN, acks=0, publishes=int(5 * (gather + t)), idle=False)
        return {**picture, "connections": (connection(connected_at=WALL - 900),)}

    found = [each for each in of(look(film(frame, until=20)), RULE) if each[1] == "connection"]

    assert [severity] == [each for each, _, _ in found]


def gathers(t, *, uncommitted, opened, name="mailer", listed_from=-900.0, **fields):
    """A client of a connection that was opened in second `opened`; its transaction has gathered so much by second t."""
    picture = left_open(BEGAN + t, acks=0, publishes=uncommitted(t), idle=False, **fields)
    client = connection(client_name=name, connected_at=None if opened is None else WALL + opened)
    return {**picture, "channels": picture["channels"] if t >= listed_from else (), "connections": (client,)}


def open_seconds(frame, until, every=5.0):
    """Return for how long a transaction is said to be open, whether by its pace, and the seconds since it began."""
    verdict = look(film(frame, until=until, every=every))
    (finding,) = (each for each in findings(verdict, RULE) if each.facts["open_transaction"])
    began = datetime.fromisoformat(finding.since).timestamp()
    return finding.facts["open_seconds"], finding.facts["by_pace"], WALL + until - began


@pytest.mark.parametrize(
    ("name", "rate", "late"), [("mailer", 4, 5.0), ("ledger-sync", 40, 5.0), ("mailer", 7, 0.0)], ids=str
)
@pytest.mark.parametrize("age", [60.0, 200.0, 700.0])
def test_a_transaction_is_never_open_for_longer_than_its_connection(name, rate, late, age):
    """Two readings 10 s apart show the increase of one refresh, so the pace looks half of what it is."""

    def uncommitted(t):
        return int(rate * (age + (0 if t == 0 else 10.0 - late)))

    seconds, by_pace, since = open_seconds(
        lambda t: gathers(t, uncommitted=uncommitted, opened=-age, name=name), until=10, every=10.0
    )

    assert (True, pytest.approx(seconds, abs=1)) == (by_pace, since)
    assert 0.4 * age <= seconds <= age + 10


def test_what_was_published_at_once_is_no_longer_open_than_the_channel_was_listed():
    """5,000 messages at once, then one a second, on a channel that an earlier reading did not list."""
    seconds, _, _ = open_seconds(
        lambda t: gathers(t, uncommitted=lambda t: int(5000 + t), opened=-3600.0, listed_from=20.0), until=40
    )

    assert 20 <= seconds <= 25


@pytest.mark.parametrize("change", [{"opened": None}, {"opened": -3.0}], ids=["unknown age", "just opened"])
def test_a_pace_says_nothing_about_the_time_before_the_connection(change):
    """What was seen remains: 20 s."""
    seconds, by_pace, _ = open_seconds(lambda t: gathers(t, uncommitted=lambda t: int(900 + t), **change), until=20)

    assert 20 <= seconds <= 23
    assert by_pace == (change["opened"] is not None)


def test_acknowledgements_that_are_committed_every_now_and_then_are_no_open_transaction():
    """Each reading sees some that are not committed yet, and more that were counted since."""

    def frame(t):
        return left_open(t + BEGAN, acks=48 + int(t / 5) % 3, publishes=0, idle=False, stats=stats(ack=int(10 * t)))

    assert [] == [each for each in of(look(film(frame, until=120)), RULE) if each[1] == "connection"]


def test_transactions_that_commit_are_only_slow():
    """Publishing in transactions is information, one finding for each virtual host."""

    def frame(t):
        sends = publisher(t, confirm=False, transactional=True, messages_uncommitted=int(t) % 2)
        return {"queues": (busy_queue(t),), "channels": (sends,), "connections": (shop(),)}

    verdict = look(film(frame, until=120))

    assert [("info", "vhost", "/")] == of(verdict, RULE)


@pytest.mark.parametrize(
    "change",
    [{"acks": 0, "publishes": 0}, {"transactional": False}, {"transactional": None}],
    ids=["nothing uncommitted", "no transactions", "unknown"],
)
def test_other_channels_are_not_reported(change):
    """Nothing is uncommitted."""
    assert [] == of(look(film(lambda t: left_open(t, **change), until=BEGAN + 120)), RULE)


def test_absent_figures_are_not_an_open_transaction():
    """A channel that does not report them."""
    change = {"acks_uncommitted": None, "messages_uncommitted": None}

    assert [] == of(look(film(lambda t: left_open(t, **change), until=BEGAN + 120)), RULE)


@pytest.mark.parametrize(
    ("most", "ready", "others", "severity"),
    [(5, 400, 0, "critical"), (20, 400, 0, "warning"), (5, 0, 0, "warning"), (5, 400, 1, "warning")],
    ids=["uses up its prefetch", "could take more", "nothing waits", "others go on"],
)
def test_a_consumer_that_commits_after_more_than_its_prefetch_stands_still(most, ready, others, severity):
    """It waits for the next message, and the broker for the commit."""

    def frame(t):
        picture = left_open(t, publishes=0)
        held = queue(messages_ready=ready, messages_unacked=5 if t >= BEGAN else 0, consumers=1 + others)
        return {**picture, "queues": (held,), "consumers": (consumer(prefetch_count=most),)}

    finding = next(
        each for each in findings(look(film(frame, until=BEGAN + 70)), RULE) if each.facts["open_transaction"]
    )

    assert (severity, ("orders",)) == (finding.severity, tuple(each.name for each in finding.involved.queues))
    assert (most == 5) == ("its prefetch of 5 is used up" in text(finding).summary)
