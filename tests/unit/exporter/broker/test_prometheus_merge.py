from dataclasses import replace

import pytest

from ackscope.clock import Instant, SystemClock
from ackscope.counters import MessageStats
from ackscope.second_source import NativeTotals, QueueTypeTotals
from ackscope.snapshot import FAMILIES, Node, Overview, Part, Queue
from ackscope.topology import Exchange
from exporter.broker.prometheus.figures import NodeFigures, QueueFigures
from exporter.broker.prometheus.merge import FigureMerger
from exporter.broker.prometheus.reader import MetricsReader, MetricsScrape
from exporter.broker.prometheus.settings import PrometheusSettings, SourceChoice

A, B = "rabbit@a", "rabbit@b"
OFF = Overview(rabbitmq_version="4.3.6", statistics=False, connections=2, queues=1)


def at(seconds):
    """A moment."""
    return Instant(wall=1e9 + seconds, mono=seconds)


def node(name, queues=None, **known):
    """What an endpoint says."""
    fields = {"totals": {"connections": 1, "channels": 2, "consumers": 3}, "alarms": (), **known}
    return NodeFigures(node=Node(name=name, running=True, mem_used=7), queues=queues or {}, **fields)


def figures(ready=5, *, leads=True, **counters):
    """Figures of a queue at one node."""
    gauges = {
        "messages": ready,
        "messages_ready": ready,
        "messages_unacked": 0,
        "consumers": 1,
        "consumer_capacity": 0.5,
    }
    return QueueFigures(gauges=gauges if ready is not None else {}, leads=leads, counters=counters)


def scrape(*nodes, unread=(), seconds=10):
    """A reading of the endpoints."""
    value = MetricsScrape(nodes=nodes, unread=dict.fromkeys(unread, "refused"))
    return Part(value=value, at=at(seconds), seconds=0.1)


def parts(overview=OFF, queues=None, nodes=None, exchanges=None):
    """What the management API said, at second 9."""
    known = {"overview": overview, "queues": queues, "nodes": nodes, "exchanges": exchanges}
    read = {name: Part(value=value, at=at(9)) for name, value in known.items() if value is not None}
    return {name: read.get(name, Part()) for name in FAMILIES}


def merge(known, read, *, alone=False, settings_read=True):
    """Merge once."""
    return FigureMerger(alone=alone).merged(known, read, settings_read=settings_read)


Q = Queue(vhost="/", name="q", type="quorum", node=A, leader=A, arguments={"x-max-length": 3})


def test_a_queue_without_statistics_gets_its_figures():
    """Its settings come from the management API, its figures from the endpoints."""
    read = scrape(
        node(A, {("/", "q"): figures(publish=4)}), node(B, {("/", "q"): figures(None, leads=None, publish=3, ack=2)})
    )

    joined, reading = merge(parts(queues=(Q,)), read)
    (queue,) = joined["queues"].value

    assert (5, 5, 1, 3) == (queue.messages, queue.messages_ready, queue.consumers, queue.setting("max-length"))
    assert MessageStats(publish=7, ack=2) == queue.stats
    assert queue.consumer_capacity is None
    assert at(10) == joined["queues"].at
    assert ("/metrics/detailed", "rabbitmq_detailed_queue_messages_ready") == joined["queues"].origins["messages_ready"]
    assert "message_stats.ack" in joined["queues"].origins
    assert ((A, B), False) == (reading.value.nodes, reading.value.alone)


def test_a_broker_with_statistics_is_left_alone():
    """Its own figures are complete."""
    known = parts(replace(OFF, statistics=True), (replace(Q, messages_ready=1, consumers=9),))

    joined, reading = merge(known, scrape(node(A, {("/", "q"): figures()})))

    assert known == joined
    assert () == reading.value.families


def test_without_a_reading_nothing_changes():
    """A failure is passed on."""
    known = parts(queues=(Q,))

    joined, reading = merge(known, Part(error="refused"))

    assert (known, "refused", None) == (joined, reading.error, reading.value)


def test_a_partial_sum_is_withheld():
    """Channels of the node that was not read may have acknowledged more."""
    joined, _ = merge(parts(queues=(Q,)), scrape(node(A, {("/", "q"): figures(publish=4)}), unread=("b:15692",)))
    (queue,) = joined["queues"].value

    assert (5, MessageStats()) == (queue.messages, queue.stats)
    assert joined["overview"].value.channels is None


@pytest.mark.parametrize(("leader", "expected"), [(B, 8), ("rabbit@c", None)])
def test_only_the_leader_counts(leader, expected):
    """A former leader still shows its last figures; if nobody is known to lead, there are no figures."""
    read = scrape(node(A, {("/", "q"): figures(5, leads=None)}), node(B, {("/", "q"): figures(8, leads=None)}))

    joined, _ = merge(parts(queues=(replace(Q, leader=leader),)), read)

    assert [expected] == [queue.messages for queue in joined["queues"].value]


