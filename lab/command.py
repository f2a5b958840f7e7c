"""`ackscope lab`: a private, real RabbitMQ on this machine, and faults for it."""

import argparse
import textwrap

from ackscope.cli import print_json
from ackscope.errors import UsageError
from lab.brokers import NAMES
from lab.cluster import MOST_NODES
from lab.faults import FAULTS
from lab.faults.__main__ import find_fault
from lab.session import down, fault, up
from lab.state import State, find_place, locked

_WIDTH = 80


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare `up`, `fault` and `down`."""
    actions = parser.add_subparsers(dest="action", metavar="up | fault | down", required=True)
    start = actions.add_parser("up", help="start a broker on loopback and leave it running")
    versions = f"which version: {', '.join(NAMES)} (default: distro, the host's own)"
    start.add_argument("--broker", metavar="V", default="distro", help=versions)
    start.add_argument("--nodes", metavar="N", type=int, default=1, help=f"1 to {MOST_NODES}, as one cluster")
    start.add_argument("--workload", action="store_true", help="run a sample shop on it")
    inject = actions.add_parser("fault", help="put a fault into the running lab, until it is ended")
    inject.add_argument("name", nargs="?", metavar="NAME", help="one of those that --list tells")
    inject.add_argument("--list", action="store_true", help="tell which faults there are")
    stop = actions.add_parser("down", help="end the lab and wipe its data")
    for action in (start, inject, stop):
        action.add_argument("--json", action="store_true", help="print one JSON document")


def run(args: argparse.Namespace) -> int:
    """Do what was asked.

    Raises:
        AckscopeError: it cannot be done; the message says why and what to do.
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
        print(describe(state))
    return 0


def describe(state: State) -> str:
    """A running lab in words, at most 80 columns wide."""
    count = "1 node" if len(state.nodes) == 1 else f"a cluster of {len(state.nodes)} nodes"
    lines = [f"RabbitMQ {state.broker} runs, {count}{', with a sample shop on it' if state.workload else ''}."]
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
        "Look at it:     ackscope diagnose \\",
        f"                  --management {state.nodes[0].management}",
        f"Break it:       ackscope lab fault {next(iter(FAULTS))}",
        "End it:         ackscope lab down",
    ]
    return "\n".join(lines)


def _list(args: argparse.Namespace) -> int:
    if args.json:
        print_json([{"fault": spec.name, "rule": spec.rule, "summary": spec.summary} for spec in FAULTS.values()])
        return 0
    for spec in FAULTS.values():
        print(spec.name)
        print(textwrap.fill(spec.summary + ".", _WIDTH, initial_indent="  ", subsequent_indent="  "))
    return 0


def _fault(args: argparse.Namespace) -> int:
    if args.name is None:
        raise UsageError("fault: name one; `ackscope lab fault --list` explains them all")
    spec = find_fault(args.name)
    place = find_place()
    with locked(place):
        said = fault(place, spec)
    if args.json:
        print_json(said)
        return 0
    subject = said["subject"]
    print(f"{spec.name} is in effect on {subject['kind']} {subject['name']}.")
    print(textwrap.fill(f"What happens: {spec.summary}.", _WIDTH))
    print(f"Diagnosis should name the rule {spec.rule}. End it: ackscope lab down")
    return 0


def _down(args: argparse.Namespace) -> int:
    place = find_place()
    with locked(place):
        ran = down(place)
    if args.json:
        print_json({"ended": ran})
    else:
        print("The lab has ended; its data is wiped." if ran else "No lab runs.")
    return 0
