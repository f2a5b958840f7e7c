"""AMQP connections of the workload and the faults, with names and one-line errors, and publishing."""

from typing import Any

import pika
import pika.exceptions
from pika.adapters.blocking_connection import BlockingChannel, BlockingConnection

from ackscope.address import Address, parse_address
from ackscope.errors import Refused, Unreachable

LOST = (pika.exceptions.AMQPError, OSError)
"""Exceptions of pika when a connection or channel ends. Socket errors are not converted."""

PERSISTENT = 2
_TIMEOUT = 10.0


def connect(address: Address, name: str, **more: Any) -> BlockingConnection:
    """Open a connection that the broker lists under `name` (its `connection_name` client property; "" for none).

    Args:
        address: address of the broker.
        name: name of the connection.
        **more: other `pika.ConnectionParameters`, which override the defaults.

    Raises:
        Refused: wrong credentials or virtual host.
        Unreachable: no connection.
    """
    usual = {
        "host": address.host,
        "port": address.port,
        "virtual_host": address.vhost,
        "credentials": pika.PlainCredentials(address.username, address.password),
        "client_properties": {"connection_name": name} if name else {},
        "socket_timeout": _TIMEOUT,
        "stack_timeout": _TIMEOUT,
    }
    parameters = pika.ConnectionParameters(**{**usual, **more})
    refused = (
        pika.exceptions.ProbableAuthenticationError,
        pika.exceptions.AuthenticationError,
        pika.exceptions.ProbableAccessDeniedError,
    )
    try:
        return BlockingConnection(parameters)
    except refused as error:
        raise Refused(f"{address}: refused ({type(error).__name__}); check user, password and virtual host") from None
    except LOST as error:
        raise Unreachable(
            f"{address}: no AMQP connection ({type(error).__name__}); is RabbitMQ listening there?"
        ) from None


def publish(
    channel: BlockingChannel, key: str, times: int = 1, body: bytes = b"lab", *, exchange: str = "", **more: Any
) -> None:
    """Publish persistent messages, and wait for each confirm if the channel is in confirm mode.

    Args:
        channel: channel to publish on.
        key: routing key; with the default exchange, the name of the queue.
        times: number of messages.
        body: body of each message.
        exchange: "" is the default exchange.
        **more: other `pika.BasicProperties`, which override the defaults.
    """
    for _ in range(times):
        channel.basic_publish(exchange, key, body, pika.BasicProperties(**{"delivery_mode": PERSISTENT, **more}))


def parse_lab_address(url: str) -> Address:
    """Parse the `--amqp` address of a lab, which never uses TLS.

    Raises:
        UsageError: not a valid address, or one with TLS.
    """
    return parse_address(url, schemes=("amqp",), what="--amqp")