def test_a_queue_whose_settings_are_unknown_gets_no_figures():
    """Of a large broker, settings are read in rotation; absent settings would look like none."""
    late, known = Queue(vhost="/", name="q"), Queue(vhost="/", name="r", details_at=at(1))
    read = scrape(node(A, {("/", "q"): figures(), ("/", "r"): figures()}))

    joined, _ = merge(parts(queues=(late, known)), read, settings_read=False)

    assert [None, 5] == [queue.messages for queue in joined["queues"].value]


def test_an_unchanged_queue_stays_the_same_object():
    """Ten thousand idle queues cost nothing downstream."""
    merger, known = FigureMerger(alone=False), parts(queues=(Q,))
    first, _ = merger.merged(known, scrape(node(A, {("/", "q"): figures()})), settings_read=True)
    again, _ = merger.merged(known, scrape(node(A, {("/", "q"): figures()}), seconds=20), settings_read=True)
    changed, _ = merger.merged(known, scrape(node(A, {("/", "q"): figures(6)}), seconds=30), settings_read=True)

    assert first["queues"].value[0] is again["queues"].value[0]
    assert (at(20), 6) == (again["queues"].at, changed["queues"].value[0].messages)


def test_nodes_and_overview_get_what_they_lack():
    """A node that is down has no figures."""
    known = parts(queues=(Q,), nodes=(Node(name=A, running=True, mem_limit=9), Node(name=B, running=False)))

    joined, _ = merge(known, scrape(node(A, {("/", "q"): figures()})))
    up, down = joined["nodes"].value
    overview = joined["overview"].value

    assert (7, 9, None) == (up.mem_used, up.mem_limit, down.mem_used)
    assert (2, 2, 3, 5) == (overview.connections, overview.channels, overview.consumers, overview.messages)


def test_alone_the_endpoints_are_all_there_is():
    """Figures, alarms and nodes; settings are unknown, and no list says who is connected."""
    read = scrape(node(A, {("/", "q"): figures()}, alarms=("memory",)), node(B))

    joined, reading = merge(parts(None), read, alone=True)
    (queue,) = joined["queues"].value
    (check,) = joined["health"].value

    assert (5, False) == (queue.messages, queue.settings_known)
    assert [(A, "memory")] == [(alarm.node, alarm.resource) for alarm in check.alarms]
    assert {"overview", "nodes", "queues", "health"} == {name for name, part in joined.items() if part.value}
    assert reading.value.alone


def test_lasting_differences_are_reported():
    """Half a minute, and no value of one source occurs in the other."""
    merger = FigureMerger(alone=False)

    def seen(seconds, management, endpoint):
        listed = (replace(Q, messages_ready=management, messages_unacked=0, consumers=1),)
        known = parts(replace(OFF, statistics=True), listed)
        known["queues"] = replace(known["queues"], at=at(seconds))
        read = scrape(node(A, {("/", "q"): figures(endpoint)}), seconds=seconds)
        return merger.merged(known, read, settings_read=True)[1].value.disagreements

    growing = [seen(second, 10 * second, 10 * second - 30) for second in range(0, 60, 5)]
    assert [()] * 12 == growing

    steady = [seen(second, 100, 90) for second in range(60, 105, 5)]
    assert () == steady[5]
    (found,) = steady[-1]
    assert ("q", "messages_ready", 100, 90) == (found.queue, found.figure, found.management, found.prometheus)
    assert () == seen(110, 100, 100)


def native(received, commands, **quorum):
    """What AMQP 1.0 clients did at one node."""
    types = {"quorum": QueueTypeTotals(**quorum)}
    return NativeTotals(received=received, types=types, commands={"/": {"q": commands}})


def test_what_amqp_1_0_clients_did_is_summed_over_all_nodes():
    """Each member of a quorum queue has its log: they are the same commands. What one node lacks is unknown."""
    known = parts(replace(OFF, statistics=True), (Q,))
    one, two = native(10, 300, delivered=4, rejected=1), native(5, 298, delivered=2)

    _, reading = merge(known, scrape(node(A, native=one), node(B, native=two)))

    assert (
        NativeTotals(received=15, types={"quorum": QueueTypeTotals(delivered=6)}, commands={"/": {"q": 300}})
        == reading.value.native
    )


def test_what_amqp_1_0_clients_did_is_withheld_while_a_node_is_unread():
    """Its clients may have done the rest."""
    _, reading = merge(parts(), scrape(node(A, native=native(10, 300)), unread=("b:15692",)))

    assert reading.value.native is None


@pytest.mark.parametrize(
    ("choice", "urls", "statistics", "native", "expected"),
    [
        ("auto", ("http://a:15692",), True, True, True),
        ("auto", ("http://a:15692",), True, False, False),
        # An address that nobody configured is not tried for a part of the figures.
        ("auto", (), True, True, False),
        ("auto", (), False, False, True),
        ("both", (), True, False, True),
    ],
)
def test_the_endpoints_are_read_for_what_the_management_api_lacks(choice, urls, statistics, native, expected):
    """It counts nothing of AMQP 1.0 clients, and without statistics nothing at all."""
    reader = MetricsReader(PrometheusSettings(urls=urls), SourceChoice(choice), "a", SystemClock())

    assert expected == reader.wanted(replace(OFF, statistics=statistics), native=native)


