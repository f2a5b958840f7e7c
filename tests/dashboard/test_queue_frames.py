"""Frames of the page of a queue: its history, its marks, its ledger, its flow, and sparklines."""

import re
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from urllib.parse import unquote
from xml.etree import ElementTree as ET

import pandas as pd
import pytest

from ackscope.format import ABSENT
from dashboard.charts import flow_chart, gantt_chart, node_charts, queue_charts, sparkline
from dashboard.data.model import MetricSeries
from dashboard.data.notes import Note
from dashboard.data.queue_reports import QueueLedger
from dashboard.frames import (
    confirm_frames,
    consumer_rows,
    flow_graph,
    ledger_rows,
    minute_frames,
    node_history,
    queue_history,
    vhost_traffic,
)
from dashboard.frames.dead_letters import DeadLetterRoute, lost_first, sources
from dashboard.frames.minute_frames import Axis
from dashboard.frames.vhost_traffic import PublishingClient, RouteCertainty, VhostTraffic
from tests.dashboard.answers import HOSTILE, stuck
from tests.dashboard.rollup_files import latency_row

NOW = datetime(2026, 3, 1, 12, 0, 30, tzinfo=UTC)
AXIS = Axis.between(datetime(2026, 3, 1, 11, 46, tzinfo=UTC), datetime(2026, 3, 1, 12, 1, tzinfo=UTC), 1)


def minutes(*back: int) -> pd.DataFrame:
    """Rows of the history, so many minutes ago."""
    rows = [
        {
            "minute": datetime(2026, 3, 1, 12, 0, tzinfo=UTC) - timedelta(minutes=each),
            "messages_ready_last": 10.0,
            "messages_unacked_last": 2.0,
            "published": 600.0,
            "delivered": 600.0,
            "acked": 600.0,
            "redelivered": None,
            "consumers_last": 2.0,
        }
        for each in back
    ]
    return pd.DataFrame(rows)


def line(name: str, *points: tuple[float, float | None]) -> MetricSeries:
    """A series of the exporter."""
    return MetricSeries(name=name, unit="rate", value=points[-1][1], line=points)


def test_the_history_is_continued_by_the_latest_readings() -> None:
    """Per second in both; readings that the history already covers are left out."""
    found = queue_history.series(minutes(4, 3, 2), [line("publish", (200, 9.0), (60, 12.0), (0, 14.0))], NOW, AXIS)
    known = found["published"].dropna()

    assert [10.0, 10.0, 10.0, 12.0, 14.0] == list(known)
    assert [NOW - timedelta(seconds=60), NOW] == list(known.index[-2:])
    assert found["redelivered"].isna().all()


def test_a_gap_is_neither_zero_nor_a_line() -> None:
    """Between the history and the readings, within both, and in the shade."""
    readings = [line("ready", (200, 5.0), (150, None), (20, 8.0))]
    found = queue_history.series(minutes(14, 13, 11), readings, NOW, AXIS)
    ready = found["ready"]
    covered = queue_history.coverage(found, AXIS)["data"]

    assert 0.0 not in set(ready)
    assert pd.isna(
        ready[(ready.index > NOW - timedelta(minutes=10)) & (ready.index < NOW - timedelta(seconds=210))]
    ).all()
    assert [10.0, 10.0, 10.0, 5.0, 8.0] == list(ready.dropna())
    assert [True, True, False, True] == list(covered.notna()[:4])
    assert pd.isna(covered[datetime(2026, 3, 1, 11, 52, tzinfo=UTC)])
    assert covered.notna().iloc[-1]


def test_without_history_the_readings_are_shown() -> None:
    """A queue that is watched since a minute has a curve."""
    found = queue_history.series(pd.DataFrame(), [line("ack", (60, 1.0), (0, 2.0))], NOW, AXIS)

    assert [1.0, 2.0] == list(found["acked"].dropna())
    assert set(queue_charts._LINES) == set(found)


def test_consumers_that_went_and_came_are_marks() -> None:
    """With both numbers; unknown numbers change nothing."""
    index = pd.date_range(AXIS.start, periods=5, freq="1min")
    marks = queue_history.consumer_marks(pd.Series([2.0, float("nan"), 2.0, 0.0, 1.0], index=index))

    assert ["2 consumers went: 2 to 0", "1 consumer came: 0 to 1"] == [mark.text for mark in marks]
    assert [index[3], index[4]] == [mark.at for mark in marks]


