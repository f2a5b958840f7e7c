"""version-skew: a cluster whose stable feature flags are off, as after an upgrade that nobody finished.

Nodes of different versions would take two installations that can be joined; here only the flags are.
Source: https://www.rabbitmq.com/docs/feature-flags#how-to-start-new-node-disabled-feature-flags
"""

from ackscope.findings import Subject
from lab.faults.cluster.nodes import until
from lab.faults.fault import Fault, FaultSpec
from lab.node import Extra


def inject(fault: Fault) -> None:
    """Nothing to do: the nodes were started so."""

    def off() -> bool:
        flags = fault.ask("GET", "/api/feature-flags")
        return any(flag.get("stability") == "stable" and flag.get("state") == "disabled" for flag in flags)

    until(fault, "a stable feature flag that is off", off)
    fault.announce()
    fault.hold()


SPEC = FaultSpec(
    name="version-skew",
    rule="version-skew",
    summary="stable feature flags are disabled, as after an incomplete upgrade",
    subject=Subject(kind="cluster", name=""),
    inject=inject,
    extra=Extra(files={"advanced.config": b"[{rabbit,[{forced_feature_flags_on_init,[]}]}].\n"}),
)
