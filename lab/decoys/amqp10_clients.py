"""Clients that use AMQP 1.0 and work as they should: in batches, one message at a time, and beside other protocols."""

from ackscope.findings import Subject
from lab.amqp import publish
from lab.amqp10 import NativeClient, of_queue, paced
from lab.faults.fault import Fault, FaultSpec

_BATCH, _ONE, _BESIDE = (f"fault.decoy.amqp10-{name}" for name in ("batches", "one-at-a-time", "beside"))
_RATE = 6.0
_SIZE = 60


def _together(unsettled: int) -> int:
    """Settle nothing until a batch is full, then all of it."""
    return unsettled if unsettled >= _SIZE else 0


def inject(fault: Fault) -> None:
    """Settle sixty messages at once; ask for one message at a time; share a queue with an AMQP 0-9-1 consumer."""
    fault.make_queue(_BATCH, {"x-queue-type": "quorum"})
    fault.make_queue(_ONE)
    fault.make_queue(_BESIDE, {"x-queue-type": "quorum"})
    consumers = {
        _BATCH: {"credit": 5 * _SIZE, "renew": "settled", "take": _together},
        _ONE: {"credit": 1, "renew": "settled", "take": paced(3 * _RATE)},
        _BESIDE: {"credit": 20, "renew": "settled", "take": paced(2 * _RATE)},
    }
    clients = []
    for queue, role in consumers.items():
        clients.append(NativeClient(fault.address, f"{queue}-consumer", of_queue(queue), **role))
        clients.append(NativeClient(fault.address, f"{queue}-publisher", of_queue(queue), rate=_RATE))
    for client in clients:
        fault.later(client.close)
    channel = fault.connect("decoy-amqp10-beside").channel()
    channel.basic_qos(prefetch_count=10)
    channel.basic_consume(_BESIDE, lambda channel, method, _properties, _body: channel.basic_ack(method.delivery_tag))
    publisher = fault.connect("decoy-amqp10-beside-publisher").channel()
    publisher.confirm_delivery()
    for number, _ in enumerate(fault.ticks(1 / _RATE)):
        publish(publisher, _BESIDE)
        if number == 40:
            fault.announce()


SPEC = FaultSpec(
    name="decoy.amqp10-clients",
    rule="",
    summary="AMQP 1.0 clients work in batches, one message at a time, and beside an AMQP 0-9-1 consumer of one queue",
    subject=Subject(kind="queue", name=_BATCH),
    inject=inject,
    protocol="AMQP 1.0",
    brokers=("4.0", "4.3"),
)