def test_findings_and_notes_within_the_axis_are_marks() -> None:
    """Those of another time are not."""
    began = stuck()
    inside = [began.__class__(**{**_fields(began), "since": "2026-03-01T11:50:00Z"})]
    outside = [began.__class__(**{**_fields(began), "since": "2026-03-01T10:00:00Z"})]
    note = Note(cluster="shop", at=NOW.timestamp(), written=NOW.timestamp(), author="", text="deployed")

    assert ["stuck-consumer"] == [it.text for it in queue_history.finding_marks(inside, (), "/", "q", AXIS)]
    assert () == queue_history.finding_marks(outside, (), "/", "q", AXIS)
    assert ["somebody: deployed"] == [it.text for it in queue_history.note_marks([note], AXIS)]


def _fields(finding: object) -> dict[str, object]:
    return {name: getattr(finding, name) for name in finding.__dataclass_fields__}  # type: ignore[attr-defined]


def test_a_ledger_says_what_is_proven() -> None:
    """What may be the delay between counters is not called lost."""
    found = QueueLedger(
        seconds=60.0,
        arrived=1000,
        delivered=900,
        acked=800,
        auto=0,
        redelivered=3,
        discarded=50,
        vanished=4,
        discarded_error=10,
        vanished_error=9,
        stored=-12,
        proven_discarded=40,
        proven_vanished=0,
    )
    rows = {row["Entry"]: (row["Messages"], row["Note"]) for row in ledger_rows.rows(found)}

    assert ("40", "neither acknowledged nor in the queue; up to 10 more, not certain") == rows["Lost after delivery"]
    assert ("0", "up to 4, not certain") == rows["Lost before delivery"]
    assert "-12" == rows["Stored: change"][0]
    assert "Out: automatic ack" not in rows
    assert ledger_rows.reason(found) is None
    assert "stream" in str(ledger_rows.reason(QueueLedger(because="stream")))


def _paths(address: str) -> list[str]:
    """The paths of a sparkline in a table: the line of zero, then the curve."""
    root = ET.fromstring(unquote(address.removeprefix("data:image/svg+xml,")))
    return [path.get("d") or "" for path in root.findall("{http://www.w3.org/2000/svg}path")]


def test_a_gap_of_a_sparkline_in_a_table_stays_a_gap() -> None:
    """Neither the curve nor the line of zero is drawn in it; time is as long as it was asked for."""
    zero, curve = _paths(sparkline.cell([(600.0, 0.0), (300.0, 4.0), (200.0, None), (100.0, 2.0)], 600.0))
    old = _paths(sparkline.cell([(900.0, 7.0), (30.0, 1.0)], 600.0))

    assert "M2 21H35M57 21H57" == zero
    assert "M2 21L35 3M57 12L57 12" == curve
    assert "M65 3L65 3" == old[1]


def test_a_sparkline_for_low_rows_is_wide() -> None:
    """The same curve over all of the width."""
    zero, _ = _paths(sparkline.cell([(600.0, 1.0), (0.0, 4.0)], 600.0, sparkline.LOW_ROWS))

    assert f"M2 21H{sparkline.LOW_ROWS - 2}" == zero


def test_a_sparkline_without_a_value_says_so() -> None:
    """It is neither blank nor a line of zeros."""
    for line in ([], [(30.0, None)], [(900.0, 5.0)]):
        assert ">no data<" in unquote(sparkline.cell(line, 600.0))
        assert [] == _paths(sparkline.cell(line, 600.0))


def test_a_sum_is_unknown_where_one_part_is() -> None:
    """And there is none without both."""
    ready, unacked = [(20.0, 1.0), (10.0, None), (0.0, 2.0)], [(20.0, 4.0), (10.0, 5.0), (0.0, 6.0)]

    assert [(20.0, 5.0), (10.0, None), (0.0, 8.0)] == sparkline.total(ready, unacked)
    assert [] == sparkline.total(ready, [])


def traffic(received: dict[str, float | None], **rates: float) -> VhostTraffic:
    """Traffic of clients with these rates."""
    clients = tuple(PublishingClient(name, rate, 1, own=name.startswith("ackscope")) for name, rate in rates.items())
    return VhostTraffic(clients=clients, received=received)


def test_with_one_busy_exchange_publishers_are_certain() -> None:
    """Who publishes can only publish to it; the probes are left out."""
    found = traffic({"orders": 10.0, "idle": 0.0}, shop=7.0, web=3.0, ackscope_probe=2.0)

    assert [("shop", RouteCertainty.CERTAIN), ("web", RouteCertainty.CERTAIN)] == [
        (client.name, sure) for client, sure in found.publishers("orders")
    ]
    assert [] == found.publishers("idle")
    assert 4.0 == found.route_rate(["orders", "idle"], "orders", 4.0)


