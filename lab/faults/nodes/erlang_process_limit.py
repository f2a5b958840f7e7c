"""erlang-process-limit: idle processes inside a node with a low limit.

Source: https://www.rabbitmq.com/docs/runtime#process-limit
"""

from lab.faults.fault import Fault, FaultSpec
from lab.faults.nodes.inside import NODE, node, run_inside, until
from lab.node import Extra

_SHARE = 0.8
_SEEN = 0.72


def inject(fault: Fault) -> None:
    """Start processes up to 80 % of the node's limit."""
    seen = node(fault)
    number = int(_SHARE * seen["proc_total"]) - seen["proc_used"]
    run_inside(fault, f"[spawn_link(fun() -> receive stop -> ok end end) || _ <- lists:seq(1, {number})]")
    until(fault, lambda: node(fault)["proc_used"] > _SEEN * seen["proc_total"], "processes in use")
    fault.announce()
    fault.hold()


SPEC = FaultSpec(
    name="erlang-process-limit",
    rule="erlang-process-limit",
    summary="the node uses 80 % of its Erlang process limit",
    subject=NODE,
    inject=inject,
    extra=Extra(prefix=("env", "RABBITMQ_MAX_NUMBER_OF_PROCESSES=8192")),
)
