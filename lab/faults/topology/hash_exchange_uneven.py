"""hash-exchange-uneven: the publisher does not set the header by which an exchange divides its messages."""

from pika import BasicProperties

from ackscope.findings import Subject
from lab.faults.fault import Fault, FaultSpec
from lab.node import Extra

EXCHANGE = "fault.hash-exchange-uneven"
_QUEUES = tuple(f"{EXCHANGE}.{number}" for number in range(3))
_RATE, _PROOF = 10.0, 20


def inject(fault: Fault) -> None:
    """Publish with a header of another name; each of the three queues has a consumer."""
    fault.make_exchange(EXCHANGE, "x-consistent-hash", {"hash-header": "tenant"})
    with fault.briefly("fault-hash-exchange-uneven.setup") as channel:
        for queue in _QUEUES:
            fault.make_queue(queue)
            channel.queue_bind(queue, EXCHANGE, "1")
    consumer = fault.connect("fault-hash-exchange-uneven-consumer").channel()
    consumer.basic_qos(prefetch_count=10)
    for queue in _QUEUES:
        consumer.basic_consume(queue, lambda inner, method, *_: inner.basic_ack(method.delivery_tag))
    publisher = fault.connect("fault-hash-exchange-uneven").channel()
    publisher.confirm_delivery()
    for sent, _ in enumerate(fault.ticks(1 / _RATE)):
        publisher.basic_publish(EXCHANGE, "", b"uneven", BasicProperties(headers={"tenant_id": str(sent % 50)}))
        if sent == _PROOF:
            fault.announce()


SPEC = FaultSpec(
    name="hash-exchange-uneven",
    rule="hash-exchange-uneven",
    summary="an exchange that hashes a header sends all messages to one of three queues, because the header is missing",
    subject=Subject(kind="exchange", name=EXCHANGE),
    inject=inject,
    extra=Extra(plugins=("rabbitmq_consistent_hash_exchange",)),
)
