"""Faults on real brokers: which rule names them, how soon, and which other findings appear."""

import argparse
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field

from ackscope.cli import nearest
from ackscope.errors import AckscopeError, UsageError
from bench.bench import Bench, Document, progress
from bench.diagnosis.figures import goals, rows_table
from bench.diagnosis.peers import Alert
from bench.diagnosis.record import ClientNamed, FaultResult, commit, record, results_file, today
from bench.diagnosis.scene import SOURCES, FindingDocument, Held, Scene, Source, flat, never_read, scene
from lab.brokers import SUITES, minor
from lab.faults import FAULTS
from lab.faults.fault import FaultSpec, Protocol

WITHIN = 75.0
"""Seconds after which a fault that was not named is missed."""
_ONCE_AFTER = 8.0
"""Seconds until the run of `ackscope diagnose`, because people do not look at once."""
_CLEARED = 60.0
_LOOK = 0.5


@dataclass(slots=True, kw_only=True)
class Row:
    """Result of one fault.

    Attributes:
        seconds: from its being in effect to its finding; None without a finding.
        reported: the same, for a finding that need not name the client.
        severity: of its first finding.
        source: what the exporter has.
        rule: the rule that should name it.
        protocol: what its clients use.
        clients: those that its finding names, at the end of the fault.
        client: whether these contain the client of the fault.
        open: whether this version or source does not tell enough, so that a reason is expected instead of a name.
        unsure: reason for which its rule says that it cannot tell, if the fault was not named; "" without.
        reason: its code.
        under: rule of the cause whose consequence its finding was; "" for a finding of its own.
        once: whether `ackscope diagnose` named it; None if one run cannot show the fault.
        others: "severity rule subject" of unexpected findings.
        cleared: seconds from its end to the end of its finding; None if the finding did not end in time.
        failed: why it was not injected.
        peers: publisher of rules -> names of alerts whose condition began to hold during the fault.
        named_by: publishers with an alert whose name states the cause.
        peers_wait: publisher -> shortest waiting time (`for`) of its alerts, seconds.
        commit: the last one that changed what is measured.
        date: of the run, UTC.
    """

    broker: str
    nodes: int
    fault: str
    source: Source = "all"
    rule: str = ""
    protocol: Protocol = "AMQP 0-9-1"
    seconds: float | None = None
    reported: float | None = None
    severity: str = ""
    clients: list[str] = field(default_factory=list)
    client: ClientNamed = ""
    open: bool = False
    unsure: str = ""
    reason: str = ""
    under: str = ""
    once: bool | None = None
    others: list[str] = field(default_factory=list)
    cleared: float | None = None
    failed: str = ""
    peers: dict[str, list[str]] = field(default_factory=dict)
    named_by: list[str] = field(default_factory=list)
    peers_wait: dict[str, float] = field(default_factory=dict)
    commit: str = ""
    date: str = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--broker", nargs="+", default=["3.10", "4.3"], help=f"of {', '.join(SUITES)} (3.10 4.3)")
    parser.add_argument("--nodes", type=int, default=0, help="only faults that take so many nodes (all)")
    parser.add_argument("--fault", nargs="+", default=[], help="these only (default: all that fit)")
    parser.add_argument("--together", type=int, default=8, help="faults of queues and clients held at once (8)")
    parser.add_argument(
        "--source",
        choices=SOURCES,
        default="all",
        help="what the exporter has: all; statistics-off: a broker without statistics, and its Prometheus endpoints; "
        "prometheus: only these endpoints, and no probes",
    )
    parser.add_argument(
        "--record",
        action="store_true",
        help="write the results into bench/diagnosis/results, from which docs/coverage.md is made",
    )
    parser.add_argument("--compare", action="store_true", help="also evaluate the alert rules that others publish")


def measure(args: argparse.Namespace) -> Document:
    """Inject all chosen faults into brokers of each version, as many at once as possible."""
    unknown = [name for name in args.fault if name not in FAULTS]
    if unknown:
        raise UsageError(
            f"unknown fault {unknown[0]!r}{nearest(unknown[0], list(FAULTS))}; ackscope lab fault --list shows all"
        )
    rows: list[Row] = []
    for broker in args.broker:
        for group in groups(_chosen(args, broker)):
            rows += _group(broker, group, args)
    shown = [asdict(row) for row in rows]
    return {"within": WITHIN, "rows": shown, "goals": [goal.as_dict() for goal in goals(shown)]}


def _chosen(args: argparse.Namespace, broker: str) -> list[FaultSpec]:
    return [
        spec
        for spec in FAULTS.values()
        if broker in (spec.brokers if args.compare else spec.versions)
        and (not args.fault or spec.name in args.fault)
        and args.nodes in {0, spec.nodes}
    ]