IN, IDLE = Exchange(vhost="eu", name="in", type="topic"), Exchange(vhost="eu", name="idle", type="fanout")


def counted(published, dropped=0, returned=0, name="in"):
    """What a node counted of an exchange."""
    return {("eu", name): {"publish_in": published, "drop_unroutable": dropped, "return_unroutable": returned}}


def test_exchanges_get_the_sums_of_all_nodes():
    """What is lost on one node or the other was not routed. An exchange without a row got nothing."""
    read = scrape(node(A, exchanges=counted(50, 7)), node(B, exchanges=counted(30, 1, 2) | counted(9, name="gone")))

    joined, reading = merge(parts(exchanges=(IN, IDLE)), read)
    first, second = joined["exchanges"].value

    assert MessageStats(publish_in=80, publish_out=70, drop_unroutable=8, return_unroutable=2) == first.stats
    assert MessageStats(publish_in=0, publish_out=0, drop_unroutable=0, return_unroutable=0) == second.stats
    assert ("topic", at(10)) == (first.type, joined["exchanges"].at)
    origin = joined["exchanges"].origins["message_stats.drop_unroutable"]
    assert ("/metrics/detailed", "rabbitmq_detailed_exchange_messages_unroutable_dropped_total") == origin
    assert "exchanges" in reading.value.families


def test_an_unchanged_exchange_stays_the_same_object():
    """So that nothing behind the snapshot looks at it again."""
    merger, known = FigureMerger(alone=False), parts(exchanges=(IN, IDLE))
    numbers = (50, 50, 51)
    found = [
        merger.merged(known, scrape(node(A, exchanges=counted(number)), seconds=10 + number), settings_read=True)
        for number in numbers
    ]
    before, same, later = (joined["exchanges"].value for joined, _ in found)

    assert [True, True] == [one is other for one, other in zip(before, same, strict=True)]
    assert [False, True] == [one is other for one, other in zip(before, later, strict=True)]


def test_counters_of_exchanges_stay_while_a_node_is_unread():
    """A sum without one node would look as if the counters began again."""
    merger, known = FigureMerger(alone=False), parts(exchanges=(IN,))
    whole, _ = merger.merged(known, scrape(node(A, exchanges=counted(5)), node(B)), settings_read=True)
    partial, _ = merger.merged(known, scrape(node(B), unread=("a",), seconds=15), settings_read=True)

    assert whole["exchanges"] == partial["exchanges"]
    assert at(10) == partial["exchanges"].at


@pytest.mark.parametrize(
    ("overview", "rows"),
    [(OFF, {}), (OFF, {("eu", "in"): {"publish_in": 5}}), (replace(OFF, statistics=True), counted(5, 1))],
    ids=["before 4.0", "damaged", "statistics on"],
)
def test_exchanges_without_known_counters_are_left_alone(overview, rows):
    """Absent is not zero."""
    joined, _ = merge(parts(overview, exchanges=(IN,)), scrape(node(A, exchanges=rows)))

    assert (IN,) == joined["exchanges"].value


def test_without_a_management_api_the_endpoints_list_the_exchanges():
    """With their type; one without a row got nothing. An unchanged one stays the same object."""
    types = {("eu", "in"): "topic", ("eu", "idle"): "fanout"}
    merger, read = FigureMerger(alone=True), node(A, exchanges=counted(5, 2), exchange_types=types)
    first, _ = merger.merged(parts(overview=None), scrape(read), settings_read=True)
    second, _ = merger.merged(parts(overview=None), scrape(read, seconds=15), settings_read=True)

    found = {each.name: (each.type, each.stats.publish_in) for each in first["exchanges"].value}

    assert {"in": ("topic", 5), "idle": ("fanout", 0)} == found
    assert all(one is other for one, other in zip(first["exchanges"].value, second["exchanges"].value, strict=True))


def test_a_node_that_no_other_one_is_connected_to_any_more_does_not_run():
    """Without a management API. An endpoint that alone does not answer says nothing about its node."""
    merger, every = FigureMerger(alone=True), (A, B, "rabbit@c")
    seen = []
    for peers, answering in (
        ((B, "rabbit@c"), every),
        ((B, "rabbit@c"), (A,)),
        ((B,), (A, B)),
        ((B, "rabbit@c"), every),
    ):
        read = [node(name, peers=tuple(set(peers) | {A} - {name})) for name in answering]
        missing = [name for name in every if name not in answering]
        joined, _ = merger.merged(parts(overview=None), scrape(*read, unread=missing), settings_read=True)
        seen.append([each.name for each in joined["nodes"].value if each.running is False])

    assert [[], [], ["rabbit@c"], []] == seen
    assert ("/metrics", "erlang_vm_dist_node_state") == joined["nodes"].origins["running"]
