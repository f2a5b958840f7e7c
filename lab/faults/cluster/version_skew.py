"""version-skew: a cluster with disabled stable feature flags, as after an incomplete upgrade.

Different versions would need two installations that can form a cluster; here only the feature flags differ.
Source: https://www.rabbitmq.com/docs/feature-flags#how-to-start-new-node-disabled-feature-flags
"""

from ackscope.findings import Subject
from lab.faults.cluster.nodes import until
from lab.faults.fault import Fault, FaultSpec
from lab.node import Extra


def inject(fault: Fault) -> None:
    """Wait for the disabled feature flags; the nodes were started with them."""

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
