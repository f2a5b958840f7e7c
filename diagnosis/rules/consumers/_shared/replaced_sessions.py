"""Sessions of MQTT whose client connects again and again, each time in place of the connection before.

The broker has one connection for each client id, and ends the older one when another comes with the same id. Two
devices with one id that both reconnect end each other without end. The queue of the session then has a consumer in
each reading, but not the same one. A fleet whose devices wake, publish and disconnect leaves its queues without one.

The management plugin lists consumers and connections that it finds when it samples, every 5 s. So a consumer that the
queue counts and the list lacks is younger than that; seen on 3.10.8 with clients that come back after 1 to 2 s.
Source: https://docs.oasis-open.org/mqtt/mqtt/v3.1.1/mqtt-v3.1.1.html (3.1.4, MQTT-3.1.4-2)
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ackscope.clock import Instant
from ackscope.findings import Fact
from ackscope.snapshot import Connection, Consumer, Queue
from diagnosis.churn import churn_rate
from diagnosis.churn_loops import FEWEST
from diagnosis.contract import View
from diagnosis.purpose import mqtt_client
from diagnosis.rules.consumers._shared.comings import seen_connections
from diagnosis.rules.consumers._shared.turnover import consumers_by_reading
from diagnosis.rules.queues._shared.queue import MAX_NAMED

_ATTENDED = 0.8
"""Minimum share of the readings in which the queue has a consumer."""
_GENERATIONS = 3
"""Different consumers: one that reconnects once is two."""


@dataclass(frozen=True, slots=True)
class ReplacedSession:
    """One session whose connections end each other.

    Attributes:
        different: a minimum of the connections that consumed from its queue in the readings of consumers.
        over_seconds: the time that these readings cover.
        connections: names of those that were listed.
        addresses, hosts: `host:port` and host of each of them, sorted.
        rate: connections per second that the whole cluster opens and closes.
        seconds, since: for how long and since when the session has had a consumer while connections open and close.
    """

    client_id: str
    different: int
    over_seconds: float
    connections: tuple[str, ...]
    addresses: tuple[str, ...]
    hosts: tuple[str, ...]
    rate: float
    seconds: float
    since: Instant

    def facts(self) -> dict[str, Fact]:
        """Return the facts that the page uses."""
        return {
            "client_id": self.client_id,
            "different": self.different,
            "over_seconds": self.over_seconds,
            "addresses": list(self.addresses[:MAX_NAMED]),
            "hosts": list(self.hosts[:MAX_NAMED]),
            "cycle_rate": self.rate,
        }


def replaced_session(view: View, queue: Queue) -> ReplacedSession | None:
    """Return what is known of a session whose client connects again and again; None if it does not."""
    client_id = mqtt_client(queue)
    churn = churn_rate(view, "connection") if client_id is not None and queue.consumers else None
    if client_id is None or churn is None or churn.rate * churn.lasts < FEWEST:
        return None
    readings, listed = view.window.readings("consumers"), consumers_by_reading(view, queue)
    different = _different(listed)
    history = [seen for seen in view.history(queue) if seen.at.mono >= churn.since.mono - 1.0]
    unattended = sum(seen.value.consumers == 0 for seen in history)
    if different < min(_GENERATIONS, view.limits(queue).consumers.flapping_changes + 1) or not history:
        return None
    if unattended > (1.0 - _ATTENDED) * len(history):
        return None
    since = max(history[0].at, churn.since, key=lambda at: at.mono)
    seconds = history[-1].at.since(since)
    if seconds < view.limits(queue).early:
        return None
    connections = _connections(view, queue, client_id, listed)
    if any(len(view.connection_history(each.name)) == len(view.window.readings("connections")) for each in connections):
        return None
    return ReplacedSession(
        client_id=client_id,
        different=different,
        over_seconds=readings[-1].at.since(readings[0].at),
        connections=tuple(each.name for each in connections),
        addresses=tuple(sorted({f"{each.peer_host}:{each.peer_port}" for each in connections if each.peer_host})),
        hosts=tuple(sorted({each.peer_host for each in connections if each.peer_host})),
        rate=churn.rate,
        seconds=seconds,
        since=since,
    )


def _different(listed: Sequence[Sequence[Consumer]]) -> int:
    """Return a minimum of the consumers of a queue that has one at each reading.

    One that is not listed yet may be the one that the next reading lists.
    """
    known: set[tuple[str | None, str]] = set()
    found, pending = 0, False
    for consumers in listed:
        new = {(each.connection_name, each.tag) for each in consumers} - known
        found += 1 if not consumers else max(0, len(new) - pending)
        known |= new
        pending = not consumers
    return found


def _connections(
    view: View, queue: Queue, client_id: str, listed: Sequence[Sequence[Consumer]]
) -> tuple[Connection, ...]:
    known = seen_connections(view)
    names = {each.connection_name for consumers in listed for each in consumers}
    names |= {each.name for each in known.values() if each.client_id == client_id and each.vhost == queue.vhost}
    return tuple(known[name] for name in sorted(each for each in names if each) if name in known)
