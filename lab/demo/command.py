"""`ackscope demo`: run every part of ackscope on a private broker, to look at or as a self-test with a summary."""

import argparse
import sys
import textwrap
import time
from datetime import UTC, datetime
from typing import Any

from ackscope import tables
from ackscope.cli import argument, print_json, seconds
from ackscope.errors import UsageError
from ackscope.findings import Severity
from lab.brokers import NAMES, SUITES, find_broker, minor
from lab.control import TOOLS
from lab.demo import summary as summaries
from lab.demo.ending import End
from lab.demo.prometheus import CONFIRM_P99, answers, query
from lab.demo.stack import Stack, running_stack
from lab.faults.__main__ import find_fault
from lab.faults.fault import FaultSpec
from lab.node import NOTHING

_LOOK_EVERY = 2.0
_COLUMNS = 80
_CATCH_UP = 30.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare options."""
    parser.add_argument(
        "--for", dest="duration", type=argument(seconds), metavar="TIME",
        help="once everything runs, stop after this time and print a summary (90s, 2m; a plain number is seconds)",
    )  # fmt: skip
    parser.add_argument("--fault", metavar="NAME", help="inject this fault; see `ackscope lab fault --list`")
    parser.add_argument(
        "--broker", metavar="VERSION", help=f"RabbitMQ version: {', '.join(NAMES)} (default {NAMES[0]})"
    )
    parser.add_argument("--nodes", type=int, metavar="N", help="nodes of the cluster, 1 to 3 (default 1)")
    parser.add_argument("--json", action="store_true", help="print the summary as one JSON document")


def run(args: argparse.Namespace) -> int:
    """Run the demo; the exit code is 0 if every part of the flow produced data, else 1."""
    spec = None if args.fault is None else find_fault(args.fault)
    broker, nodes = _suited(spec, args)
    end = End()
    end.listen()
    _say("starting a private RabbitMQ and all parts of ackscope (about a minute)")
    if spec is not None and args.broker is None and broker != NAMES[0]:
        _say(f"RabbitMQ {broker}, because fault {spec.name} is for {' and '.join(spec.brokers or spec.versions)}")
    began = time.monotonic()

    def step(what: str) -> None:
        _say(f"{time.monotonic() - began:5.0f} s  {what}")

    try:
        with running_stack(broker=broker, nodes=nodes, extra=spec.extra if spec else NOTHING, step=step) as stack:
            document = _live(stack, args, end, time.monotonic() - began)
    except KeyboardInterrupt:
        # Interrupted during the start: all processes are stopped by now.
        return 0
    if document is None:
        return 0
    if args.json:
        print_json(document)
    else:
        print(summaries.text(document), flush=True)
    return 0 if summaries.complete(document) else 1


def _suited(spec: FaultSpec | None, args: argparse.Namespace) -> tuple[str, int]:
    """Return the broker version and number of nodes: the requested ones, or defaults that suit the fault.

    Raises:
        UsageError: the fault is not available for the requested version or number of nodes.
    """
    if spec is None:
        return args.broker or NAMES[0], args.nodes or 1
    broker = args.broker
    if broker is None:
        broker = NAMES[0] if len(spec.brokers) == len(SUITES) else (spec.brokers or spec.versions)[0]
    asked = broker if broker in SUITES else minor(find_broker(broker).version)
    if asked not in spec.versions:
        raise UsageError(
            f"fault {spec.name} is not available for RabbitMQ {asked}; use --broker {' or '.join(spec.versions)}"
        )
    if args.nodes is not None and args.nodes < spec.nodes:
        raise UsageError(f"fault {spec.name} needs {spec.nodes} nodes; omit --nodes or use --nodes {spec.nodes}")
    return broker, args.nodes or spec.nodes


def _live(stack: Stack, args: argparse.Namespace, end: End, took: float) -> dict[str, Any] | None:
    """Run until the end; returns the summary, or None if a demo without --for was interrupted."""
    watched = summaries.Watched()
    _say(_where_to_look(stack, took, args.duration))
    stack.note("demo started", time.time())
    up = time.monotonic()
    try:
        if args.fault:
            fault = stack.inject(args.fault)
            _say(_line(" ", _injected(fault)))
            stack.note(_injected(fault), time.time())
        _watch(stack, watched, end, args.duration)
    except KeyboardInterrupt:
        if args.duration is None:
            return None
    end.hold()
    return _summary(stack, watched, time.monotonic() - up)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _where_to_look(stack: Stack, took: float, duration: float | None) -> str:
    node = stack.lab.nodes[0]
    end = "press Ctrl-C to stop everything" if duration is None else f"stops in {duration:.0f} s"
    plain_management = f"http://{node.management.rsplit('@', 1)[1]}"
    return "\n".join(
        [
            "",
            f"ackscope monitors RabbitMQ {stack.lab.broker} (started in {took:.0f} s); {end}",
            f"  dashboard    {stack.dashboard}",
            f"  metrics      http://{stack.exporter}/metrics",
            f"  findings     http://{stack.exporter}/api/v1/findings",
            f"  Prometheus   {stack.prometheus}",
            f"  broker UI    {plain_management}  (guest, guest)",
            f"  AMQP         {node.amqp}",
            f"  rabbitmqctl  export PATH={stack.lab.folder / TOOLS}:$PATH",
            f"  broker logs  {stack.lab.folder / node.name.partition('@')[0] / 'log'}",
            f"  data, logs   {stack.folder}  (deleted at the end)",
            "",
        ]
    )


def _injected(fault: dict[str, Any]) -> str:
    subject = fault["subject"]
    return f"injected {fault['fault']} on {subject['kind']} {subject['name']}; rule {fault['rule']} should find it"


def _line(mark: str, text: str) -> str:
    """Return a line with the time, wrapped for a terminal of 80 columns."""
    return textwrap.fill(f"{_time()} {mark} {text}", _COLUMNS, subsequent_indent=" " * 12, break_on_hyphens=False)


def _time() -> str:
    return datetime.fromtimestamp(time.time(), UTC).strftime("%H:%M:%SZ")


def _watch(stack: Stack, watched: summaries.Watched, end: End, duration: float | None) -> None:
    deadline = None if duration is None else time.monotonic() + duration
    while deadline is None or time.monotonic() < deadline:
        end.check()
        stack.services.check()
        for name in stack.services.ended():
            _say(_line(" ", f"{name} ended, because its connection was closed, and deleted its queues"))
        document = stack.get("/api/v1/findings")
        for finding in watched.see(document):
            mark = "!" if finding["severity"] == Severity.CRITICAL else "-"
            _say(_line(mark, f"{finding['severity']} {finding['rule']}: {finding['summary']}"))
            _say(f"{' ' * 12}why and what to do: {stack.dashboard}")
        for finding in watched.ended(document):
            _say(_line(" ", f"ended: {finding['rule']} ({finding['subject']['name']})"))
        time.sleep(_LOOK_EVERY)


def _summary(stack: Stack, watched: summaries.Watched, watched_seconds: float) -> dict[str, Any]:
    watched.see(stack.get("/api/v1/findings"))
    snapshots = stack.get("/api/v1/snapshot?families=overview").get("clusters", [])
    counters = snapshots[0]["overview"]["value"]["stats"] if snapshots and snapshots[0]["overview"]["value"] else {}
    metrics_ok = answers(f"http://{stack.exporter}/metrics")
    dashboard_ok = answers(f"{stack.dashboard}/_stcore/health", "ok")
    p99 = query(stack.prometheus, CONFIRM_P99, "queue_type")
    stack.services.stop("exporter")
    confirm, send_delay = summaries.confirm_figures(stack.landing)
    return {
        "broker": stack.lab.broker,
        "seconds": round(watched_seconds, 1),
        "findings": list(watched.findings.values()),
        "confirm": confirm,
        "send_delay_p99": send_delay,
        # The metric is absent until the first redelivery.
        "redeliveries": counters.get("redeliver") or 0,
        "landing_rows": summaries.rows(stack.landing, tables.LANDING),
        "rollup_rows": _rollup_rows(stack),
        "prometheus_confirm_p99": p99,
        "dashboard_ok": dashboard_ok,
        "metrics_ok": metrics_ok,
    }


def _rollup_rows(stack: Stack) -> int:
    deadline, last, same = time.monotonic() + _CATCH_UP, -1, 0
    while time.monotonic() < deadline and same < 4:
        now = summaries.rolled(stack.rollups, tables.MINUTES)
        same, last = (same + 1, now) if now == last else (0, now)
        time.sleep(2)
    return last
