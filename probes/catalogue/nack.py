"""Declares the nack probe."""

from ackscope.records import Outcome
from probes.catalogue.probe import MESSAGE_OPTIONS, UNDECIDED, OneShot, Probe, RefusedSettings

PROBE = Probe(
    name="nack",
    summary="a full queue that must refuse messages: nacks and their latency",
    settings=RefusedSettings,
    module="probes.nack",
    one_shot=OneShot(takes=MESSAGE_OPTIONS, settings={"undecided_after": UNDECIDED}),
    expected=Outcome.NACKED,
)
