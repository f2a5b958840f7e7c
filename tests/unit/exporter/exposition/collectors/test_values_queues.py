"""Values of queues and of their sums, for a handmade cluster."""

from dataclasses import replace

import pytest

from ackscope.clock import Instant
from ackscope.snapshot import MessageStats, Queue
from ackscope.topology import Exchange
from exporter.exposition.cardinality.selection import OTHER
from exporter.exposition.cardinality.top_k import select_all
from exporter.exposition.collectors import dropped, exchanges, queues, totals
from exporter.exposition.encode import render
from tests.unit.exporter.exposition.collectors.reading import values
from tests.unit.exporter.made import part, promtool, small


def queue(name, **more):
    """A queue in the virtual host "/"."""
    return Queue(vhost="/", name=name, **more)


def cluster(*some):
    """The small cluster with these queues."""
    return small(queues=part(some))


def test_counters_of_a_queue_are_its_own():
    """Counters are as the broker reports them; missing ones are absent."""
    seen = values(queues.collect, small())

    assert seen["rabbitmq_queue_messages_published_total", "/", "orders"] == 10
    assert seen["rabbitmq_queue_messages_acked_total", "/", "orders"] == 2
    assert ("rabbitmq_queue_messages_redelivered_total", "/", "orders") not in seen


def test_a_sum_with_a_missing_member_is_withheld():
    """If one queue does not report a value, only the total of its type is absent."""
    some = (
        queue("a", type="classic", messages_ready=1),
        queue("b", type="classic", messages_ready=None),
        queue("c", type="quorum", messages_ready=5),
        queue("d", type="quorum", messages_ready=6),
    )
    seen = values(totals.collect, cluster(*some))

    assert ("ackscope_queues_messages_ready", "classic") not in seen
    assert seen["ackscope_queues_messages_ready", "quorum"] == 11


def test_the_cap_keeps_the_largest_queues_and_the_aggregates_count_all():
    """The rest is one series, so that the sum over all of them is the whole."""
    many = tuple(queue(f"q{number}", type="classic", messages=number, messages_ready=number) for number in range(5))
    shown = values(queues.collect, cluster(*many), max_queues=2)
    whole = values(totals.collect, cluster(*many), max_queues=2)

    messages = {key[2]: value for key, value in shown.items() if key[0] == "rabbitmq_queue_messages"}
    assert {"q4": 4, "q3": 3, OTHER: 3} == messages
    assert whole["ackscope_queues_messages_ready", "classic"] == 10
    assert whole["ackscope_queues", "classic", "unknown"] == 5
    assert values(dropped.collect, cluster(*many), max_queues=2)["ackscope_dropped_series", "queues"] == 3


def test_a_series_that_comes_back_goes_on_where_it_stopped():
    """What its queue counted while hidden is in the remainder, and not counted twice."""
    idle = queue("b", messages_ready=5, consumers=0)
    busy = queue("a", messages_ready=9, consumers=0, stats=MessageStats(publish=100))
    first = cluster(busy, idle)
    hidden = replace(
        cluster(replace(busy, messages_ready=0, stats=MessageStats(publish=130)), idle), taken=Instant(0.0, 9000.0)
    )
    back = replace(
        cluster(replace(busy, messages_ready=50, stats=MessageStats(publish=131)), idle), taken=Instant(0.0, 18000.0)
    )
    name = "rabbitmq_queue_messages_published_total"

    assert values(queues.collect, first, max_queues=1)[name, "/", "a"] == 100
    assert values(queues.collect, first, hidden, max_queues=1)[name, "", OTHER] == 30
    assert (name, "/", "a") not in values(queues.collect, first, hidden, max_queues=1)
    assert values(queues.collect, first, hidden, back, max_queues=1)[name, "/", "a"] == 100
    assert values(queues.collect, first, hidden, back, max_queues=1)[name, "", OTHER] == 31


def test_totals_of_counters_never_fall():
    """A queue that is deleted takes nothing away, and one that restarts counts from zero."""
    before = [queue(name, type="classic", consumers=0, stats=MessageStats(ack=9)) for name in "ab"]
    after = replace(before[0], stats=MessageStats(ack=14))
    restarted = replace(before[0], stats=MessageStats(ack=3))
    moments = (cluster(*before), cluster(after, before[1]), cluster(restarted))
    name = "ackscope_queues_messages_acked_total"

    assert values(totals.collect, *moments[:1], max_queues=9)[name, "classic"] == 0
    assert values(totals.collect, *moments[:2], max_queues=9)[name, "classic"] == 5
    assert values(totals.collect, *moments, max_queues=9)[name, "classic"] == 8