def groups(specs: Sequence[FaultSpec]) -> Iterator[list[FaultSpec]]:
    """Group faults that can share a broker: same number of nodes and same start options.

    A fault that wrecks its broker is a group of its own.
    """
    left = list(specs)
    while left:
        first = left[0]
        alike = [spec for spec in left if (spec.nodes, spec.extra) == (first.nodes, first.extra) and not spec.wrecks]
        group = [first] if first.wrecks else alike
        yield group
        left = [spec for spec in left if spec not in group]


def batches(specs: Sequence[FaultSpec], together: int) -> Iterator[list[FaultSpec]]:
    """Yield batches of faults that can be in effect together, then the others one by one."""
    plain = [spec for spec in specs if not spec.alone and not spec.apart]
    loops = [spec for spec in specs if spec.apart and not spec.alone]
    rest = max(1, together - 1) if loops else together
    for first in range(0, len(plain), rest):
        yield plain[first : first + rest] + ([loops.pop(0)] if loops else [])
    yield from ([spec] for spec in (*loops, *(spec for spec in specs if spec.alone)))


def _group(broker: str, group: list[FaultSpec], args: argparse.Namespace) -> list[Row]:
    """Run all faults of a group on one broker; start a new broker after a batch that it did not recover from."""
    rows: list[Row] = []
    left = list(batches(group, args.together))
    while left:
        done = 0
        try:
            with scene(broker, group[0].nodes, group[0].extra, compare=args.compare, source=args.source) as stage:
                for batch in left:
                    done += 1
                    found, well = hold(stage, group[0].nodes, batch)
                    rows += found
                    if args.record:
                        injected = [FaultResult.of(asdict(row)) for row in found if not row.failed]
                        record(results_file(minor(broker), args.source), injected)
                    if not well:
                        break
        except AckscopeError as error:
            done = max(done, 1)
            rows += [_row(spec, broker, spec.nodes, args.source, failed=str(error)) for spec in left[done - 1]]
        left = left[done:]
    return rows


def _row(spec: FaultSpec, broker: str, nodes: int, source: Source, failed: str = "") -> Row:
    return Row(
        broker=broker,
        nodes=nodes,
        fault=spec.name,
        source=source,
        rule=spec.rule,
        protocol=spec.protocol,
        open=minor(broker) not in spec.brokers or never_read(spec.rule, minor(broker), source),
        failed=failed,
        commit=commit(),
        date=today(),
    )


def hold(stage: Scene, nodes: int, batch: Sequence[FaultSpec]) -> tuple[list[Row], bool]:
    """Inject faults, diagnose until all are named or the time is over, revert them, diagnose again.

    Returns the rows, and whether the broker recovered.
    """
    version = stage.lab.broker
    progress(f"{version}, {nodes} nodes: {', '.join(spec.name for spec in batch)}")
    rows = {spec.name: _row(spec, version, nodes, stage.source) for spec in batch}
    before = {_name(found) for found, _ in flat(stage.findings())}
    held_before = stage.peers.holding() if stage.peers else set()
    with ExitStack() as stack:
        held: list[Held] = []
        injecting = threading.Thread(target=_inject, args=(stage, batch, stack, rows, held))
        injecting.start()
        _watch(stage, batch, held, rows, before, injecting)
        _ask_why(stage, held, rows)
        if stage.peers:
            _compare(stage.peers.holding() - held_before, held, rows)
    well = _clear(stage, held, rows, before)
    for row in rows.values():
        said = row.failed or row.seconds or row.unsure
        progress(f"  {row.fault}: {said} {row.severity} once={row.once} {'; '.join(row.others)}")
    return list(rows.values()), well


def _inject(stage: Scene, batch: Sequence[FaultSpec], stack: ExitStack, rows: dict[str, Row], held: list[Held]) -> None:
    """Inject faults one after the other; append each to `held` once it is in effect."""
    for spec in batch:
        try:
            held.append(stack.enter_context(stage.held(spec)))
        except AckscopeError as error:
            rows[spec.name].failed = str(error)


def _watch(
    stage: Scene,
    batch: Sequence[FaultSpec],
    held: Sequence[Held],
    rows: dict[str, Row],
    before: set[str],
    injecting: threading.Thread,
) -> None:
    """Poll findings until all faults are named or the time is over.

    Once all faults are in effect, run `ackscope diagnose` once.
    """
    expected = {rule for spec in batch for rule in (spec.rule, *spec.also)}
    look: threading.Thread | None = None
    began = time.monotonic()
    while time.monotonic() < began + WITHIN:
        if injecting.is_alive():
            began = time.monotonic()
        elif look is None:
            look = threading.Thread(target=_once, args=(stage, held, rows))
            look.start()
        found = flat(stage.findings())
        for item in tuple(held):
            _see(item, found, rows[item.spec.name])
        strange = [
            f"{each['severity']} {_name(each)}" for each, under in found if _is_strange(each, under, expected, before)
        ]
        for row in rows.values():
            row.others += [text for text in strange if text not in row.others]
        looked = look is not None and not look.is_alive()
        if looked and all(rows[item.spec.name].seconds is not None or rows[item.spec.name].open for item in held):
            break
        time.sleep(_LOOK)
    if look is not None:
        look.join()


