import pytest

from ackscope.errors import BrokerError
from ackscope.second_source import ChannelPublishes
from ackscope.snapshot import Node, Overview
from exporter.broker.prometheus import publishes
from exporter.broker.prometheus.publishes import PublishesReader, decode_publishes
from exporter.broker.prometheus.settings import PrometheusSettings
from tests.unit.exporter.broker.server import reply, serve
from tests.unit.exporter.made import SetClock

A, B = "rabbit@a", "rabbit@b"
OVERVIEW = Overview(rabbitmq_version="4.3.6", node=A)
PATH = "/metrics/detailed"


def answer(node, rows):
    """The answer of an endpoint: (process, exchange) -> published, confirmed, returned and dropped messages."""
    lines = [f'rabbitmq_identity_info{{rabbitmq_node="{node}",rabbitmq_cluster="shop"}} 1']
    for (process, exchange), numbers in rows.items():
        for name, number in zip(
            ("published", "confirmed", "unroutable_returned", "unroutable_dropped"), numbers, strict=True
        ):
            labels = f'channel="{process}",vhost="/",exchange="{exchange}"'
            lines.append(f"rabbitmq_detailed_channel_messages_{name}_total{{{labels}}} {number}")
    return "\n".join([*lines, ""])


def route(node, rows):
    """A node that answers so."""
    return {PATH: reply(answer(node, rows).encode(), content_type="text/plain")}


def nodes(*names):
    """Running nodes."""
    return tuple(Node(name=name, running=True) for name in names)


def test_rows_are_decoded_with_their_counters():
    """As 4.3.6 answers; a quote in a name is escaped."""
    text = answer(A, {("<0.1055.0>", r"a\"b"): (30, 20, 0, 30), ("<0.1060.0>", ""): (14, 0, 7, 0)})

    name, rows = decode_publishes(text)

    assert name == A
    assert [
        ChannelPublishes(
            node=A, process="<0.1055.0>", vhost="/", exchange='a"b', published=30, confirmed=20, returned=0, dropped=30
        ),
        ChannelPublishes(
            node=A, process="<0.1060.0>", vhost="/", exchange="", published=14, confirmed=0, returned=7, dropped=0
        ),
    ] == sorted(rows, key=lambda row: row.process)


def test_a_quote_that_is_not_escaped_hides_no_row():
    """RabbitMQ 3.10.8 writes names as they are."""
    _, rows = decode_publishes(answer(A, {("<0.1.0>", 'a"b'): (30, 0, 0, 30), ("<0.1.0>", "c"): (2, 0, 0, 0)}))

    assert {'a"b': 30, "c": 0} == {row.exchange: row.dropped for row in rows}


def test_a_counter_that_is_not_there_is_absent():
    """Absent is not zero, and neither is a number that no broker can have."""
    labels = '{channel="<0.1.0>",vhost="/",exchange="x"}'
    published, confirmed = (
        f"rabbitmq_detailed_channel_messages_{name}_total{labels}" for name in ("published", "confirmed")
    )

    _, (row,) = decode_publishes(f'rabbitmq_identity_info{{rabbitmq_node="{A}"}} 1\n{published} 3\n{confirmed} NaN\n')

    assert (3, None, None) == (row.published, row.confirmed, row.dropped)
    assert decode_publishes(f"{published} 3\n") is None


def test_all_nodes_are_read_and_losses_come_first():
    """Of more channels than are held, those that lose nothing are left out."""
    one = route(A, {("<0.1.0>", "x"): (90, 0, 0, 0), ("<0.2.0>", "x"): (50, 0, 0, 0)})
    with serve(one) as first, serve(route(B, {("<0.1.0>", "y"): (5, 0, 0, 5)})) as second:
        reader = PublishesReader(PrometheusSettings(urls=(first.url, second.url)), "a", SetClock())

        read = reader.read(OVERVIEW, nodes(A, B))

    assert ((A, B), {}, 0) == (read.nodes, read.unread, read.omitted)
    assert [(B, 5), (A, 90), (A, 50)] == [(row.node, row.published) for row in read.channels]
    assert [f"{PATH}?family=channel_exchange_metrics"] == first.seen
    assert reader.cost[1] == 2


def test_what_is_beyond_the_limit_is_counted(monkeypatch):
    """Memory is bounded, whatever connects."""
    monkeypatch.setattr(publishes, "MOST_ROWS", 2)
    rows = {(f"<0.{number}.0>", "x"): (number, 0, 0, 1 if number == 3 else 0) for number in range(1, 6)}
    with serve(route(A, rows)) as server:
        read = PublishesReader(PrometheusSettings(urls=(server.url,)), "a", SetClock()).read(OVERVIEW, nodes(A))

    assert ([3, 5], 3) == ([row.published for row in read.channels], read.omitted)


def test_a_node_that_does_not_answer_makes_it_partial():
    """It is named, and nothing is summed without it."""
    with serve(route(A, {("<0.1.0>", "x"): (9, 0, 0, 9)})) as up, serve({}) as down:
        settings = PrometheusSettings(urls=(up.url, down.url))
        read = PublishesReader(settings, "a", SetClock()).read(OVERVIEW, nodes(A, B))
        alone = PublishesReader(PrometheusSettings(urls=(up.url,)), "a", SetClock()).read(OVERVIEW, nodes(A, B))

    assert ((A,), {down.where}) == (read.nodes, set(read.unread))
    assert {B: "no address of this node is configured"} == alone.unread


def test_configured_endpoints_that_all_fail_are_an_error():
    """They are asked again each time."""
    with serve({}) as server:
        reader = PublishesReader(PrometheusSettings(urls=(server.url,)), "a", SetClock())
        for _ in range(2):
            with pytest.raises(BrokerError):
                reader.read(OVERVIEW, nodes(A))
        assert 2 == len(server.seen)


def test_a_default_port_that_does_not_answer_is_left_alone_for_ten_minutes(monkeypatch):
    """Nobody configured it, so that is no error."""
    clock = SetClock()
    with serve({}) as server:
        port = int(server.where.rpartition(":")[2])
        monkeypatch.setattr("exporter.broker.prometheus.endpoint.DEFAULT_PORT", port)
        reader = PublishesReader(PrometheusSettings(), "127.0.0.1", clock)

        assert reader.read(OVERVIEW, nodes(A)) is None
        clock.mono += 599
        assert reader.read(OVERVIEW, nodes(A)) is None
        assert 1 == len(server.seen)
        server.routes.update(route(A, {("<0.1.0>", "x"): (9, 0, 0, 9)}))
        clock.mono += 2
        assert (A,) == reader.read(OVERVIEW, nodes(A)).nodes


def test_another_cluster_at_the_default_port_is_not_believed(monkeypatch):
    """Its channels are not ours."""
    with serve(route("rabbit@elsewhere", {("<0.1.0>", "x"): (9, 0, 0, 9)})) as server:
        monkeypatch.setattr("exporter.broker.prometheus.endpoint.DEFAULT_PORT", int(server.where.rpartition(":")[2]))

        assert PublishesReader(PrometheusSettings(), "127.0.0.1", SetClock()).read(OVERVIEW, nodes(A)) is None
