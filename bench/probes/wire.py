"""Confirm latency that the probe reports, compared with the captured packets of the same messages on loopback.

With the stream protocol, the delivery latency too.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import requests

from ackscope.errors import BrokerError
from ackscope.records import MessageRecord
from bench.bench import Bench, Document, add_seconds, progress
from bench.capture.confirms import PublishingChannel
from bench.probes.child import ProbeProcess, confirm_settings, settle_settings, streaming_settings
from bench.probes.packets import captured
from bench.tables import ms, percent, quantile, table, us, wrap
from lab.cluster import Lab, start_lab
from lab.native import CLIENTS, listener
from lab.node import NOTHING

RATES = (200, 2000)
SHARE, FLOOR, FLOOR10 = 0.05, 100e-6, 200e-6
"""Goal: within 5 % of the captured latency or 100 microseconds, whichever is larger; with a library's codec, 200."""

_POINTS = (("p1", 0.01), ("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1.0))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--broker", default="4.3", help="version (default 4.3)")
    parser.add_argument("--stream", action="append", help="may be given more than once (default classic and quorum)")
    parser.add_argument("--rate", action="append", type=float, help="may be given more than once (default 200, 2000)")
    other = parser.add_mutually_exclusive_group()
    other.add_argument("--amqp10", action="store_true", help="the settle probe, over AMQP 1.0")
    other.add_argument("--streaming", action="store_true", help="the streaming probe, over the stream protocol")
    parser.add_argument("--realtime", action="store_true", help="with `probes.realtime`: before all ordinary processes")
    parser.add_argument("--nice", type=int, metavar="N", help="priority of the probe process, -10 before others")
    add_seconds(parser, 10)


def measure(args: argparse.Namespace) -> Document:
    """Run each stream at each rate on one broker."""
    streams = ("stream",) if args.streaming else args.stream or ("classic", "quorum")
    with start_lab(args.broker, extra=CLIENTS if args.streaming else NOTHING) as lab:
        rows = [row for stream in streams for rate in args.rate or RATES for row in _rows(lab, stream, rate, args)]
        return {
            "broker": lab.broker,
            "seconds": args.seconds,
            "amqp10": args.amqp10,
            "streaming": args.streaming,
            "rows": rows,
        }


def _rows(lab: Lab, stream: str, rate: float, args: argparse.Namespace) -> list[dict[str, Any]]:
    progress(f"{stream} at {rate:g}/s for {args.seconds:g} s")
    amqp = lab.nodes[0].amqp
    before = () if args.nice is None else ("nice", "-n", str(args.nice))
    port = _stream_port(lab) if args.streaming else None
    settings = (settle_settings if args.amqp10 else confirm_settings)([stream], rate)
    settings = (streaming_settings(rate) if args.streaming else settings).model_copy(update={"realtime": args.realtime})
    with (
        captured(amqp, amqp10=args.amqp10, stream_port=port) as packets,
        ProbeProcess(amqp, settings, before, port) as probe,
    ):
        probe.run(args.seconds)
    name = "streaming" if args.streaming else "settle" if args.amqp10 else "confirm"
    outcome, channels = probe.confirm(stream, name), packets.channels
    if outcome.connects != 1 or len(channels) != 1:
        raise BrokerError(f"the connection broke during the run ({outcome.connects} connects); run it again")
    floor = FLOOR10 if args.amqp10 or args.streaming else FLOOR
    delivered = [replace(record, confirm=record.delivery) for record in probe.messages]
    compared = [(stream, probe.messages, outcome.confirm, channel) for channel in channels]
    compared += [("delivery", delivered, outcome.delivery, channel) for channel in packets.deliveries]
    return [
        {
            "stream": what,
            "rate": rate,
            "doubtful": outcome.doubtful,
            **compare(records, channel, {"p50": quantiles.p50, "p99": quantiles.p99}, floor),
        }
        for what, records, quantiles, channel in compared
    ]


def _stream_port(lab: Lab) -> int:
    def ask(method: str, path: str) -> Any:
        return requests.request(method, lab.nodes[0].management + path, timeout=30).json()

    return listener(ask, "stream")


def compare(
    records: Sequence[MessageRecord],
    channel: PublishingChannel,
    reported: dict[str, float | None],
    floor: float = FLOOR,
) -> dict[str, Any]:
    """Compare records of the probe with the packets of the same messages.

    Args:
        records: records of the probe.
        channel: the captured messages.
        reported: quantiles that the probe reports; they are within 1 % of its records.
        floor: difference in seconds that is always within the goal.
    """
    own = {record.seq: record.confirm for record in records if record.confirm is not None}
    sent = {record.seq: record.intended_at + record.send_delay for record in records}
    wire = {tag: message.latency for tag, message in channel.messages.items() if message.latency is not None}
    both = sorted(own.keys() & wire.keys())
    # The probe's own share before the publish packet; the rest is its share after the ack packet.
    before = [channel.messages[tag].sent / 1e9 - sent[tag] for tag in both]
    whole = [own[tag] - wire[tag] for tag in both]
    parts = {
        "whole": whole,
        "sending": before,
        "reading": [all_ - one for all_, one in zip(whole, before, strict=True)],
    }
    document: dict[str, Any] = {
        "messages": len(both),
        "only_probe": len(own.keys() - wire.keys()),
        "only_wire": len(wire.keys() - own.keys()),
        "difference": {
            part: {name: quantile(values, share) for name, share in _POINTS} for part, values in parts.items()
        },
    }
    for name, share in (("p50", 0.5), ("p99", 0.99)):
        document[name] = _verdict(quantile([wire[tag] for tag in both], share), reported[name], floor)
    return document


def _verdict(wire: float | None, probe: float | None, floor: float) -> dict[str, Any]:
    if wire is None or probe is None:
        return {"wire": wire, "probe": probe, "difference": None, "share": None, "within": None}
    off = probe - wire
    return {
        "wire": wire,
        "probe": probe,
        "difference": off,
        "share": off / wire,
        "within": abs(off) <= max(SHARE * wire, floor),
    }


def lines(document: Document) -> list[str]:
    """The table."""
    spoken = ", AMQP 1.0" if document.get("amqp10") else ", stream protocol" if document.get("streaming") else ""
    rows, floor = document["rows"], FLOOR10 if spoken else FLOOR
    head = ("stream, rate", "", "wire ms", "probe ms", "off us", "off %", f"5 % or {floor * 1e6:.0f} us")
    cells = [
        (
            f"{row['stream']} {row['rate']:g}/s" if name == "p50" else "",
            name,
            ms(row[name]["wire"]),
            ms(row[name]["probe"]),
            us(row[name]["difference"]),
            percent(row[name]["share"]),
            {True: "within", False: "OUTSIDE", None: "not measured"}[row[name]["within"]],
        )
        for row in rows
        for name in ("p50", "p99")
    ]
    names = [name for name, _ in _POINTS]
    spread = [
        (
            f"{row['stream']} {row['rate']:g}/s" if part == "whole" else "",
            str(row["messages"]) if part == "whole" else "",
            str(row["only_probe"] + row["only_wire"]) if part == "whole" else "",
            part,
            *(us(values[name]) for name in names),
        )
        for row in rows
        for part, values in row["difference"].items()
    ]
    doubts = [f"{row['stream']} {row['rate']:g}/s: the probe doubts itself: {row['doubtful']}" for row in rows]
    return [
        f"RabbitMQ {document['broker']}{spoken}, {document['seconds']:g} s each; packets with kernel times (tcpdump)",
        "",
        *table(head, cells),
        "",
        "difference of each message, probe - wire, in us; sending: from the probe's",
        "clock to the packet of the publish; reading: from that of the ack to its clock",
        *table(("stream, rate", "messages", "unmatched", "part", *names), spread),
        "",
        *(line for row, text in zip(rows, doubts, strict=True) if row["doubtful"] for line in wrap(text, "  ")),
    ]


BENCH = Bench(
    name="wire",
    shows="confirm latency of the probe beside the packets of the same messages",
    measure=measure,
    lines=lines,
    add_arguments=add_arguments,
    short=("--seconds", "8"),
)

if __name__ == "__main__":
    raise SystemExit(BENCH.main())
