"""`ackscope verify`: check the documented semantics of acks and confirms against a live broker."""

import argparse
import asyncio
import os
import re
import secrets
import signal
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import groupby

from ackscope.address import parse_management
from ackscope.cli import nearest, print_json
from ackscope.errors import BrokerError, UsageError
from lab.verify.manage import HttpManage
from probes.server_options import AMQP_HELP, add_server_options, server_of
from probes.settings import DEFAULT_PREFIX, AmqpServer
from probes.verify import report
from probes.verify.claims import CLAIMS
from probes.verify.cleanup import clear
from probes.verify.client import Client
from probes.verify.preflight import preflight
from probes.verify.run import ClaimRow, check_all
from probes.verify.verify_claim import CheckContext, Disturb, Manage, VerifyClaim

_EPILOG = """verdicts:
  holds           this broker behaves as documented
  differs         it does not; "Why" cites the known reason, if there is one
  not applicable  this version lacks the feature of the claim
  needs --lab     needs a broker that may be restarted, stopped or put into alarm
  could not tell  the check did not finish, or its result is inconclusive

exit code:
  0  every claim holds, does not apply, needs --lab, or has a cited explanation
  1  a claim differs or is inconclusive, without such an explanation
  3  could not run (no connection, access refused, wrong usage)

It uses only its own queues and exchanges, named PREFIX.verify.*, and deletes them
at the end. If a run is killed, the broker deletes its queues, and the exchanges
that are bound to them, within 5 minutes."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare options."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _EPILOG
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument(
        "--amqp",
        metavar="URL",
        help=AMQP_HELP,
    )
    where.add_argument("--lab", action="store_true", help="start a private broker, check all claims, and stop it")
    parser.add_argument(
        "--management", metavar="URL", help="management API of the same broker, for additional evidence"
    )
    add_server_options(parser)
    parser.add_argument(
        "--broker", metavar="VERSION", help="with --lab: 3.10, 4.0, 4.3 (default: the package of this host)"
    )
    parser.add_argument("--nodes", type=int, metavar="N", help="with --lab: 1 to 3, as one cluster (default 1)")
    parser.add_argument("--only", metavar="IDS", help="check only these claims, such as S06,S16,A02")
    parser.add_argument("--evidence", action="store_true", help="also print the evidence of each claim")
    parser.add_argument(
        "--prefix", default=DEFAULT_PREFIX, help=f"prefix of names on the broker (default {DEFAULT_PREFIX})"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document, with all evidence")


def run(args: argparse.Namespace) -> int:
    """Check the claims, print the report, and delete all test objects."""
    claims = chosen(args.only)
    if not args.lab and (args.broker or args.nodes):
        raise UsageError("--broker and --nodes: only with --lab, which starts that broker")
    if args.lab and (args.management or args.password_file or args.ca_file or args.no_verify):
        raise UsageError("--lab starts its own broker; omit --management, --password-file and TLS options")
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,100}", args.prefix):
        raise UsageError(f"--prefix: invalid {args.prefix!r}; use letters, digits, dots, dashes and underscores")
    with ExitStack() as stack:
        manage: Manage | None = None
        disturb: Disturb | None = None
        if args.lab:
            server, manage, disturb = _own_broker(args, stack)
        else:
            server = server_of(args)
            manage = HttpManage(parse_management(args.management), server) if args.management else None
        broker, rows, left = asyncio.run(_verify(args.prefix, server, manage, disturb, claims))
    for sentence in left:
        print(f"ackscope verify: {sentence}", file=sys.stderr)
    if args.json:
        print_json(report.document(broker, rows))
    else:
        print(report.text(broker, server.address.where, rows, evidence=args.evidence))
    return report.exit_code(rows)


def chosen(only: str | None) -> list[VerifyClaim]:
    """Return the claims to check, in their order.

    Raises:
        UsageError: unknown claim.
    """
    known = {claim.id: claim for claim in CLAIMS}
    if only is None:
        return list(CLAIMS)
    wanted = {word.strip().upper() for word in only.split(",") if word.strip()}
    for word in sorted(wanted - set(known)):
        ranges = " and ".join(f"{ids[0]} to {ids[-1]}" for ids in _by_letter(list(known)))
        raise UsageError(f"--only: unknown claim {word!r}{nearest(word, list(known))}; there are {ranges}")
    if not wanted:
        raise UsageError("--only: empty; use for example --only S06,S16")
    return [claim for claim in CLAIMS if claim.id in wanted]


def _by_letter(ids: Sequence[str]) -> list[list[str]]:
    return [list(group) for _, group in groupby(ids, key=lambda id_: id_[0])]


def _own_broker(args: argparse.Namespace, stack: ExitStack) -> tuple[AmqpServer, Manage, Disturb]:
    # Imported here, because a check of an existing broker does not need the lab.
    from lab.cluster import start_lab  # noqa: PLC0415  as said above
    from lab.verify.disturb import LabDisturb  # noqa: PLC0415  as said above

    # SIGTERM to this command must also stop the broker.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    lab = stack.enter_context(start_lab(args.broker or "distro", 1 if args.nodes is None else args.nodes))
    disturb = LabDisturb(lab)
    server = disturb.nodes[0]
    return server, HttpManage(parse_management(lab.nodes[0].management), server), disturb


async def _verify(
    prefix: str, server: AmqpServer, manage: Manage | None, disturb: Disturb | None, claims: Sequence[VerifyClaim]
) -> tuple[str, list[ClaimRow], list[str]]:
    """Check the claims. Returns the broker's product, a row per claim, and the objects that could not be deleted."""
    async with await Client.open(server, "ackscope-verify") as client:
        product = client.product
    ground = CheckContext(
        server=server,
        version=version(product),
        prefix=f"{prefix}.verify.{secrets.token_hex(4)}",
        manage=manage,
        disturb=disturb,
    )
    progress = _Progress(len(claims))
    running = asyncio.ensure_future(_permitted_then_checked(ground, claims, progress))
    # Only for SIGTERM: Ctrl-C already cancels the task.
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, running.cancel)
    try:
        rows = await running
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    finally:
        progress.clear()
        left = await clear(ground)
    return product, rows, left


async def _permitted_then_checked(
    ground: CheckContext, claims: Sequence[VerifyClaim], progress: "_Progress"
) -> list[ClaimRow]:
    await preflight(ground)
    return await check_all(ground, claims, progress.show)


def version(product: str) -> tuple[int, ...]:
    """Return the version in the product text of a broker.

    Raises:
        BrokerError: not RabbitMQ, or without a version.
    """
    found = re.fullmatch(r"RabbitMQ (\d+)\.(\d+)\.(\d+).*", product)
    if found is None:
        raise BrokerError(f"the broker reports {product!r}, not RabbitMQ with a version, so it cannot be compared")
    return tuple(map(int, found.groups()))


class _Progress:
    def __init__(self, total: int) -> None:
        self._total, self._on = total, os.isatty(sys.stderr.fileno())

    def show(self, claims: Sequence[VerifyClaim], done: int) -> None:
        """Print the progress line."""
        if self._on:
            names = ", ".join(claim.id for claim in claims)
            line = f"{done} of {self._total} claims checked; now {names}" if names else ""
            print(f"\r{line}\033[K", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Erase the progress line."""
        if self._on:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
