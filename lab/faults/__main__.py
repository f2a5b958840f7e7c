"""`python -m lab.faults NAME --amqp URL --management URL [--lab FOLDER]`: keep a fault in effect.

It ends on SIGTERM or when stdin closes.
"""

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

import orjson

from ackscope.address import Address, parse_management
from ackscope.cli import Parser, nearest
from ackscope.errors import UsageError
from lab.amqp import parse_lab_address
from lab.amqp10 import NativeClient
from lab.control import Control
from lab.decoys import DECOYS
from lab.faults import FAULTS
from lab.faults.fault import Fault, FaultSpec, undone
from lab.program import end_event, main


def find_fault(name: str) -> FaultSpec:
    """Return the fault with this name.

    Raises:
        UsageError: unknown name; the message suggests the nearest one.
    """
    known = {**FAULTS, **DECOYS}
    spec = known.get(name)
    if spec is None:
        hint = nearest(name, list(known)) or "; see `ackscope lab fault --list`"
        raise UsageError(f"unknown fault {name!r}{hint}")
    return spec


def announcement(spec: FaultSpec, address: Address, culprits: Iterable[NativeClient] = ()) -> dict[str, object]:
    """Return the JSON line that announces a fault in effect, with the addresses of AMQP 1.0 clients that cause it."""
    vhost = address.vhost if spec.subject.vhost is None else spec.subject.vhost
    subject = {"kind": spec.subject.kind, "vhost": vhost, "name": spec.subject.name}
    peers = [each.local for each in culprits if each.local]
    said: dict[str, object] = {"fault": spec.name, "rule": spec.rule, "subject": subject}
    return {**said, "peers": peers} if peers else said


def _arguments() -> argparse.Namespace:
    parser = Parser(prog="lab.faults", description="Inject a fault into a broker and keep it in effect.")
    parser.add_argument("name", metavar="NAME", help="a fault of `ackscope lab fault --list`")
    parser.add_argument("--amqp", required=True, metavar="URL", help="as in amqp://user:password@host:5672/vhost")
    parser.add_argument("--management", required=True, metavar="URL", help="as in http://user:password@host:15672")
    parser.add_argument("--lab", metavar="FOLDER", type=Path, help="folder of the lab; needed for faults of nodes")
    return parser.parse_args()


def _run() -> int:
    args = _arguments()
    spec = find_fault(args.name)
    address = parse_lab_address(args.amqp)
    parse_management(args.management)

    def announce() -> None:
        sys.stdout.write(orjson.dumps(announcement(spec, address, fault.culprits)).decode() + "\n")
        sys.stdout.flush()

    control = None if args.lab is None else Control.load(args.lab)
    fault = Fault(address=address, management=args.management, ending=end_event(), announce=announce, control=control)
    with undone(fault):
        spec.inject(fault)
    return 0


if __name__ == "__main__":
    sys.exit(main("lab.faults", _run))
