"""binding-in-mqtt-syntax: a binding has a key that nothing which MQTT clients publish can match.

The broker makes a routing key of an MQTT topic: each "/" becomes ".". A topic of a message has no wildcard. So the key
has neither "/" nor "+", and a binding key with one of them matches none. MQTT clients have their acknowledgement all
the same, and no counter of an exchange or queue shows what was dropped. A binding for AMQP clients may contain "/".
Source: `rabbit_mqtt_util:mqtt_to_amqp`; https://www.rabbitmq.com/docs/mqtt#implementation; seen on 4.3.6
"""

import re
from collections import defaultdict
from collections.abc import Iterator

from ackscope.findings import (
    Certainty,
    Evidence,
    ExchangeRef,
    Finding,
    Involved,
    QueueRef,
    Severity,
    Subject,
    source,
)
from ackscope.protocols import AMQP10, MQTT, native_protocol
from ackscope.snapshot import Connection
from ackscope.topology import Binding, Exchange
from diagnosis.contract import RuleResult, View
from diagnosis.facts import client_name
from diagnosis.purpose import MQTT_SESSIONS
from diagnosis.routes import matches
from diagnosis.rules.clients._shared.connections import age_seconds
from diagnosis.rules.queues._shared.queue import MAX_NAMED
from diagnosis.series import span

NAME = "binding-in-mqtt-syntax"

_DEFAULT = "amq.topic"
"""The exchange to which MQTT clients publish, unless the setting `mqtt.exchange` names another one."""
_WILDCARD = re.compile(r"(^|/)\+(/|$)|/#$")
_SUBSCRIBES = 10.0
"""Seconds after the connection within which a client subscribes, which takes more bytes than the answer."""
_ANSWERS = 8
"""Bytes of answers that may be under way. A client that only receives is sent at least as many bytes as it sends."""


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge the bindings of the exchange that MQTT clients publish to, where such clients are connected."""
    clients: dict[str, list[Connection]] = defaultdict(list)
    for connection in view.connections:
        if native_protocol(connection.protocol) == MQTT and connection.vhost is not None:
            clients[connection.vhost].append(connection)
    bindings = view.bindings if clients else None
    if not bindings:
        return
    # A subscription is a binding of the exchange to which MQTT clients publish, in each virtual host that of this name.
    used = {each.source for each in bindings if each.destination.startswith(MQTT_SESSIONS)} or {_DEFAULT}
    for exchange in view.exchanges:
        if exchange.vhost not in clients or exchange.type != "topic" or exchange.name not in used:
            continue
        own = [each for each in bindings if (each.vhost, each.source) == exchange.key]
        wrong = [each for each in own if _never_matches(view, exchange, each) and not _covered(own, each)]
        if wrong:
            yield _finding(view, exchange, wrong, clients[exchange.vhost])


def translated(key: str) -> str:
    """Return a topic filter of MQTT as the key of a binding."""
    return key.replace("/", ".").replace("+", "*")


def _never_matches(view: View, exchange: Exchange, binding: Binding) -> bool:
    """Return whether a binding is for MQTT clients, and matches none of their messages."""
    key = binding.routing_key
    if _WILDCARD.search(key):
        return True
    if "/" not in key:
        return False
    by_amqp = exchange.stats.publish_in or exchange.stats.publish_out
    return not by_amqp and not any(
        each.vhost == exchange.vhost and native_protocol(each.protocol) == AMQP10 for each in view.connections
    )


def _covered(bindings: list[Binding], wrong: Binding) -> bool:
    """Return whether another binding leads what this one is meant for to the same destination."""
    place = (wrong.destination_type, wrong.destination)
    return any(
        (each.destination_type, each.destination) == place and matches(each.routing_key, translated(wrong.routing_key))
        for each in bindings
        if each is not wrong
    )


def _publishes(view: View, connection: Connection) -> bool:
    """Return whether an MQTT client sends more than answers and pings."""
    history = view.connection_history(connection.name)
    if len(history) < 2 or age_seconds(view, connection) < span(history) + _SUBSCRIBES:
        return False
    first, latest = history[0].value, history[-1].value
    if None in (first.recv_oct, first.send_oct, latest.recv_oct, latest.send_oct):
        return False
    came, went = (latest.recv_oct or 0) - (first.recv_oct or 0), (latest.send_oct or 0) - (first.send_oct or 0)
    return came > went + _ANSWERS


def _finding(view: View, exchange: Exchange, wrong: list[Binding], clients: list[Connection]) -> Finding:
    publishing = [each for each in clients if _publishes(view, each)]
    names = sorted({client_name(each) or each.name for each in publishing})
    return Finding(
        rule=NAME,
        severity=Severity.WARNING if publishing else Severity.INFO,
        subject=Subject(kind="exchange", name=exchange.name, vhost=exchange.vhost),
        since=None,
        facts={
            "vhost": exchange.vhost,
            "exchange": exchange.name,
            "mqtt_bindings": [
                {
                    "destination_type": each.destination_type,
                    "destination": each.destination,
                    "routing_key": each.routing_key,
                    "correct_key": translated(each.routing_key),
                }
                for each in wrong
            ],
            "mqtt_clients": len(clients),
            "publishing_clients": list(names),
        },
        certainty=Certainty.CERTAIN if all(_WILDCARD.search(each.routing_key) for each in wrong) else Certainty.LIKELY,
        evidence=(
            Evidence(key="bindings", value=len(wrong), source=source("/api/bindings", "routing_key")),
            Evidence(
                key="mqtt_clients",
                value=len(clients),
                source=source("/api/connections", "protocol", "recv_oct", "send_oct"),
            ),
        ),
        involved=Involved(
            exchanges=(ExchangeRef(exchange.vhost, exchange.name),),
            queues=tuple(QueueRef(each.vhost, each.destination) for each in wrong if each.destination_type == "queue"),
            connections=tuple(sorted(each.name for each in publishing)[:MAX_NAMED]),
            clients=tuple(names[:MAX_NAMED]),
        ),
    )
