"""The specification of a fault with a client of the stream protocol or of MQTT."""

from collections.abc import Callable
from typing import Any

from ackscope.findings import Subject
from lab.faults.fault import Fault, FaultSpec
from lab.native import CLIENTS


def native_spec(
    name: str, rule: str, summary: str, queue: str, inject: Callable[[Fault], None], **more: Any
) -> FaultSpec:
    """Return the specification of a fault of the queue, whose client is named after the fault.

    Args:
        name: name of the fault.
        rule: rule that should report it.
        summary: what goes wrong.
        queue: name of the queue or stream.
        inject: injects it.
        **more: other fields, which override those above.
    """
    return FaultSpec(
        **{
            "name": name,
            "rule": rule,
            "summary": summary,
            "subject": Subject(kind="queue", name=queue),
            "client": f"fault-{name}",
            "inject": inject,
            "brokers": ("4.0", "4.3"),
            "extra": CLIENTS,
            **more,
        }
    )
