import pytest

from tests.unit.diagnosis.consumers.results import ever, found, only
from tests.unit.diagnosis.pictures import WALL, channel, connection, consumer, film, look, queue, stats, text

WORKER = "10.0.0.9:50003 -> 10.0.0.1:5672"


def rounds(*, prefetch=30, each=25, every=5, kind="classic", listed=True, got=None, named="thumbnails", present=1):
    """A client that cancels and consumes again every few seconds, and leaves messages unacknowledged each time."""

    def frame(t):
        left = each * int(t // every)
        acked = 5 * int(t // every)
        counters = stats(publish=left + acked + 50, deliver=left + acked + 5, ack=acked, get=got)
        own = (consumer(named, prefetch_count=prefetch),) if listed else ()
        return {
            "queues": (
                queue(
                    named, type=kind, consumers=present, messages_ready=45, messages_unacked=left + 5, stats=counters
                ),
            ),
            "consumers": own,
            "channels": (
                channel(messages_unacked=left + 5, prefetch_count=prefetch, consumer_count=present, stats=counters),
            ),
            "connections": (connection(client_name="thumbnailer"),),
        }

    return frame


def gone(*, held=20, until=10, idle=True, falls=0.0, other=True, got=None, taken_back=False):
    """A client that cancels its only consumer at some second and keeps the channel; another client works on."""

    def frame(t):
        late = t >= until
        left = max(0, held - int(falls * max(0, t - until)))
        work = int(5 * t)
        mine = stats(deliver=held, ack=held - left, get=got)
        here = (consumer(tag="worker", channel_name=f"{WORKER} (1)", connection_name=WORKER),) if other else ()
        total = stats(publish=work + held, deliver=work + held, ack=work + held - left)
        return {
            "queues": (
                queue(
                    consumers=len(here) + (not late), messages_unacked=0 if taken_back and late else left, stats=total
                ),
            ),
            "consumers": (*here, *(() if late else (consumer(prefetch_count=held),))),
            "channels": (
                channel(
                    messages_unacked=left,
                    consumer_count=0 if late else 1,
                    prefetch_count=held,
                    idle_since=WALL + until if late and idle and not falls else None,
                    stats=mine,
                ),
                *((channel(f"{WORKER} (1)", stats=stats(deliver=work, ack=work)),) if other else ()),
            ),
            "connections": (connection(client_name="leaver"), connection(WORKER, client_name="worker")),
        }

    return frame


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"prefetch": 12, "each": 8, "kind": "quorum", "named": "faxes"},
        {"listed": False},
        {"present": 0, "listed": False},
    ],
    ids=["classic", "quorum, other numbers", "not in the list of consumers", "read between two consumers"],
)
def test_a_channel_that_holds_more_than_its_prefetch_is_a_warning(change):
    """Cancelled consumers left it; that others are acknowledged does not matter."""
    finding = only(look(film(rounds(**change), until=60)))
    name = change.get("named", "thumbnails")

    assert ("held-after-cancel", "warning", name) == (finding.rule, finding.severity, finding.subject.name)
    assert change.get("prefetch", 30) == finding.facts["prefetch"]
    assert "cancelled" in text(finding).summary


@pytest.mark.parametrize(
    "frame",
    [rounds(each=1, every=50), rounds(got=5), rounds(prefetch=0), rounds(prefetch=600)],
    ids=["within its prefetch", "polled", "no limit", "large limit"],
)
def test_what_does_not_exceed_a_prefetch(frame):
    """It holds what it may, or the limit is not known."""
    assert "held-after-cancel" not in ever([look(film(frame, until=60))])


@pytest.mark.parametrize("change", [{}, {"held": 7}, {"other": False}, {"idle": False}])
def test_a_channel_without_consumer_that_settles_nothing_is_a_warning(change):
    """Information at first, because a client that ends looks the same."""
    assert [] == [each for each in found(look(film(gone(**change), until=30))) if each[1] != "info"]

    finding = only(look(film(gone(**change), until=75)))

    if change.get("idle", True):
        assert ("held-after-cancel", "warning", "orders") == (finding.rule, finding.severity, finding.subject.name)
    assert "held-after-cancel" == finding.rule


@pytest.mark.parametrize(
    "frame",
    [gone(falls=0.4), gone(held=1), gone(got=20), gone(taken_back=True)],
    ids=["finishes its work", "one long job", "polled", "taken back by the queue"],
)
def test_a_client_that_ends_is_no_warning(frame):
    """What it holds falls, or is one job; or the number of its channel is stale."""
    window = film(frame, until=55)

    assert [] == [each for each in found(look(window)) if each[0] == "held-after-cancel" and each[1] != "info"]


def test_messages_of_cancelled_consumers_are_no_orphans():
    """A channel holds them, although the list of consumers does not link it to the queue."""
    window = film(gone(), until=330)

    assert "orphaned-unacked" not in ever([look(window)])
