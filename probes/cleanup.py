"""`ackscope probe sweep`: deletes the queues of the continuous probes with a prefix, only by their known names."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ackscope.cli import print_json
from probes.catalogue import PROBES
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
    """The deleted queues, and the remaining queues with the reason for each."""

    deleted: Sequence[str]
    left: dict[str, str]


def run(args: argparse.Namespace, server: AmqpServer) -> int:
    """Delete the queues and print the result. Returns exit code 1 if some remain."""
    cleared = run_without_gc(clear(server, args.prefix, args.node or ()))
    if args.json:
        print_json({"prefix": args.prefix, "deleted": cleared.deleted, "left": cleared.left})
    else:
        print(_text(args.prefix, cleared))
    return 1 if cleared.left else 0


async def clear(server: AmqpServer, prefix: str, nodes: Sequence[str]) -> CleanupResult:
    """Delete the queues that have no consumer.

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
    """Return the names of all queues of continuous probes, and of the stream that one-shot runs share.

    Needs a running event loop.
    """
    settings = ProbesSettings(prefix=prefix, enabled=tuple(PROBES))
    context = replace(once_context(server, prefix), once=False)
    contexts = [replace(context, node=node) for node in ("", *nodes)]
    names = [name for each in contexts for stream in make_streams(settings, each) for name in stream.queues]
    return [*names, one_shot(prefix, "", "", "", "stream").name]


def _text(prefix: str, cleared: CleanupResult) -> str:
    lines = [f"deleted {name}" for name in cleared.deleted]
    lines += [f"left    {name}: {reason}" for name, reason in cleared.left.items()]
    return "\n".join(lines or [f"no queue with prefix {prefix} found"])
