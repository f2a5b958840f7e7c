"""`ackscope lab`: run a private RabbitMQ on this machine, and inject faults into it."""

import argparse
import textwrap
from pathlib import Path

from ackscope.cli import print_json, program
from ackscope.errors import UsageError
from lab.brokers import NAMES
from lab.cluster import MOST_NODES
from lab.control import TOOLS
from lab.faults import FAULT_GROUPS, FAULTS
from lab.faults.__main__ import find_fault
from lab.session import down, fault, up
from lab.state import State, find_place, locked

_WIDTH = 80


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare `up`, `fault` and `down`."""
    actions = parser.add_subparsers(dest="action", metavar="up | fault | down", required=True)
    start = actions.add_parser("up", help="start a broker on loopback; it keeps running")
    versions = f"RabbitMQ version: {', '.join(NAMES)} (default: distro, the package of this host)"
    start.add_argument("--broker", metavar="V", default="distro", help=versions)
    start.add_argument("--nodes", metavar="N", type=int, default=1, help=f"nodes of the cluster, 1 to {MOST_NODES}")
    start.add_argument("--workload", action="store_true", help="also run a sample workload (a small shop)")
    inject = actions.add_parser("fault", help="inject a fault into the running lab, until `ackscope lab down`")
    inject.add_argument("name", nargs="?", metavar="NAME", help="a fault of --list")
    inject.add_argument("--list", action="store_true", help="list all faults")
    stop = actions.add_parser("down", help="stop the lab and delete its data")
    for action in (start, inject, stop):
        action.add_argument("--json", action="store_true", help="print one JSON document")


def run(args: argparse.Namespace) -> int:
    """Run the subcommand.

    Raises:
        AckscopeError: it failed; the message says why and what to do.
    """
    if args.action == "up":
        return _up(args)
    if args.action == "fault":
        return _list(args) if args.list else _fault(args)
    return _down(args)


def _up(args: argparse.Namespace) -> int:
    place = find_place()
    with locked(place):
        state = up(place, args.broker, args.nodes, workload=args.workload)
    if args.json:
        print_json({"broker": state.broker, "nodes": [node.as_dict() for node in state.nodes]})
    else:
        print(describe(state, place.folder / TOOLS))
    return 0


def describe(state: State, tools: Path) -> str:
    """The description of a running lab, at most 80 columns wide; `tools` is the folder of the broker's programs."""
    count = "1 node" if len(state.nodes) == 1 else f"{len(state.nodes)} nodes in one cluster"
    lines = [f"RabbitMQ {state.broker} is running, {count}{', with a sample workload' if state.workload else ''}."]
    for node in state.nodes:
        lines += [
            "",
            f"  {node.name}",
            f"    AMQP        {node.amqp}",
            f"    management  {node.management}",
            f"    Prometheus  {node.prometheus}/metrics",
        ]
    lines += [
        "",
        f"Diagnose it:    {program()} diagnose \\",
        f"                  --management {state.nodes[0].management}",
        f"Break it:       {program()} lab fault {next(iter(FAULTS))}",
        f"Stop it:        {program()} lab down",
        "Its tools, such as rabbitmqctl, for a shell:",
        f"  export PATH={tools}:$PATH",
    ]
    return "\n".join(lines)


def _list(args: argparse.Namespace) -> int:
    if args.json:
        listed = [(group, spec) for group, specs in FAULT_GROUPS.items() for spec in specs.values()]
        print_json(
            [{"fault": spec.name, "group": group, "rule": spec.rule, "summary": spec.summary} for group, spec in listed]
        )
        return 0
    for group, specs in FAULT_GROUPS.items():
        print(f"{group.upper()} ({len(specs)})")
        for spec in specs.values():
            print(f"  {spec.name}")
            print(textwrap.fill(spec.summary + ".", _WIDTH, initial_indent="    ", subsequent_indent="    "))
        print()
    print(f"{len(FAULTS)} faults. Inject one: {program()} lab fault NAME")
    return 0


def _fault(args: argparse.Namespace) -> int:
    if args.name is None:
        raise UsageError("fault: name missing; see `ackscope lab fault --list`")
    spec = find_fault(args.name)
    place = find_place()
    with locked(place):
        said = fault(place, spec)
    if args.json:
        print_json(said)
        return 0
    subject = said["subject"]
    print(f"{spec.name} is in effect on {subject['kind']} {subject['name']}.")
    print(textwrap.fill(f"Effect: {spec.summary}.", _WIDTH))
    print(f"Diagnosis should report the rule {spec.rule}. Stop the lab: ackscope lab down")
    return 0


def _down(args: argparse.Namespace) -> int:
    place = find_place()
    with locked(place):
        ran = down(place)
    if args.json:
        print_json({"ended": ran})
    else:
        print("The lab was stopped and its data deleted." if ran else "No lab is running.")
    return 0
