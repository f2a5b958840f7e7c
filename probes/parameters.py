"""How a link connects: what it tells the broker about itself, its heartbeat, its TLS."""

import ssl
from typing import Any

import pika

from ackscope import __version__
from ackscope.errors import ConfigError
from probes.settings import AmqpServer

HEARTBEAT = 15
"""Seconds between heartbeats: a dead peer is noticed within two of them."""


def parameters(server: AmqpServer, name: str, timeout: float) -> Any:
    """What pika needs to connect; `timeout` is for the socket, and again for everything up to the open connection.

    Raises:
        ConfigError: the file of certificate authorities cannot be read.
    """
    address = server.address
    return pika.ConnectionParameters(
        host=address.host,
        port=address.port,
        virtual_host=address.vhost,
        credentials=pika.PlainCredentials(address.username, address.password),
        heartbeat=HEARTBEAT,
        socket_timeout=timeout,
        stack_timeout=timeout,
        connection_attempts=1,
        ssl_options=pika.SSLOptions(tls(server), server.tls_name or address.host) if address.tls else None,
        client_properties=client_properties(name),
    )


def client_properties(name: str) -> dict[str, Any]:
    """What the broker shows of the connection; `name` is its name."""
    return {
        "connection_name": name,
        "product": "ackscope",
        "version": __version__,
        "information": "a synthetic client that measures this broker",
    }


def tls(server: AmqpServer) -> ssl.SSLContext:
    """How far the broker's certificate is checked.

    Raises:
        ConfigError: the file of certificate authorities cannot be read.
    """
    try:
        context = ssl.create_default_context(cafile=server.ca_file)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"ca_file: cannot read {server.ca_file} ({error}); expected a PEM file") from None
    if not server.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
