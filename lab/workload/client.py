"""The two kinds of clients a shop is made of, and the loop that keeps each connected."""

import json
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pika
from pika.adapters.blocking_connection import BlockingChannel, BlockingConnection

from ackscope.address import Address
from ackscope.errors import BrokerError
from lab.amqp import LOST, PERSISTENT, connect

_AGAIN = 1.0
_BEHIND = 1.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishJob:
    """Publishes persistent messages at an even pace, each confirmed.

    Attributes:
        declare: declares what it needs; safe to run again.
        rate: messages a second.
        body: message number -> content.
    """

    name: str
    declare: Callable[[BlockingChannel], None]
    exchange: str
    routing_key: str
    rate: float
    body: Callable[[int], dict[str, Any]]

    def work(self, connection: BlockingConnection, ending: threading.Event) -> None:
        """Publish until it should end or the connection does."""
        channel = connection.channel()
        self.declare(channel)
        channel.confirm_delivery()
        due, number = time.monotonic(), 0
        while not ending.is_set():
            number += 1
            channel.basic_publish(
                self.exchange,
                self.routing_key,
                json.dumps(self.body(number)).encode(),
                pika.BasicProperties(
                    content_type="application/json",
                    delivery_mode=PERSISTENT,
                    timestamp=int(time.time()),
                    app_id=self.name,
                ),
                mandatory=True,
            )
            due += 1 / self.rate
            if time.monotonic() - due > _BEHIND:
                # After a pause of the broker a shop does not send all at once what nobody ordered meanwhile.
                due = time.monotonic()
            connection.sleep(max(0.0, due - time.monotonic()))


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumeJob:
    """Consumes one message after the other.

    Attributes:
        declare: declares what it needs; safe to run again.
        handle: does the work of one message; True acknowledges it, False rejects it without requeue.
    """

    name: str
    declare: Callable[[BlockingChannel], None]
    queue: str
    prefetch: int
    handle: Callable[[bytes], bool]

    def work(self, connection: BlockingConnection, ending: threading.Event) -> None:
        """Consume until it should end or the connection does."""
        channel = connection.channel()
        self.declare(channel)
        channel.basic_qos(prefetch_count=self.prefetch)

        def take(channel: BlockingChannel, method: Any, _properties: Any, body: bytes) -> None:
            if ending.is_set():
                return
            if self.handle(body):
                channel.basic_ack(method.delivery_tag)
            else:
                channel.basic_reject(method.delivery_tag, requeue=False)

        channel.basic_consume(self.queue, take, consumer_tag=self.name)
        while not ending.is_set():
            connection.process_data_events(time_limit=0.5)


Job = PublishJob | ConsumeJob


def keep(job: Job, address: Address, ending: threading.Event) -> None:
    """Run a job on a connection of its own, connecting again for as long as it takes."""
    reported = False
    while not ending.is_set():
        try:
            connection = connect(address, job.name)
        except BrokerError as error:
            # Once, not at every attempt: ten jobs that try each second would bury the rest of the log.
            _log.log(logging.DEBUG if reported else logging.WARNING, "%s: %s; tries on", job.name, error)
            reported = True
            ending.wait(_AGAIN)
            continue
        reported = False
        try:
            job.work(connection, ending)
        except LOST as error:
            if not ending.is_set():
                _log.warning("%s: interrupted (%s); connects again", job.name, type(error).__name__)
                reported = True
                ending.wait(_AGAIN)
        finally:
            _drop(connection)


def _drop(connection: BlockingConnection) -> None:
    """Let go of what is left of a connection, which may be in any state."""
    try:
        if connection.is_open:
            connection.close()
    except LOST:
        _log.debug("a connection ended while it was closed")
