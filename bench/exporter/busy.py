"""A broker with many queues, some of which have traffic."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import requests

from bench.bench import progress
from bench.exporting import wait_for
from lab.cluster import Lab, start_lab
from lab.many import make_queues, names
from lab.node import LabNode

_SETTLED = 12.0
"""Seconds of work of the broker after queues are created: two intervals of its statistics."""

_RATE = 0.1
"""Messages per second of one busy queue: cheap, and enough to change it in every interval of statistics."""


@contextmanager
def busy_broker(version: str, queues: int, busy: int, nodes: int = 1) -> Iterator[Lab]:
    """Run a lab with classic queues, of which the first `busy` have traffic, once it has settled."""
    with start_lab(version, nodes) as lab:
        began = time.monotonic()
        make_queues(lab.nodes[0].management, names(queues))
        wait_for(lambda: counted(lab.nodes[0]) >= queues, f"{queues} queues in the overview", 120)
        progress(f"{lab.broker}: {queues} queues made in {time.monotonic() - began:.0f} s")
        with _traffic(lab.nodes[0], min(busy, queues)):
            time.sleep(_SETTLED)
            yield lab


def counted(node: LabNode) -> int:
    """Return the number of queues in the overview."""
    overview = requests.get(f"{node.management}/api/overview", timeout=30).json()
    return int(overview.get("object_totals", {}).get("queues", 0))


@contextmanager
def _traffic(node: LabNode, busy: int) -> Iterator[None]:
    words = [
        sys.executable,
        "-m",
        "lab.busy",
        "--amqp",
        node.amqp,
        "--queues",
        str(busy),
        "--rate",
        f"{max(1.0, busy * _RATE):g}",
    ]
    # The process ends when its stdin closes, even if this process is killed.
    process = subprocess.Popen(words, stdin=subprocess.PIPE)
    try:
        yield
    finally:
        process.terminate()
        process.wait(10)
