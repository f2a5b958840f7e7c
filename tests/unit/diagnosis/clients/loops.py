"""Films of applications that open and close channels or connections in a loop, with numbers seen on 4.3.6."""

from typing import Any

from ackscope.snapshot import Channel, Connection, Overview
from tests.unit.diagnosis.pictures import PEER, WALL, channel, connection, stats

PACKETS, SENT, RECEIVED = 2, 78, 203
"""Traffic of one publish to a missing exchange: 404, "NOT_FOUND - no exchange 'nope' in vhost '/'"."""


def turns(t: float, rate: float, began: float) -> int:
    """Return the number of cycles until second `t`."""
    return int(max(0.0, t - began) * rate)


def churning(t: float, *, channels: int = 0, connections: int = 0, declares: int = 0, **fields: Any) -> Overview:
    """Return an overview with this many channels and connections opened and closed so far."""
    churn = {
        "channel_created": 100 + channels,
        "channel_closed": 90 + channels,
        "connection_created": 20 + connections,
        "connection_closed": 15 + connections,
        "queue_declared": 40 + declares,
    }
    counters = fields.pop("stats", stats(publish=round(1000 + 10 * t)))
    version = fields.pop("version", "4.3.6")
    return Overview(
        **{"rabbitmq_version": version, "statistics": True, "rates_mode": "basic", "churn": churn, "stats": counters}
        | fields
    )


def loop(
    t: float,
    *,
    rate: float = 5.0,
    began: float = 0.0,
    packets: int = PACKETS,
    sent: int = SENT,
    received: int = RECEIVED,
    name: str = PEER,
    **fields: Any,
) -> Connection:
    """A connection of `billing` that stays while its channels come and go."""
    done = turns(t, rate, began)
    figures = {
        "send_cnt": 3 + packets * done,
        "send_oct": 549 + sent * done,
        "recv_cnt": 6 + 4 * done,
        "recv_oct": 405 + received * done,
        "channels": 0,
        "user": "guest",
        "peer_host": "10.0.0.7",
        "peer_port": 50001,
        "connected_at": WALL - 60,
    }
    return connection(name, **{**figures, **fields})


def steady(t: float, name: str = "10.0.0.9:50009 -> 10.0.0.1:5672", **fields: Any) -> tuple[Connection, Channel]:
    """A connection that consumes 10 messages per second on a channel that stays, and acknowledges."""
    done = int(10 * t)
    there = connection(
        name, client_name="shop", send_cnt=10 + done, send_oct=900 + 120 * done, recv_cnt=done, recv_oct=21 * done
    )
    counters = stats(deliver=done, deliver_get=done, ack=done)
    return there, channel(f"{name} (1)", stats=counters, reductions=1000 + 50 * done, **fields)


def looping(t: float, *, rate: float = 5.0, began: float = 0.0, declares: int = 0, **fields: Any) -> dict[str, Any]:
    """One application loops, another consumes normally."""
    done = turns(t, rate, began)
    there, consuming = steady(t)
    version = fields.pop("version", "4.3.6")
    counters = fields.pop("stats", stats(deliver_get=int(10 * t), ack=int(10 * t)))
    return {
        "overview": churning(t, channels=done, declares=declares * done, version=version, stats=counters),
        "connections": (there, loop(t, rate=rate, began=began, **fields)),
        "channels": (consuming,),
    }


def reconnecting(t: float, *, every: float = 1.0, client: str = "billing", began: float = 0.0) -> dict[str, Any]:
    """One application reconnects in each cycle; another consumes normally."""
    done = turns(t, 1 / every, began)
    there, consuming = steady(t)
    port = 50000 + done
    new = connection(
        f"10.0.0.7:{port} -> 10.0.0.1:5672",
        client_name=client,
        user="guest",
        peer_host="10.0.0.7",
        peer_port=port,
        connected_at=WALL + done * every,
    )
    return {
        "overview": churning(t, channels=done, connections=done),
        "connections": (there, new),
        "channels": (consuming,),
    }
