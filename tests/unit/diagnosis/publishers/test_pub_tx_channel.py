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
        return left_open(t + BEGAN, acks=0, publishes=int(5 * (gather + t)), idle=False)

    found = [each for each in of(look(film(frame, until=20)), RULE) if each[1] == "connection"]

    assert [severity] == [each for each, _, _ in found]


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
