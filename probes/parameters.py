"""Parameters of a probe connection: client properties, heartbeat, TLS."""

import ssl
from typing import Any

import pika

from ackscope import __version__
from ackscope.errors import ConfigError
from probes.settings import AmqpServer

HEARTBEAT = 15
"""Heartbeat in seconds. A dead peer is noticed within two heartbeats."""


def parameters(server: AmqpServer, name: str, timeout: float) -> Any:
    """Return connection parameters for pika. `timeout` applies to the socket, and again to the whole opening.

    Raises:
        ConfigError: the CA file cannot be read.
    """
    address = server.address
    return pika.ConnectionParameters(
        host=address.host,
        port=address.port,
        virtual_host=address.vhost,
        credentials=pika.PlainCredentials(address.username, server.password()),
        heartbeat=HEARTBEAT,
        socket_timeout=timeout,
        stack_timeout=timeout,
        connection_attempts=1,
        ssl_options=pika.SSLOptions(tls(server), server.tls_name or address.host) if address.tls else None,
        client_properties=client_properties(name),
    )


def client_properties(name: str) -> dict[str, Any]:
    """Return the client properties that the broker shows for the connection; `name` is the connection name."""
    return {
        "connection_name": name,
        "product": "ackscope",
        "version": __version__,
        "information": "a synthetic client that measures this broker",
    }


def tls(server: AmqpServer) -> ssl.SSLContext:
    """Create the TLS context, which decides how the certificate of the broker is verified.

    Raises:
        ConfigError: the CA file cannot be read.
    """
    try:
        context = ssl.create_default_context(cafile=server.ca_file)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"ca_file: cannot read {server.ca_file} ({error}); expected a PEM file") from None
    if not server.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
