"""AMQP connections of the workload and the faults: each says who it is, errors are one line."""

import pika
import pika.exceptions
from pika.adapters.blocking_connection import BlockingConnection

from ackscope.address import Address, parse_address
from ackscope.errors import Refused, Unreachable

LOST = (pika.exceptions.AMQPError, OSError)
"""What pika raises when a connection or channel ends; the socket's own errors come through as they are."""

PERSISTENT = 2
_TIMEOUT = 10.0


def connect(address: Address, name: str) -> BlockingConnection:
    """Open a connection that the broker lists under `name` (its `connection_name` client property).

    Raises:
        Refused: wrong credentials or virtual host.
        Unreachable: no connection.
    """
    parameters = pika.ConnectionParameters(
        host=address.host,
        port=address.port,
        virtual_host=address.vhost,
        credentials=pika.PlainCredentials(address.username, address.password),
        client_properties={"connection_name": name},
        socket_timeout=_TIMEOUT,
        stack_timeout=_TIMEOUT,
    )
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
        raise Unreachable(f"{address}: no AMQP connection ({type(error).__name__}); check that it listens") from None


def parse_lab_address(url: str) -> Address:
    """Read the `--amqp` of a lab: it has no TLS.

    Raises:
        UsageError: it is not such an address.
    """
    return parse_address(url, schemes=("amqp",), what="--amqp")
