"""The last ten minutes of the queues, from the samples of the broker."""

from itertools import pairwise

import pytest

from ackscope.clock import Instant
from ackscope.counters import MessageStats
from ackscope.snapshot import Node, Overview, Part, Queue, Snapshot
from exporter.broker.queue_history import MOST_QUEUES, past_snapshots
from exporter.broker.settings import ManagementSettings
from tests.unit.exporter.broker.server import json

NOW = Instant(wall=1_800_000_000.0, mono=5_000.0)


def queue(**fields):
    """A queue of now."""
    counted = {"publish": 50, "deliver_get": 20}
    usual = {"messages": 30, "messages_ready": 30, "messages_unacked": 0, "consumers": 0}
    return Queue(vhost="/", name="orders", type="quorum", stats=MessageStats(**counted), **{**usual, **fields})


def first(*queues, uptime=86_400.0, statistics=True):
    """The first snapshot of a look."""
    nodes = (Node(name="rabbit@one", running=True, uptime_seconds=uptime),)
    return Snapshot(
        cluster="shop",
        taken=NOW,
        overview=Part(value=Overview(statistics=statistics), at=NOW),
        nodes=Part(value=nodes, at=NOW),
        queues=Part(value=queues, at=NOW),
    )


def samples(age, step, value):
    """Samples as the API returns them, the newest first; the first one lies in the future."""
    newest = int(NOW.wall) // step * step + step
    marks = range(newest, newest - age - step, -step)
    return {"samples": [{"timestamp": 1000 * mark, "sample": value(mark - NOW.wall)} for mark in marks]}


def item(age, step, name="orders", *, ready=lambda _: 30, unacked=lambda _: 0, **counters):
    """A queue as the API returns it with samples; each figure is a function of the seconds until now."""
    stats = {}
    for counter, value in counters.items():
        stats |= {counter: 0, f"{counter}_details": samples(age, step, value)}
    return {
        "vhost": "/",
        "name": name,
        "messages_details": samples(age, step, lambda at: ready(at) + unacked(at)),
        "messages_ready_details": samples(age, step, ready),
        "messages_unacknowledged_details": samples(age, step, unacked),
        "message_stats": stats,
    }


@pytest.fixture
def past(server):
    """A function that reads the history of a snapshot from a broker whose items are made by another function."""

    def read(snapshot, *made):
        def answer(request):
            age, step = (60, 5) if "lengths_age=60&" in request.path else (600, 60)
            json({"items": [each(age, step) for each in made]})(request)

        server.routes["/api/queues"] = answer
        return past_snapshots(ManagementSettings(url=server.url), snapshot, 5.0)

    return read


