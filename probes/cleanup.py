"""`ackscope probe sweep`: delete what the continuous probes of a prefix made, by its known names and nothing else."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ackscope.cli import print_json
from probes.instrument import run_without_gc
from probes.one_shot import once_context
from probes.queues import one_shot
from probes.runner import make_streams
from probes.settings import AmqpServer, ProbesSettings
from probes.verify.client import Client
from probes.verify.frames import Closed

NAME = "sweep"

_NOT_FOUND = 404


@dataclass(frozen=True, slots=True)
class CleanupResult:
    """What became of the queues; each that is left has its reason."""

    deleted: Sequence[str]
    left: dict[str, str]


def run(args: argparse.Namespace, server: AmqpServer) -> int:
    """Delete, and say what; 1 where something is left."""
    cleared = run_without_gc(clear(server, args.prefix, args.node or ()))
    if args.json:
        print_json({"prefix": args.prefix, "deleted": cleared.deleted, "left": cleared.left})
    else:
        print(_text(args.prefix, cleared))
    return 1 if cleared.left else 0


async def clear(server: AmqpServer, prefix: str, nodes: Sequence[str]) -> CleanupResult:
    """Delete the queues that nobody consumes from.

    Raises:
        BrokerError: the broker cannot be used.
    """
    deleted, left = [], {}
    async with await Client.open(server, "ackscope-probe sweep") as client:
        channel = await client.channel()
        for name in known_names(server, prefix, nodes):
            try:
                found = await channel.look(name)
                if found.consumers:
                    left[name] = "in use: a client consumes from it"
                else:
                    await channel.delete(name)
                    deleted.append(name)
            except Closed as error:
                if error.code != _NOT_FOUND:
                    left[name] = str(error)
                channel = await client.channel()
    return CleanupResult(deleted, left)


def known_names(server: AmqpServer, prefix: str, nodes: Sequence[str]) -> list[str]:
    """Every queue that continuous probes make, and the one that one-shot runs share; for a loop that runs."""
    settings = ProbesSettings(prefix=prefix)
    context = replace(once_context(server, prefix), once=False)
    contexts = [replace(context, node=node) for node in ("", *nodes)]
    names = [name for each in contexts for stream in make_streams(settings, each) for name in stream.queues]
    return [*names, one_shot(prefix, "", "", "", "stream").name]


def _text(prefix: str, cleared: CleanupResult) -> str:
    lines = [f"deleted {name}" for name in cleared.deleted]
    lines += [f"left    {name}: {reason}" for name, reason in cleared.left.items()]
    return "\n".join(lines or [f"no queue with prefix {prefix} found"])