def _ask_why(stage: Scene, held: Sequence[Held], rows: dict[str, Row]) -> None:
    """Note for faults that were not named why their rules cannot tell."""
    unsure = stage.unsure()
    for item in held:
        if rows[item.spec.name].reported is None:
            reasons = [each for each in unsure if item.is_left_open_by(each)]
            if reasons:
                rows[item.spec.name].unsure = reasons[0]["because"]
                rows[item.spec.name].reason = reasons[0]["reason"]


def _compare(alerts: set[Alert], held: Sequence[Held], rows: dict[str, Row]) -> None:
    for item in held:
        row, name = rows[item.spec.name], item.subject["name"]
        for alert in sorted(alerts, key=lambda each: (each.waits, each.peer, each.name)):
            if alert.queue in {"", name}:
                row.peers.setdefault(alert.peer, []).append(alert.name)
                row.peers_wait.setdefault(alert.peer, alert.waits)
                if item.spec.rule in alert.causes and alert.peer not in row.named_by:
                    row.named_by.append(alert.peer)


def _see(item: Held, found: Sequence[tuple[FindingDocument, FindingDocument | None]], row: Row) -> None:
    reported = [pair for pair in found if item.is_reported_by(pair[0])]
    named = [pair for pair in reported if item.is_named_by(pair[0])]
    if not reported:
        return
    seconds, (each, under) = time.monotonic() - item.since, (named or reported)[0]
    involved = each["involved"]
    row.clients = involved["clients"] or row.clients
    row.client = item.client_in(row.clients, involved["connections"], involved["one_of"])
    if row.reported is None or (named and row.seconds is None):
        row.severity, row.under = each["severity"], under["rule"] if under else ""
    row.reported = seconds if row.reported is None else row.reported
    row.seconds = seconds if named and row.seconds is None else row.seconds


def _once(stage: Scene, held: Sequence[Held], rows: dict[str, Row]) -> None:
    time.sleep(_ONCE_AFTER)
    found = [each for each, _ in flat(stage.once())]
    for item in held:
        if item.spec.one_shot and not rows[item.spec.name].open:
            rows[item.spec.name].once = any(item.is_named_by(each) for each in found)


def _clear(stage: Scene, held: Sequence[Held], rows: dict[str, Row], before: set[str]) -> bool:
    """Measure how long each finding stays after the end of its fault.

    Returns whether all findings of the faults and all new warnings ended in time.
    """
    ended, left = time.monotonic(), list(held)
    strange: set[str] = set()
    while time.monotonic() < ended + _CLEARED:
        found = [each for each, _ in flat(stage.findings())]
        for item in [item for item in left if not any(item.is_named_by(each) for each in found)]:
            rows[item.spec.name].cleared = time.monotonic() - ended
            left.remove(item)
        strange = {_name(each) for each in found if each["severity"] != "info" and not _is_cleanup(each)} - before
        if not left and not strange:
            return True
        time.sleep(_LOOK)
    return False


def _name(found: FindingDocument) -> str:
    return f"{found['rule']} {found['subject']['kind']} {found['subject']['name']}"


def _is_strange(each: FindingDocument, under: FindingDocument | None, expected: set[str], before: set[str]) -> bool:
    expects = each["rule"] in expected or _name(each) in before or _is_cleanup(each)
    return under is None and not expects


def _is_cleanup(each: FindingDocument) -> bool:
    """Return whether a finding is about queues of faults that ended: they are deleted with what is in them."""
    queues = each["involved"]["queues"]
    own = ("fault.", "mqtt-subscription-fault-")
    return each["rule"] == "queue-deleted" and all(queue["name"].startswith(own) for queue in queues)


def lines(document: Document) -> list[str]:
    """Return the table, failed injections, unexpected findings, and the goals."""
    return rows_table(document["rows"], document["goals"])


BENCH = Bench(
    name="faults",
    room="diagnosis",
    shows="faults put into real brokers: named, by which rule, how soon, what else was said",
    measure=measure,
    lines=lines,
    add_arguments=add_arguments,
    short=("--broker", "4.3"),
)

if __name__ == "__main__":
    raise SystemExit(BENCH.main())
