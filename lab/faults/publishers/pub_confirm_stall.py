"""pub-confirm-stall: a quorum queue loses its majority, and a publisher waits for confirms that do not arrive.

Nothing notifies the publisher: no nack, no return, no blocked frame.
Source: https://www.rabbitmq.com/docs/quorum-queues#availability
"""

import threading
import time
from functools import partial

from pika import BasicProperties
from pika.adapters.blocking_connection import BlockingChannel

from ackscope.findings import Subject
from lab.amqp import LOST, PERSISTENT, connect
from lab.faults.fault import Fault, FaultSpec

QUEUE = "fault.pub-confirm-stall"
CLIENT = "fault-pub-confirm-stall"
_LOOK = 2.0


def inject(fault: Fault) -> None:
    """Stop the broker on two of three nodes while a publisher waits for each confirm."""
    fault.make_queue(QUEUE, {"x-queue-type": "quorum", "x-quorum-initial-group-size": 3})
    # The library call blocks, so it has its own thread; its socket is dropped when the fault ends.
    connection = connect(fault.address, CLIENT, blocked_connection_timeout=None)
    channel = connection.channel()
    channel.confirm_delivery()
    for _ in range(5):
        channel.basic_publish("", QUEUE, b"before", BasicProperties(delivery_mode=PERSISTENT))
    for index in (1, 2):
        fault.later(partial(fault.lab.ctl, index, "start_app"))
        fault.lab.ctl(index, "stop_app")
    waiting = threading.Thread(target=_publish, args=(fault, channel), name="publisher", daemon=True)
    waiting.start()
    announced, looked = False, 0.0
    for _ in fault.ticks(0.5):
        if not announced and time.monotonic() - looked > _LOOK:
            looked = time.monotonic()
            if _open(fault):
                fault.announce()
                announced = True


def _publish(fault: Fault, channel: BlockingChannel) -> None:
    try:
        while not fault.ending.is_set():
            channel.basic_publish("", QUEUE, b"during", BasicProperties(delivery_mode=PERSISTENT))
            time.sleep(0.2)
        channel.connection.close()
    except LOST:
        return


def _open(fault: Fault) -> bool:
    channels = fault.ask("GET", "/api/channels")
    return any(each.get("confirm") and each.get("messages_unconfirmed") for each in channels)


SPEC = FaultSpec(
    name="pub-confirm-stall",
    rule="pub-confirm-stall",
    summary="two of three nodes stop: a quorum queue without a majority sends no confirms to its publisher",
    subject=Subject(kind="vhost", name="/"),
    inject=inject,
    nodes=3,
    alone=True,
    also=("node-down", "quorum-queue-minority", "metadata-minority"),
)
