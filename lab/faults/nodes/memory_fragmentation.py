"""memory-fragmentation: 500 MB of small binaries are allocated and most are released, so no memory block is free.

Source: https://www.rabbitmq.com/docs/memory-use#preallocated-memory
"""

from lab.faults.fault import Fault, FaultSpec
from lab.faults.nodes.inside import NODE, node, run_inside, until

_SHARE = 0.7
_GROWN = 250_000_000
_SET = "set_vm_memory_high_watermark"
_HOLD = (
    "P = self(), spawn(fun() -> L = [binary:copy(<<0>>, 4000) || _ <- lists:seq(1, 120000)], "
    "P ! {kept, [B || {B, N} <- lists:zip(L, lists:seq(1, 120000)), N rem 64 =:= 0]} end), "
    "receive {kept, K} -> put(kept, K) end"
)
"""The binaries are made in a separate process that ends, because the evaluating process keeps its variables."""


def inject(fault: Fault) -> None:
    """Allocate and release the binaries, then lower the memory limit; restore it at the end."""
    before = node(fault)
    used, limit = before["mem_used"], before["mem_limit"]
    run_inside(fault, _HOLD)
    fault.later(lambda: fault.lab.ctl(0, _SET, "absolute", str(limit)))
    # The reported memory lags by seconds, and a limit below the real use would raise the alarm.
    until(fault, lambda: node(fault)["mem_used"] > used + _GROWN, "the memory in use")
    fault.ending.wait(6.0)
    fault.lab.ctl(0, _SET, "absolute", str(int(node(fault)["mem_used"] / _SHARE)))
    until(fault, lambda: node(fault)["mem_limit"] < limit, "the new limit")
    fault.announce()
    fault.hold()


SPEC = FaultSpec(
    name="memory-fragmentation",
    rule="memory-fragmentation",
    summary="the node is at 70 % of its memory limit, and most of that is unused memory in its allocators",
    subject=NODE,
    inject=inject,
    alone=True,
    also=("memory-near-limit",),
)
