"""Reads which channel publishes to which exchange, from the Prometheus endpoints of the nodes, on suspicion only.

With `rates_mode: basic`, the default, the management API does not say it: channels and exchanges have counters of their
own, but not of each other. The family `channel_exchange_metrics` has a row for each channel and exchange.
"""

import math
import re
from collections.abc import Iterable

from ackscope.clock import Clock
from ackscope.errors import BadAnswer, BrokerError
from ackscope.second_source import ChannelPublishes, ExchangePublishes
from ackscope.snapshot import Node, Overview
from exporter.broker.fields import LARGEST
from exporter.broker.http_errors import not_metrics_error
from exporter.broker.prometheus.endpoint import MetricsEndpoint, NodeEndpoints
from exporter.broker.prometheus.figures import DETAILED, IDENTITY
from exporter.broker.prometheus.samples import read_samples
from exporter.broker.prometheus.settings import PrometheusSettings

FAMILY = "channel_exchange_metrics"

MOST_ROWS = 2000
"""Most rows of a reading, one for a channel and an exchange; those that lose messages come first."""

UNASKED_SECONDS = 600.0
"""Seconds for which a default port that did not answer is not asked again."""

_GUESSED_TIMEOUT = 2.0
"""Longest seconds to wait for a default port. Behind a firewall it may be silent."""

_COUNTERS = {
    f"rabbitmq_detailed_channel_messages_{name}_total": field
    for name, field in {
        "published": "published",
        "confirmed": "confirmed",
        "unroutable_returned": "returned",
        "unroutable_dropped": "dropped",
    }.items()
}
"""Metric -> attribute of `ChannelPublishes`."""

_ROW = re.compile(r'(\w+)\{channel="(<[\d.]+>)",vhost="(.*?)",exchange="(.*)"\} (\S+)')
"""A row of a channel and an exchange. RabbitMQ 3.10 does not escape quotes in names: a parser of the format fails."""

_LONGEST = 4000
"""Characters of the longest row: names have up to 255 bytes. Matching a much longer line would take long."""

_ESCAPED = re.compile(r"\\(.)")


class PublishesReader:
    """Reads the rows of all nodes of one cluster, one node after another. It belongs to one thread at a time.

    Args:
        settings: the endpoints; without addresses, port 15692 of each known node, if it answers.
        management_host: host of the management API, which is a node's; None without one.
        clock: dates the answers.
        what: name of the settings in error messages, such as `clusters.shop.prometheus`.
    """

    def __init__(
        self, settings: PrometheusSettings, management_host: str | None, clock: Clock, what: str = "prometheus"
    ) -> None:
        self._configured, self._clock = bool(settings.urls), clock
        if not self._configured:
            settings = settings.model_copy(update={"timeout": min(settings.timeout, _GUESSED_TIMEOUT)})
        self._endpoints = NodeEndpoints(settings, management_host, what)
        # Address -> until when it is not asked (monotonic clock).
        self._unasked: dict[str, float] = {}

    @property
    def cost(self) -> tuple[float, int, int]:
        """Seconds of broker time, requests and bytes so far."""
        return self._endpoints.cost

    def read(self, overview: Overview | None, nodes: Iterable[Node]) -> ExchangePublishes | None:
        """Read all nodes; None if no endpoint is configured and no default port answers.

        Args:
            overview: latest overview of the management API, if there is one.
            nodes: nodes that the management API lists.

        Raises:
            BrokerError: endpoints are configured, and none could be read; the message is that of the first.
        """
        running = [node.name for node in nodes if node.running is not False]
        began = self._clock.now()
        found: dict[str, list[ChannelPublishes]] = {}
        unread: dict[str, str] = {}
        errors: list[BrokerError] = []
        for url, endpoint in self._endpoints.follow(overview, running).items():
            if self._unasked.get(url, -math.inf) > self._clock.now().mono:
                unread[endpoint.address.where] = f"no answer within the last {UNASKED_SECONDS / 60:g} min"
                continue
            try:
                name, rows = _decoded(endpoint)
                if running and name not in running:
                    raise BadAnswer(f"{endpoint.address.where}: {name}, which is no node of this cluster")
            except BrokerError as error:
                errors.append(error)
                unread[endpoint.address.where] = str(error)
                if not self._configured:
                    self._unasked[url] = self._clock.now().mono + UNASKED_SECONDS
            else:
                # Several addresses of one node, behind a load balancer, must not count twice.
                found[name] = rows
        if not found:
            if self._configured and errors:
                raise errors[0].with_traceback(None)
            return None
        if not unread:
            unread = dict.fromkeys(sorted(set(running) - set(found)), "no address of this node is configured")
        rows = sorted(
            (row for each in found.values() for row in each),
            key=lambda row: (not row.loses, -(row.published or 0), row.node, row.process, row.vhost, row.exchange),
        )
        return ExchangePublishes(
            nodes=tuple(sorted(found)),
            unread=unread,
            seconds=self._clock.now().since(began),
            channels=tuple(rows[:MOST_ROWS]),
            omitted=max(0, len(rows) - MOST_ROWS),
        )

    def close(self) -> None:
        """Close all connections."""
        self._endpoints.close()


def decode_publishes(text: str) -> tuple[str, list[ChannelPublishes]] | None:
    """Decode the answer of one node: its name and its rows. None if it does not name the node.

    Raises:
        ValueError: the answer is not in the text format of Prometheus.
    """
    name = ""
    counters: dict[tuple[str, str, str], dict[str, int]] = {}
    others = []
    for line in text.splitlines():
        found = _ROW.fullmatch(line) if len(line) <= _LONGEST else None
        if found is None:
            others.append(line)
            continue
        metric, process, vhost, exchange, number = found.groups()
        if metric in _COUNTERS:
            row = counters.setdefault((process, _unescaped(vhost), _unescaped(exchange)), {})
            value = float(number)
            if 0 <= value < LARGEST:
                row[_COUNTERS[metric]] = int(value)
    for sample in read_samples("\n".join(others), {IDENTITY}):
        name = sample.labels.get("rabbitmq_node", "")
    if not name:
        return None
    rows = [
        ChannelPublishes(node=name, process=process, vhost=vhost, exchange=exchange, **row)
        for (process, vhost, exchange), row in counters.items()
    ]
    return name, rows


def _unescaped(label: str) -> str:
    return _ESCAPED.sub(lambda found: "\n" if found[1] == "n" else found[1], label)


def _decoded(endpoint: MetricsEndpoint) -> tuple[str, list[ChannelPublishes]]:
    try:
        found = decode_publishes(endpoint.text(DETAILED, (FAMILY,)))
    except ValueError:
        found = None
    if found is None:
        raise not_metrics_error(endpoint.address, DETAILED)
    return found
