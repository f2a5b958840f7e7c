"""The protocols of connections that come and go too briefly to be listed, by the logins that the nodes count.

Each connection that is opened has logged in. So the logins of a protocol are an upper limit for its connections, and
where nearly all are of one protocol, the loop is. What clients of some protocols move is in no counter of messages:
MQTT since 3.12, AMQP 1.0 since 4.0, streams. Those of MQTT and streams do not consume from queues of any name either.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from ackscope.protocols import AMQP10, native_protocol
from ackscope.snapshot import Connection
from diagnosis.churn import ChurnRate
from diagnosis.contract import View
from diagnosis.rules.clients._shared.logins import accepted_logins

MQTT = "mqtt"
_COUNTED = ("amqp091", "amqp", "stomp")
"""Protocols whose clients use channels: they consume from queues of any name, and what they move is counted."""
_AMQP10 = "amqp10"
_NEARLY_ALL = 0.8
_FEWEST = 0.5
"""Logins for each connection of the loop, below which it is not known which protocol it uses."""


@dataclass(frozen=True, slots=True)
class LoopLogins:
    """Logins while connections come and go.

    Attributes:
        rates: accepted logins per second by protocol; None if unknown.
        protocol: of nearly all of them; None if unknown or if there are several.
        consuming: connections per second that may be of clients that consume from queues of any name and whose messages
            are counted; all of them if logins are unknown.
    """

    rates: Mapping[str, float] | None
    protocol: str | None
    consuming: float


def loop_logins(view: View, loop: ChurnRate) -> LoopLogins:
    """Return the logins since a loop of connections began."""
    rates = accepted_logins(view, loop.since)
    total = sum(rates.values()) if rates else 0.0
    if rates is None or total < _FEWEST * loop.rate:
        return LoopLogins(rates=rates, protocol=None, consuming=loop.rate)
    most = max(rates, key=lambda name: (rates[name], name))
    counted = _COUNTED if view.has_native_amqp10 else (*_COUNTED, _AMQP10)
    consuming = sum(rate for name, rate in rates.items() if name in counted)
    return LoopLogins(
        rates=rates,
        protocol=most if rates[most] >= _NEARLY_ALL * total else None,
        consuming=min(loop.rate, consuming),
    )


def shares_queues(view: View, connection: Connection) -> bool:
    """Return whether a client consumes from queues of any name, and the broker counts its messages."""
    protocol = native_protocol(connection.protocol)
    return protocol is None or (protocol == AMQP10 and not view.has_native_amqp10)
