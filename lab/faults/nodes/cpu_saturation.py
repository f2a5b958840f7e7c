"""cpu-saturation: forty processes inside the node compute endlessly."""

from lab.faults.fault import Fault, FaultSpec
from lab.faults.nodes.inside import NODE, node, run_inside, until

_BURN = "[spawn_link(fun() -> F = fun G(N) -> G(N + 1) end, F(0) end) || _ <- lists:seq(1, 40)]"


def inject(fault: Fault) -> None:
    """Start the processes; they end with the fault."""
    run_inside(fault, _BURN)
    until(fault, lambda: node(fault)["run_queue"] > 3 * node(fault)["processors"], "a long run queue")
    fault.announce()
    fault.hold()


SPEC = FaultSpec(
    name="cpu-saturation",
    rule="cpu-saturation",
    summary="forty Erlang processes keep all CPU cores of the node busy",
    subject=NODE,
    inject=inject,
    alone=True,
)
