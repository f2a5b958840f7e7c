"""Declares the reject probe."""

from ackscope.records import Outcome
from probes.catalogue.probe import MESSAGE_OPTIONS, UNDECIDED, OneShot, Probe, RefusedSettings

PROBE = Probe(
    name="reject",
    summary="over AMQP 1.0: a full queue that must reject messages",
    settings=RefusedSettings,
    module="probes.amqp10.reject",
    one_shot=OneShot(takes=MESSAGE_OPTIONS, settings={"undecided_after": UNDECIDED}),
    expected=Outcome.NACKED,
    protocol="amqp10",
)
