"""Loops in which the broker sees progress: copies that wait, applications that answer each other, some poison messages.

The first two are in virtual hosts of their own, because publishers of other queues would hide them.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pika import BasicProperties
from pika.adapters.blocking_connection import BlockingChannel

from ackscope.findings import Subject
from lab.amqp import PERSISTENT, publish
from lab.faults.clients.limited import make_vhost
from lab.faults.consumers.messages import publisher
from lab.faults.fault import Fault, FaultSpec

DELAYED, ANSWERED, AMONG = "fault.copies-wait", "fault.answers", "fault.requeue-among-others"
_DELAYED_VHOST, _ANSWERED_VHOST = "fault-copies-wait", "fault-answers"
_COPIES, _DELAY_MS, _MESSAGES = 20, 3_000, 9
_WORK, _PROOF = 0.06, 30
_POISON, _RATE = 3, 3.0

Settle = Callable[[BlockingChannel, Any, bytes], bool]
"""Settles one delivery; returns whether it was one of the loop."""


class _Loop:
    """Consumers in threads of their own: messages come without end, so that callbacks would never let `ticks` go on.

    Attributes:
        turns: deliveries of the loop so far.
    """

    def __init__(self, fault: Fault) -> None:
        self.turns = 0
        self._fault = fault
        self._threads: list[threading.Thread] = []

    def consume(self, queue: str, settle: Settle, prefetch: int, **parameters: Any) -> None:
        """Consume a queue and settle each delivery, until the fault ends."""
        connection = self._fault.connect(queue.replace("fault.", "fault-"), served=False, **parameters)

        def work() -> None:
            channel = connection.channel()
            channel.basic_qos(prefetch_count=prefetch)
            for method, _, body in channel.consume(queue, inactivity_timeout=0.5):
                if self._fault.ending.is_set():
                    return
                if method is not None:
                    self.turns += settle(channel, method, body)

        self._threads.append(threading.Thread(target=work))
        self._threads[-1].start()

    def ticks(self, seconds: float, turns: int) -> Iterator[None]:
        """Yield as `Fault.ticks` does, and announce the fault after so many turns."""
        announced = False
        for _ in self._fault.ticks(seconds):
            yield
            if not announced and self.turns >= turns:
                self._fault.announce()
                announced = True

    def join(self) -> None:
        """Wait for the consumers."""
        self._fault.ending.set()
        for thread in self._threads:
            thread.join()


@contextmanager
def _loop(fault: Fault) -> Iterator[_Loop]:
    made = _Loop(fault)
    try:
        yield made
    finally:
        made.join()


def _copy(to: str) -> Settle:
    def settle(channel: BlockingChannel, method: Any, body: bytes) -> bool:
        time.sleep(_WORK)
        channel.basic_publish("", to, body, BasicProperties(delivery_mode=PERSISTENT))
        channel.basic_ack(method.delivery_tag)
        return True

    return settle


def _copies_wait(fault: Fault) -> None:
    """Acknowledge each message, and publish a copy to a delay queue that leads back."""
    make_vhost(fault, _DELAYED_VHOST)
    setup, later = fault.connect("fault-copies-wait-setup", virtual_host=_DELAYED_VHOST).channel(), f"{DELAYED}.later"
    setup.queue_declare(DELAYED, durable=True)
    back = {"x-message-ttl": _DELAY_MS, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": DELAYED}
    setup.queue_declare(later, durable=True, arguments=back)
    publish(setup, DELAYED, _COPIES)
    with _loop(fault) as loop:
        loop.consume(DELAYED, _copy(later), 50, virtual_host=_DELAYED_VHOST)
        for _ in loop.ticks(0.2, 2 * _COPIES):
            pass


def _answers(fault: Fault) -> None:
    """Two applications send each other what they get."""
    make_vhost(fault, _ANSWERED_VHOST)
    setup, back = fault.connect("fault-answers-setup", virtual_host=_ANSWERED_VHOST).channel(), f"{ANSWERED}.back"
    for name in (ANSWERED, back):
        setup.queue_declare(name, durable=True)
    publish(setup, ANSWERED, _MESSAGES)
    with _loop(fault) as loop:
        loop.consume(ANSWERED, _copy(back), 5, virtual_host=_ANSWERED_VHOST)
        loop.consume(back, _copy(ANSWERED), 5, virtual_host=_ANSWERED_VHOST)
        for _ in loop.ticks(0.2, _PROOF):
            pass


def _requeue_poison(channel: BlockingChannel, method: Any, body: bytes) -> bool:
    if body != b"poison":
        channel.basic_ack(method.delivery_tag)
        return False
    time.sleep(_WORK)
    channel.basic_nack(method.delivery_tag, requeue=True)
    return True


def _among_others(fault: Fault) -> None:
    """Acknowledge all but a few messages, which are requeued each time."""
    fault.make_queue(AMONG)
    channel = publisher(fault, "fault-requeue-among-others-publisher")
    publish(channel, AMONG, _POISON, b"poison")
    with _loop(fault) as loop:
        loop.consume(AMONG, _requeue_poison, _POISON + 3)
        for _ in loop.ticks(1 / _RATE, _PROOF):
            publish(channel, AMONG)


SPECS = (
    FaultSpec(
        name="copies-wait",
        rule="republish-loop",
        summary="a consumer acknowledges 20 messages and copies each to a delay queue, which leads back after 3 s",
        subject=Subject(kind="queue", name=DELAYED, vhost=_DELAYED_VHOST),
        inject=_copies_wait,
        client="fault-copies-wait",
        also=("mixed-connection", "pub-no-confirms"),
        one_shot=False,
    ),
    FaultSpec(
        name="answers",
        rule="republish-loop",
        summary="two applications send each other nine messages to and fro, some thirty times a second",
        subject=Subject(kind="queue", name=ANSWERED, vhost=_ANSWERED_VHOST),
        inject=_answers,
        also=("mixed-connection", "pub-no-confirms"),
        one_shot=False,
    ),
    FaultSpec(
        name="requeue-among-others",
        rule="requeue-loop",
        summary="a consumer requeues three messages again and again, and acknowledges the others",
        subject=Subject(kind="queue", name=AMONG),
        inject=_among_others,
        client="fault-requeue-among-others",
        one_shot=False,
    ),
)