def test_limits_come_from_argument_and_policy():
    """The lower of both counts; times are in seconds; a value that is no number is no limit."""
    capped = queue(
        "capped",
        arguments={"x-max-length": 100, "x-message-ttl": 1500, "x-expires": "odd"},
        effective_policy={"max-length": 50, "overflow": "reject-publish"},
        delivery_limit=20,
    )
    seen = values(queues.collect, cluster(capped))

    assert seen["ackscope_queue_max_length_messages", "/", "capped"] == 50
    assert seen["ackscope_queue_message_ttl_seconds", "/", "capped"] == 1.5
    assert seen["ackscope_queue_delivery_limit", "/", "capped"] == 20
    assert ("ackscope_queue_expires_seconds", "/", "capped") not in seen
    assert ("ackscope_queue_max_length_bytes", "/", "capped") not in seen


def test_replicas_of_a_queue_are_reported_by_node():
    """The series show which nodes have a replica, and whether it is online; the info series has the leader."""
    one = queue("q", type="quorum", leader="n1", members=("n1", "n2"), online=("n1",), state="minority")
    seen = values(queues.collect, cluster(one))

    assert seen["ackscope_queue_member_online", "/", "q", "n1"] == 1
    assert seen["ackscope_queue_member_online", "/", "q", "n2"] == 0
    assert (seen["ackscope_queue_members", "/", "q"], seen["ackscope_queue_members_online", "/", "q"]) == (2, 1)
    assert seen["ackscope_queue_info", "/", "q", "quorum", "n1", "", ""] == 1
    assert seen["ackscope_queue_not_running", "/", "q", "minority"] == 1


def test_queues_without_a_leader_are_counted_even_when_there_is_none():
    """Rules compare with 0."""
    whole = queue("q", type="quorum", leader="n1", members=("n1",), online=("n1",))
    seen = values(totals.collect, cluster(whole, queue("c", type="classic", node="n1")))

    assert seen["ackscope_queues_replication", "quorum", "leaderless"] == 0
    assert seen["ackscope_queues_replication", "quorum", "whole"] == 1
    assert ("ackscope_queues_replication", "classic", "whole") not in seen
    assert seen["ackscope_node_queues", "n1", "quorum"] == 1


def test_old_details_say_when_they_were_read():
    """Details as old as the list have no such time."""
    old = queue("old", messages=1, consumers=2, details_at=Instant(1700.0, 900.0))
    seen = values(queues.collect, cluster(old, queue("new", messages=1, consumers=2)))

    assert seen["ackscope_queue_details_timestamp_seconds", "/", "old"] == 1700
    assert ("ackscope_queue_details_timestamp_seconds", "/", "new") not in seen


def test_exchanges_report_what_goes_in_and_out():
    """Absent before the first message; the default exchange has no name."""
    made = small(exchanges=part(tuple(exchanges_of(({"publish_in": 5, "publish_out": 15}, ""), ({}, "amq.topic")))))
    seen = values(exchanges.collect, made)

    assert seen["rabbitmq_exchange_messages_published_total", "/", ""] == 5
    assert seen["ackscope_exchange_messages_routed_total", "/", ""] == 15
    assert ("rabbitmq_exchange_messages_published_total", "/", "amq.topic") not in seen
    assert seen["ackscope_exchanges", "topic"] == 2


def exchanges_of(*some):
    """Topic exchanges with these counters and names."""
    return [Exchange(vhost="/", name=name, type="topic", stats=MessageStats(**stats)) for stats, name in some]


@pytest.mark.parametrize(
    "name", ['say "hi"', "back\\slash", "new\nline", "", "a" * 255, "{queue=}", "bücher/заказы", "(other)x", "\x00\x7f"]
)
def test_hostile_names_make_clean_text(name):
    """Whatever a queue is called, the text can be read, and names it."""
    one = Queue(vhost=name, name=name, type="quorum", leader=name, members=(name,), online=(), policy=name, state=name)
    collected = small(queues=part((one,)))
    selection = select_all([collected])
    made = [*queues.collect([collected], selection), *totals.collect([collected], selection)]

    assert "" == promtool(render(made))
    assert name in {sample.labels.get("queue") for metric in made for sample in metric.samples}
