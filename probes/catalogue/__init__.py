"""All probes by name: each module of this package declares one, and is found by its file.

The package is light, so that the exporter, the page and the pipeline can read it: what a probe does is in another
module, which only the process of the probes imports.
"""

import pkgutil
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

from ackscope.records import Outcome
from probes.catalogue.probe import Probe


def _declared() -> Iterator[Probe[Any]]:
    for module in pkgutil.iter_modules(__path__):
        declared = getattr(import_module(f"{__name__}.{module.name}"), "PROBE", None)
        if declared is not None:
            yield declared


PROBES: Mapping[str, Probe[Any]] = {probe.name: probe for probe in sorted(_declared(), key=lambda probe: probe.order)}
"""First those that act like applications, then those that time steps, then those whose messages are refused."""

NOT_ACKED_BY_DESIGN = tuple(name for name, probe in PROBES.items() if probe.expected is not Outcome.ACKED)
"""Probes whose messages a healthy broker does not ack; they are excluded from shares of acked messages."""


def protocol_of(name: str) -> str:
    """Return the protocol that a probe speaks: "amqp091" (also for one of another version), "amqp10" or "stream"."""
    return PROBES[name].protocol if name in PROBES else "amqp091"