def test_with_several_busy_exchanges_a_publisher_is_possible_unless_its_rate_fits() -> None:
    """A rate that fits two exchanges, or two clients with one rate, prove nothing."""
    found = traffic({"orders": 10.0, "mail": 4.0, "": 0.0}, shop=10.1, web=2.0, cron=2.0)
    twice = traffic({"orders": 10.0, "mail": 10.0}, shop=10.0)

    assert [("shop", RouteCertainty.FITS)] == [(it.name, sure) for it, sure in found.publishers("orders")]
    assert [("web", RouteCertainty.POSSIBLE), ("cron", RouteCertainty.POSSIBLE)] == [
        (it.name, sure) for it, sure in found.publishers("mail")
    ]
    assert [RouteCertainty.POSSIBLE] == [sure for _, sure in twice.publishers("orders")]
    assert found.route_rate(["orders", "mail"], "orders", 12.0) is None


def test_an_unknown_rate_is_not_idle() -> None:
    """An exchange that was read once may be busy."""
    found = traffic({"orders": 10.0, "new": None}, shop=10.0)

    assert {"orders", "new"} == found.busy
    assert found.route_rate(["orders", "new"], "orders", 5.0) is None


def lists(**rates: float | None) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Channels, connections and exchanges of clients with these rates; all publish to one exchange."""
    channels = pd.DataFrame(
        [(f"{who} (1)", "/", who, rate, 0.0, 0.0) for who, rate in rates.items()],
        columns=list(vhost_traffic.CHANNEL_COLUMNS),
    )
    connections = pd.DataFrame(
        [(who, f"ackscope-{who}" if who == "probe" else who, "", "10.0.0.1") for who in rates],
        columns=list(vhost_traffic.CONNECTION_COLUMNS),
    )
    total = sum(rate or 0 for rate in rates.values())
    rows = [("/", "", "direct", 9, total, 9, total), ("/", "new", "direct", None, None, None, None)]
    exchanges = pd.DataFrame(rows, columns=list(vhost_traffic.EXCHANGE_COLUMNS))
    return channels, connections, exchanges


def test_what_the_probes_publish_is_not_traffic_of_applications() -> None:
    """An exchange that only they use is idle."""
    assert {"": 0.0, "new": 0.0} == vhost_traffic.traffic("/", *lists(probe=5.0)).received
    assert {"": 4.0, "new": 0.0} == vhost_traffic.traffic("/", *lists(probe=5.0, shop=4.0)).received
    assert vhost_traffic.traffic("/", *lists(shop=None)).problem is not None


def graph(number: int = 1, name: str = "orders") -> flow_graph.FlowGraph:
    """A queue with so many consumers of different clients, one exchange and a dead-letter route."""
    bindings = pd.DataFrame(
        [("/", "in", name, "queue", "paid"), ("/", "all", "in", "exchange", "#")],
        columns=["vhost", "source", "destination", "destination_type", "routing_key"],
    )
    consumers = pd.DataFrame(
        [
            {
                "vhost": "/",
                "queue": name,
                "tag": f"t{each}",
                "client": f"{name} worker {each}",
                "host": "10.0.0.1",
                "channel": f"c{each}",
                "beside": 1,
                "protocol": "",
                "acks": "manual",
            }
            for each in range(number)
        ],
        columns=list(consumer_rows.none().columns),
    )
    flowing = VhostTraffic(
        clients=(PublishingClient(name, 8.0, 3, ("10.0.0.1",)),),
        received={"in": 8.0, "all": 0.0},
        channels={f"c{each}": (2.0, 1.5) for each in range(number)},
    )
    dead = (DeadLetterRoute("/", name, "dlx", "dead"),)
    return flow_graph.of_queue("/", name, bindings, consumers, dead, flowing, published=8.0, details=("3 ready",))


def test_the_flow_around_a_queue() -> None:
    """Publisher, exchanges, queue, consumer and dead letters, with rates where they are known."""
    found = graph()
    rates = {(it.start, it.end): it.rate for it in found.lines}

    assert (8.0, 8.0, 2.0) == (
        rates["publisher:orders", "exchange:in"],
        rates["exchange:in", "queue:orders"],
        rates["queue:orders", "consumer:orders worker 0"],
    )
    assert ("3 connections" in found.boxes["publisher:orders"].details, "key paid") == (
        True,
        found.boxes["exchange:in"].details[-1],
    )
    assert ("/", "dead") == found.boxes["queue:dead"].opens
    assert {("queue:orders", "dead letters:dlx"), ("dead letters:dlx", "queue:dead")} == {
        (it.start, it.end) for it in found.lines if it.dead
    }


@pytest.mark.parametrize("number", [0, 1, 3, 60])
def test_any_number_of_boxes_is_readable(number: int) -> None:
    """No two boxes of a column overlap, and those that are not shown are counted."""
    found = graph(number)
    figure = flow_chart.flow_chart(found)
    boxes = sorted((it.x0, it.y0, it.y1) for it in figure.layout.shapes if it.type == "rect")

    assert all(after[1] >= before[2] for before, after in pairwise(boxes) if after[0] == before[0])
    assert all(-5 <= top < bottom <= figure.layout.height for _, top, bottom in boxes)
    if number == 60:
        assert "40 more consumers" == found.boxes["rest:consumers"].title
    if number == 0:
        assert "no consumer" == found.boxes["rest:none"].title


def test_long_and_hostile_names_are_whole_and_harmless() -> None:
    """Names break into lines instead of being cut; markup is text."""
    name = "payments.eu-west.settlement.batch.high-priority.retry"
    texts = [note.text for note in flow_chart.flow_chart(graph(1, name)).layout.annotations]
    hostile = flow_chart.flow_chart(graph(1, HOSTILE))

    assert any(name == text.replace("</b><br><b>", "").split("</b>")[0].removeprefix("<b>") for text in texts)
    assert not any("<script" in note.text or "<img" in note.text for note in hostile.layout.annotations)
    assert not any("<script" in text or "<img" in text for text in hostile.data[0].text)


def test_a_sick_queue_stands_out_from_its_neighbours() -> None:
    """And a healthy one has no colour of a severity."""
    nothing = pd.DataFrame(columns=["vhost", "source", "destination", "destination_type", "routing_key"])
    colours = [
        {
            shape.line.color
            for shape in flow_chart.flow_chart(
                flow_graph.of_queue("/", "q", nothing, consumer_rows.none(), (), VhostTraffic(), sick=sick)
            ).layout.shapes
        }
        for sick in (True, False)
    ]

    assert [True, False] == [flow_chart.SICK in found for found in colours]
    healthy = flow_chart.COLOURS[flow_graph.QUEUE]
    assert healthy not in gantt_chart.COLOURS.values()


def test_boxes_of_a_picture_with_few_columns_fit_a_phone() -> None:
    """No line is wider than a box of a column of 240 pixels, at 6.6 pixels for a letter."""
    nothing = pd.DataFrame(columns=["vhost", "source", "destination", "destination_type", "routing_key"])
    name = "payments.eu-west.settlement.batch.high-priority.retry"
    found = flow_graph.of_queue("/", name, nothing, consumer_rows.none(), (), VhostTraffic())
    lines = [line for note in flow_chart.flow_chart(found).layout.annotations for line in note.text.split("<br>")]

    assert len(found.columns) < 4
    assert all(len(re.sub("<.*?>", "", line)) * 6.6 < 0.8 * flow_chart.COLUMN_WIDTH for line in lines)


def test_the_map_of_a_virtual_host_is_bounded() -> None:
    """The busiest queues are drawn, the others are counted; queues of probes are left out; a sick one stands out."""
    rows = pd.DataFrame(
        {
            "vhost": "/",
            "queue": [*(f"q{number:03}" for number in range(200)), "ackscope.probe.x"],
            "published": [*(float(number) for number in range(200)), 9.0],
            "acked": 0.0,
            "ready": 0.0,
            "unacked": float("nan"),
            "consumers": 1.0,
            "urgency": 3,
            "finding": [*("" for _ in range(199)), "no-consumer", ""],
            "own": [*(False for _ in range(200)), True],
        }
    )
    bindings = pd.DataFrame(columns=["vhost", "source", "destination", "destination_type", "routing_key"])
    found = flow_graph.of_vhost("/", rows, bindings, (), traffic({"": 19_900.0}, shop=19_900.0))

    assert "180 more queues" == found.boxes["rest:queues"].title
    assert "queue:q199" in found.boxes
    assert "queue:ackscope.probe.x" not in found.boxes
    assert f"{ABSENT} unacked" in found.boxes["queue:q199"].details[0]
    assert 21 == sum(len(column) for column in found.columns if "queue:q199" in column)
    assert ["queue:q199"] == [key for key, box in found.boxes.items() if box.sick]
    assert "finding: no-consumer" == found.boxes["queue:q199"].details[-1]
    assert flow_chart.SICK in {shape.line.color for shape in flow_chart.flow_chart(found).layout.shapes}


def test_prefetch_bars_have_their_ceiling() -> None:
    """A channel without a limit has none, and says why."""
    consumers = pd.DataFrame(
        [
            ("/", "q", "a", "c1", "k1", "u", "n", "h", 10, True, True, None, None, None, None),
            ("/", "q", "b", "c1", "k1", "u", "n", "h", 10, True, True, None, None, None, None),
            ("/", "q", "c", "c2", "k2", "u", "n", "h", 0, True, True, None, None, None, None),
            # AMQP 1.0: two connections, and the same tag in each.
            ("/", "q", "0", None, "k3", "u", "n", "h", 0, True, True, 0, 9, 128, None),
            ("/", "q", "0", None, "k4", "u", "n", "h", 0, True, True, 0, 0, 3, None),
        ],
        columns=list(consumer_rows.CONSUMER_COLUMNS),
    )
    channels = pd.DataFrame([("c1", 2, 20, 0.0), ("c2", 1, 7, 2.0)], columns=list(consumer_rows.CHANNEL_COLUMNS))
    connections = pd.DataFrame(columns=list(consumer_rows.CONNECTION_COLUMNS))
    rows = consumer_rows.prefetch_rows(consumer_rows.consumer_rows(consumers, channels, connections))
    figure = queue_charts.prefetch_bars(rows)

    assert [(20, 20.0), (128, None), (7, None), (3, None)] == [
        (it["unacked"], it["ceiling"] if it["ceiling"] > 0 else None) for it in rows.to_dict("records")
    ]
    assert ("20 of 20", "128, AMQP 1.0", "7, no limit", "3, AMQP 1.0") == figure.data[0].text


READS = consumer_rows.consumer_rows(
    pd.DataFrame(
        [
            ("/", "events", "stream.subid-0", None, "k1", "u", "n", "h", 0, False, True, None, 2, None, 907),
            # Without the plugin that lists it.
            ("/", "events", "stream.subid-1", None, "k2", "u", "n", "h", 0, False, True, None, None, None, None),
            (
                "/",
                "mqtt-subscription-meter-7qos1",
                "mqtt",
                None,
                "k3",
                "u",
                "n",
                "h",
                10,
                True,
                True,
                None,
                None,
                None,
                None,
            ),
        ],
        columns=list(consumer_rows.CONSUMER_COLUMNS),
    ),
    pd.DataFrame(columns=list(consumer_rows.CHANNEL_COLUMNS)),
    pd.DataFrame(
        [
            ("k1", "billing", None, "h", "stream"),
            ("k2", None, "shop", "h", "stream"),
            ("k3", "meter-7", None, "h", "MQTT 3-1-1"),
        ],
        columns=list(consumer_rows.CONNECTION_COLUMNS),
    ),
)


def test_consumers_of_other_protocols_have_their_names_and_no_false_risk() -> None:
    """A reader of a stream acknowledges nothing and has no prefetch: neither is a risk."""
    found = {row["client"]: row for row in READS.to_dict("records")}

    assert {"billing": "stream", "shop@h": "stream", "meter-7": "MQTT"} == {
        client: row["protocol"] for client, row in found.items()
    }
    assert ("", "", 907, 2) == tuple(found["billing"][name] for name in ("hazard", "acks", "lag", "credit"))
    assert ("", 10, "manual") == tuple(found["meter-7"][name] for name in ("hazard", "prefetch", "acks"))


def test_clients_of_a_stream_are_in_its_picture() -> None:
    """Publishers reach it without an exchange; readers are so far behind."""
    columns = list(vhost_traffic.STREAM_PUBLISHER_COLUMNS)
    writers = vhost_traffic.stream_writers(
        pd.DataFrame([("/", "events", "k9", 960, 950, 3), ("/", "other", "k9", 1, 1, 0)], columns=columns),
        pd.DataFrame([("k9", "shop", None, "h")], columns=list(vhost_traffic.CONNECTION_COLUMNS)),
    )
    bindings = pd.DataFrame(columns=["vhost", "source", "destination", "destination_type", "routing_key"])
    found = flow_graph.of_queue("/", "events", bindings, READS, (), traffic({"": 0.0}), writers=writers)

    assert ("7 unconfirmed", "3 refused", "stream") == found.boxes["publisher:stream:shop"].details
    assert ("publisher:stream:shop", "queue:events") in {(line.start, line.end) for line in found.lines}
    assert ("rate unknown", "907 behind the end", "stream", "h") == found.boxes["consumer:billing"].details


def test_a_node_is_shown_against_its_limits() -> None:
    """Bytes as GiB; what the version does not report is left out; the cores are the limit of the run queue."""
    gib = 1024.0**3
    lines = [
        line("mem_used", (60, 2 * gib), (0, 3 * gib)),
        line("mem_limit", (60, 4 * gib), (0, 4 * gib)),
        line("run_queue", (60, 0.0), (0, 5.0)),
        line("processors", (60, 2.0), (0, 2.0)),
    ]
    found = node_history.node_history(pd.DataFrame(), lines, NOW, AXIS)
    figure = node_charts.node_history(found, AXIS)
    titles = [note.text for note in figure.layout.annotations]

    assert ["Memory used, GiB (limit 4)", "Run queue, processes (cores 2)"] == titles
    assert [[2.0, 3.0], [4.0, 4.0], [0.0, 5.0], [2.0, 2.0]] == [list(trace.y[-2:]) for trace in figure.data]
    assert all(trace.connectgaps is False for trace in figure.data)


def test_a_far_limit_is_written_not_drawn() -> None:
    """A curve below a limit that is a thousand times higher would be flat."""
    lines = [line("fd_used", (60, 80.0), (0, 90.0)), line("fd_total", (60, 65_000.0), (0, 65_000.0))]
    figure = node_charts.node_history(node_history.node_history(pd.DataFrame(), lines, NOW, AXIS), AXIS)

    assert ["File descriptors (limit 65,000, not to scale)"] == [note.text for note in figure.layout.annotations]
    assert 1 == len(figure.data)


def confirms(stream: str, seconds: float, *back: int, count: int = 40) -> list[dict[str, object]]:
    """Minutes of one stream with this latency."""
    kind = "none" if stream == "unroutable" else "classic"
    return [
        latency_row(AXIS.end - timedelta(minutes=each), [seconds] * count, stream=stream, queue_type=kind)
        for each in back
    ]


def test_layers_of_a_confirm_add_up_to_its_median() -> None:
    """Step by step; a step in which one layer is missing has none, because a partial stack would look faster."""
    rows = pd.DataFrame(
        [
            *confirms("unroutable", 0.001, 5, 4, 3),
            *confirms("transient", 0.002, 5, 4),
            *confirms("classic", 0.010, 5, 4, 3),
            *confirms("transient", 0.002, 3, count=3),
        ]
    )
    found = confirm_frames.layer_history(rows, AXIS, "classic")
    total = found.sum(axis=1, min_count=1).dropna()
    median = minute_frames.latency(rows, AXIS, "classic")["p50"].loc[total.index]

    assert ["network+channel", "queue", "persist"] == list(found.columns)
    assert 2 == len(total)
    assert list(median) == pytest.approx(list(total))
    assert 0 == len(confirm_frames.layer_history(rows, AXIS, "unknown").columns)


def test_queues_with_the_same_dead_letter_routes_share_a_box() -> None:
    """From four on, of one virtual host; every box has another name."""
    same = [DeadLetterRoute("/", f"q{number}", "dead", "letters") for number in range(5)]
    few = [DeadLetterRoute("/", f"f{number}", "gone", None, "no queue") for number in range(3)]
    far = [DeadLetterRoute("b", f"q{number}", "dead", "letters") for number in range(4)]
    both = [DeadLetterRoute("/", "q0", "dead", "more")]
    found = sources([*same, *few, *far, *both])

    assert {("/", "q0"): "q0 (/)", ("/", "q4"): "q1 and 3 more (/)", ("/", "q1"): "q1 and 3 more (/)"}.items() <= (
        found.items()
    )
    assert ["f0 (/)", "f1 (/)", "f2 (/)"] == [found["/", f"f{number}"] for number in range(3)]
    assert {"q0 and 3 more (b)"} == {found["b", f"q{number}"] for number in range(4)}


def test_routes_that_lose_dead_letters_come_first() -> None:
    """Otherwise the other ones would hide them on a cluster with many."""
    good, lost = DeadLetterRoute("/", "a", "dead", "letters"), DeadLetterRoute("/", "b", "gone", None, "no queue")

    assert (lost, good, good) == lost_first((good, lost, good))
