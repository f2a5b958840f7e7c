"""Disturbances of a private broker for checks: stop, start, restart, memory alarm."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from ackscope.address import parse_amqp
from lab.cluster import Lab
from lab.control import ALARM_WATERMARK, USUAL_WATERMARK
from probes.settings import AmqpServer

T = TypeVar("T")


class LabDisturb:
    """A lab whose nodes may be stopped, started, restarted and put under an alarm."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self.nodes = tuple(AmqpServer(parse_amqp(node.amqp)) for node in lab.nodes)
        # A tied node ends with the thread that started it, so this thread lives as long as the process.
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ackscope-lab")

    async def restart(self, node: int = 0) -> None:
        """Stop a node gracefully, start it with its data, and wait until it is ready."""
        await self._do(lambda: self._lab.restart(node))

    async def stop(self, node: int) -> None:
        """Stop a node immediately."""
        await self._do(lambda: self._lab.kill(node))

    async def start(self, node: int) -> None:
        """Start a stopped node, and wait until it is ready."""
        await self._do(lambda: self._lab.restart(node))

    async def alarm(self, *, on: bool) -> None:
        """Raise or clear the memory alarm on the first node, which blocks publishers on all nodes."""
        watermark = ALARM_WATERMARK if on else USUAL_WATERMARK
        await self._do(lambda: self._lab.ctl(0, "set_vm_memory_high_watermark", watermark))

    async def _do(self, act: Callable[[], T]) -> T:
        # The operation completes even if the check has timed out, so the next check finds a complete broker.
        return await asyncio.shield(asyncio.get_running_loop().run_in_executor(self._thread, act))
