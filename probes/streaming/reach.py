"""Opens a connection to a certain node of a stream, also where its advertised address leads nowhere.

A stream is read from a node with a replica, and clients publish to its leader. The broker tells both by the addresses
that the nodes advertise. In containers or behind a load balancer these are often names that only the nodes know. So a
connection to the configured address comes first: it may have led to the right node already. If the advertised address
cannot be reached either, the configured one is tried again, since a load balancer leads to another node each time.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from ackscope.errors import BrokerError, Unreachable
from probes.settings import AmqpServer
from probes.streaming.connection import Member, StreamProtocolConnection

TRIES = 12
"""Connections to the configured address, until one leads to the wanted node."""

Open = Callable[[AmqpServer], Awaitable[StreamProtocolConnection]]


async def reach(
    server: AmqpServer,
    wanted: Sequence[Member],
    what: str,
    connect: Open,
    first: StreamProtocolConnection | None = None,
) -> StreamProtocolConnection:
    """Return a connection to one of these nodes.

    Args:
        server: the configured address, at the port of the stream protocol.
        wanted: the nodes by their advertised addresses, the best first.
        what: what they are, for messages, such as "leader of stream 'x'".
        connect: opens a connection.
        first: a connection to the configured address; it is returned, or closed.

    Raises:
        Unreachable: none of them can be reached.
        BrokerError: the configured address cannot be used.
    """
    link = first or await connect(server)
    if _leads_to(link, wanted):
        return link
    await link.close()
    why: BrokerError | None = None
    for member in wanted:
        there = replace(server, address=replace(server.address, host=member.host, port=member.port), tls_name=None)
        try:
            link = await connect(there)
        except BrokerError as error:
            why = error
            continue
        if _leads_to(link, [member]):
            return link
        await link.close()
        why = Unreachable(f"{member} leads to another node")
    for _ in range(TRIES - 1):
        link = await connect(server)
        if _leads_to(link, wanted):
            return link
        await link.close()
    raise Unreachable(
        f"{server.address.where}: the {what} is advertised as {' or '.join(map(str, wanted))}, which cannot be reached "
        f"({why}), and {TRIES} connections to the configured address led to other nodes; set advertised_host and "
        "advertised_port of each node to what clients can reach"
    )


def _leads_to(link: StreamProtocolConnection, wanted: Sequence[Member]) -> bool:
    # A broker that tells no address is taken as it is: then there is nothing to choose by.
    return link.advertised is None or link.advertised in wanted