def test_samples_become_snapshots_a_minute_apart_and_then_five_seconds_apart(past):
    """Oldest first, dated on both clocks, none in the future."""
    found = past(first(queue()), lambda age, step: item(age, step, publish=lambda at: 50 + int(at // 60)))
    ages = [round(NOW.since(each.queues.at)) for each in found]

    assert ages == sorted(ages, reverse=True)
    assert {60} == {older - newer for older, newer in pairwise(ages) if older > 120}
    assert {5} == {older - newer for older, newer in pairwise(ages) if older <= 60}
    assert (600 >= ages[0] > 500, ages[-1] >= 2.5) == (True, True)
    assert {each.queues.at.wall - each.queues.at.mono for each in found} == {NOW.wall - NOW.mono}


def test_figures_are_those_of_their_time_and_settings_those_of_now(past):
    """Counters that the queue does not have stay unknown."""
    made = queue(arguments={"x-max-length": 5}, memory=7, messages_persistent=30)
    found = past(first(made), lambda age, step: item(age, step, ready=lambda at: 3 if at < -100 else 30, publish=int))
    oldest = found[0].queues.value[0]

    assert (3, 3, 0) == (oldest.messages, oldest.messages_ready, oldest.messages_unacked)
    assert ({"x-max-length": 5}, None, None) == (oldest.arguments, oldest.memory, oldest.messages_persistent)
    assert oldest.stats.ack is None


def test_nobody_consumed_where_ready_messages_were_never_taken(past):
    """Of a queue that has consumers now, or from which some were taken, the number is unknown."""
    taken_once = past(first(queue()), lambda age, step: item(age, step, deliver_get=lambda at: 10 if at < -90 else 20))
    consumed = past(first(queue(consumers=1)), lambda age, step: item(age, step, deliver_get=lambda _: 20))
    counts = [(round(-NOW.since(each.queues.at)), each.queues.value[0].consumers) for each in taken_once]

    assert {0} == {number for at, number in counts if at > -60}
    assert {None} == {number for at, number in counts if at < -90}
    assert {None} == {each.queues.value[0].consumers for each in consumed}


def test_held_messages_leave_the_consumers_unknown(past):
    """A consumer whose prefetch is full takes nothing either."""
    found = past(first(queue()), lambda age, step: item(age, step, unacked=lambda _: 5, deliver_get=lambda _: 20))

    assert {None} == {each.queues.value[0].consumers for each in found}


def test_a_queue_begins_with_its_first_event(past):
    """The broker pads with zeros. A queue without any event may be old."""
    unused = queue(messages=0, messages_ready=0)
    unused = Queue(vhost="/", name="unused", messages=0, messages_ready=0, messages_unacked=0, consumers=0)
    found = past(
        first(queue(), unused),
        lambda age, step: item(age, step, ready=lambda at: 30 if at > -200 else 0),
        lambda age, step: item(age, step, "unused", ready=lambda _: 0),
    )
    names = [(-NOW.since(each.queues.at), sorted(it.name for it in each.queues.value)) for each in found]

    assert all(names_then == (["unused"] if at <= -200 else ["orders", "unused"]) for at, names_then in names)
    assert ["unused"] == names[0][1]


def test_nothing_is_used_from_before_the_start_of_a_node(past):
    """Its samples were lost with it."""
    found = past(first(queue(), uptime=150.0), lambda age, step: item(age, step, publish=lambda _: 50))

    assert found
    assert all(NOW.since(each.queues.at) <= 120 for each in found)


def only(item, holds):
    """The same answer with only some of the samples of the queue's length, chosen by the seconds until now."""
    for name in ("messages_details", "messages_ready_details", "messages_unacknowledged_details"):
        item[name]["samples"] = [it for it in item[name]["samples"] if holds(it["timestamp"] / 1000 - NOW.wall)]
    return item


OTHER = Queue(vhost="/", name="other", messages=30, messages_ready=30, messages_unacked=0)


def test_a_queue_that_was_just_declared_does_not_shorten_the_history_of_others(past):
    """It begins with its first sample, and is in all later lists."""
    found = past(
        first(queue(), OTHER),
        lambda age, step: only(item(age, step, publish=lambda _: 50), lambda at: at > -30),
        lambda age, step: item(age, step, "other"),
    )
    names = [(-NOW.since(each.queues.at), {it.name for it in each.queues.value}) for each in found]

    assert names[0][0] < -500
    assert all(names_then == ({"other"} if at <= -30 else {"orders", "other"}) for at, names_then in names)


def test_a_moment_that_lacks_a_queue_is_left_out(past):
    """The queue would look as if it had been deleted for a while."""
    found = past(
        first(queue(), OTHER),
        lambda age, step: only(item(age, step, publish=lambda _: 50), lambda at: not -40 < at < -20),
        lambda age, step: item(age, step, "other"),
    )

    assert {2} == {len(each.queues.value) for each in found}
    assert not [each for each in found if 20 < NOW.since(each.queues.at) < 40]
    assert NOW.since(found[0].queues.at) > 500


@pytest.mark.parametrize(
    "snapshot",
    [
        first(queue(), statistics=False),
        first(),
        first(*(Queue(vhost="/", name=f"q{number}") for number in range(MOST_QUEUES + 1))),
        Snapshot(cluster="shop", taken=NOW),
    ],
    ids=["without statistics", "without queues", "too many queues", "nothing read"],
)
def test_the_broker_is_not_asked_in_vain(past, server, snapshot):
    """It has no samples, or they cost too much."""
    assert () == past(snapshot, item)
    assert [] == server.seen


@pytest.mark.parametrize(
    "body",
    [[], {}, {"items": None}, {"items": [None, 1, {}, {"vhost": "/", "name": 3}]}]
    + [{"items": [{"vhost": "/", "name": "orders", "messages_details": made}]} for made in (None, [], {"samples": 1})]
    + [{"items": [{**item(600, 60), "messages_ready_details": {"samples": [made]}}]} for made in (3, {"sample": -1})],
)
def test_unusable_answers_give_no_history(server, body):
    """A proxy may answer something else."""
    server.routes["/api/queues"] = json(body)

    assert () == past_snapshots(ManagementSettings(url=server.url), first(queue()), 5.0)


def test_a_refusal_gives_no_history(server):
    """What can be read is diagnosed without it."""
    server.routes["/api/queues"] = json({"error": "not_authorised"}, 401)

    assert () == past_snapshots(ManagementSettings(url=server.url), first(queue()), 5.0)
