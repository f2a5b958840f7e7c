"""The flow of messages as a graph in columns: publishers, exchanges, queues, consumers, dead letters. Pure.

Clients with the same name are one box: sixty connections of a service are one box with their number and total rate.
"""

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from ackscope import format as fmt
from ackscope.protocols import STREAM
from dashboard.frames.dead_letters import DeadLetterRoute
from dashboard.frames.queue_rows import is_own
from dashboard.frames.vhost_traffic import RouteCertainty, VhostTraffic

PUBLISHER, EXCHANGE, QUEUE, CONSUMER, DEAD, REST = "publisher", "exchange", "queue", "consumer", "dead letters", "rest"

SHOWN = 20
"""Boxes of one column; the others are counted in one more box."""
_KEYS = 3

_DEFAULT = ""


@dataclass(frozen=True, slots=True)
class FlowBox:
    """One box.

    Attributes:
        kind: `PUBLISHER`, `EXCHANGE`, `QUEUE`, `CONSUMER`, `DEAD` (a dead-letter exchange) or `REST`.
        title: its name.
        details: further lines, with units.
        opens: virtual host and name of the queue that a click opens; None if it opens nothing.
        own: it belongs to ackscope's probes.
        sick: it has a finding, which is among the details.
    """

    kind: str
    title: str
    details: tuple[str, ...] = ()
    opens: tuple[str, str] | None = None
    own: bool = False
    sick: bool = False


@dataclass(frozen=True, slots=True)
class FlowLine:
    """A connection of two boxes.

    Attributes:
        rate: messages per second; None if unknown.
        text: what it is, such as routing keys.
        dead: dead letters flow here.
        sure: False if messages only may flow here.
    """

    start: str
    end: str
    rate: float | None = None
    text: str = ""
    dead: bool = False
    sure: bool = True


@dataclass(frozen=True, slots=True)
class FlowGraph:
    """Columns of boxes from left to right, by key, and the lines between them.

    Attributes:
        notes: what the picture omits, and why.
    """

    columns: tuple[tuple[str, ...], ...] = ()
    boxes: Mapping[str, FlowBox] = field(default_factory=dict)
    lines: tuple[FlowLine, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def sure(self) -> bool:
        """Whether messages flow along all lines for sure."""
        return all(line.sure for line in self.lines)


class _Drawing:
    """A graph in the making: boxes by column."""

    def __init__(self, columns: int) -> None:
        self.columns: list[dict[str, FlowBox]] = [{} for _ in range(columns)]
        self.lines: list[FlowLine] = []
        self.notes: list[str] = []

    def add(self, column: int, key: str, box: FlowBox) -> str:
        """Add a box once; returns its key."""
        self.columns[column].setdefault(key, box)
        return key

    def exchanges(self) -> list[str]:
        """The exchanges so far."""
        prefix = f"{EXCHANGE}:"
        return [key.removeprefix(prefix) for column in self.columns for key in column if key.startswith(prefix)]

    def graph(self) -> FlowGraph:
        """The graph with its boxes in an order in which few lines cross."""
        known = {key for column in self.columns for key in column}
        lines = [line for line in self.lines if line.start in known and line.end in known]
        boxes = {key: box for column in self.columns for key, box in column.items()}
        columns = _uncrossed([list(column) for column in self.columns if column], lines)
        return FlowGraph(tuple(map(tuple, columns)), boxes, tuple(dict.fromkeys(lines)), tuple(self.notes))


def _uncrossed(columns: list[list[str]], lines: Sequence[FlowLine]) -> list[list[str]]:
    """Order the boxes of each column by the mean position of their neighbours, from both sides."""
    near: dict[str, list[str]] = {}
    for line in lines:
        near.setdefault(line.start, []).append(line.end)
        near.setdefault(line.end, []).append(line.start)
    for _ in range(4):
        for column in columns:
            places = {
                key: (place + 0.5) / len(other)
                for other in columns
                if other is not column
                for place, key in enumerate(other)
            }
            near_places = {key: [places[it] for it in near.get(key, ()) if it in places] or [0.5] for key in column}
            means = {key: (key.startswith(REST), sum(found) / len(found)) for key, found in near_places.items()}
            column.sort(key=means.__getitem__)
    return columns


def per_second(rate: float | None, what: str = "") -> str:
    """A rate with its unit: `48.2/s`, `48.2/s published`, `rate unknown`."""
    if rate is None or math.isnan(rate):
        return "rate unknown"
    shown = "0/s" if rate < 0.005 else f"{rate:.2f}/s" if rate < 1 else f"{rate:,.1f}/s"
    return f"{shown} {what}".strip()


def _in_and_acked(published: float, acked: float) -> str:
    if math.isnan(published) and math.isnan(acked):
        return "rates unknown"
    return f"{per_second(published, 'in')}, {per_second(acked, 'acked')}"


def _total(rates: Iterable[float | None]) -> float | None:
    """The sum; None if one is unknown, because a partial sum would look like a drop."""
    known = list(rates)
    return None if any(rate is None for rate in known) else sum(rate for rate in known if rate is not None)


def exchange_name(name: str) -> str:
    """The name of an exchange for people: the default one has none."""
    return name or "(default exchange)"


def _exchange_key(name: str) -> str:
    return f"{EXCHANGE}:{name}"


def _queue_key(name: str) -> str:
    return f"{QUEUE}:{name}"


def _publishers(
    drawing: _Drawing, column: int, traffic: VhostTraffic, exchanges: Iterable[str], received: float | None = None
) -> None:
    """Add the clients that publish to these exchanges, or may: one box per client name.

    The first are those whose rate is nearest to `received`, messages per second; without it the busiest.
    """
    found = [(client, exchange, sure) for exchange in exchanges for client, sure in traffic.publishers(exchange)]
    clients = sorted(
        dict.fromkeys(client for client, _, _ in found),
        key=lambda it: (-it.rate if received is None else abs(it.rate - received), it.name),
    )
    shown = set(clients[:SHOWN])
    for client in clients[:SHOWN]:
        details = [per_second(client.rate, "published")]
        details += [fmt.plural(client.connections, "connection")] if client.connections > 1 else []
        details += [client.hosts[0] if len(client.hosts) == 1 else f"{len(client.hosts)} hosts"] if client.hosts else []
        drawing.add(column, f"{PUBLISHER}:{client.name}", FlowBox(PUBLISHER, client.name, tuple(details)))
    for client, exchange, sure in found:
        if client in shown:
            alone = len([name for name in exchanges if name in traffic.busy]) == 1 or sure is RouteCertainty.FITS
            rate = client.rate if sure is not RouteCertainty.POSSIBLE and alone else None
            possible = sure is RouteCertainty.POSSIBLE
            drawing.lines.append(
                FlowLine(f"{PUBLISHER}:{client.name}", _exchange_key(exchange), rate, sure.value, sure=not possible)
            )
    rest = clients[SHOWN:]
    if rest:
        together = per_second(sum(client.rate for client in rest), "published")
        drawing.add(column, f"{REST}:publishers", FlowBox(REST, f"{len(rest)} more publishing clients", (together,)))


def _notes(drawing: _Drawing, traffic: VhostTraffic, received: float | None = None) -> None:
    if traffic.problem:
        drawing.notes.append(f"Publishers are unknown: {traffic.problem}.")
    possible = {line.start for line in drawing.lines if not line.sure}
    if possible:
        nearest = " The first is the one whose rate is nearest to that of the queue."
        drawing.notes.append(
            "Dotted: these clients publish in this virtual host, so messages may come from them; the broker does not "
            f"report to which exchange.{nearest if received is not None and len(possible) > 1 else ''}"
        )


def exchange_details(traffic: VhostTraffic, name: str) -> tuple[str, ...]:
    """The lines in the box of an exchange: its type, and messages in and out per second."""
    kind, received, routed = traffic.types.get(name, ""), traffic.received.get(name), traffic.routed.get(name)
    if routed is None:
        rates = per_second(received, "received")
    else:
        rates = f"{per_second(received)} in, {per_second(routed)} out"
    return (*([kind] if kind and name else []), rates)


def of_queue(
    vhost: str,
    queue: str,
    bindings: pd.DataFrame,
    consumers: pd.DataFrame,
    dead: Sequence[DeadLetterRoute],
    traffic: VhostTraffic,
    *,
    published: float | None = None,
    details: tuple[str, ...] = (),
    sick: bool = False,
    writers: pd.DataFrame | None = None,
) -> FlowGraph:
    """What flows into and out of one queue.

    Args:
        vhost: virtual host of the queue.
        queue: name of the queue.
        bindings: columns `vhost`, `source`, `destination`, `destination_type`, `routing_key`.
        consumers: rows of `consumer_rows`.
        dead: dead-letter routes from this queue and to it.
        traffic: of its virtual host.
        published: messages per second that the queue receives; None if unknown.
        details: lines in the box of the queue.
        sick: it has a finding.
        writers: rows of `stream_writers`: clients that publish to streams without an exchange.
    """
    drawing = _Drawing(6)
    here = bindings[bindings["vhost"] == vhost]
    direct = here[(here["destination"] == queue) & (here["destination_type"] == "queue")]
    sources = list(dict.fromkeys(direct["source"]))
    # Every queue is bound to the default exchange. It is shown if messages come through it, or may.
    if traffic.route_rate(sources, _DEFAULT, published) != 0 or not sources:
        sources.append(_DEFAULT)
    ranked = sorted(sources, key=lambda name: (-(traffic.received.get(name) or 0), name))
    mine = drawing.add(3, _queue_key(queue), FlowBox(QUEUE, queue, details, sick=sick))
    for name in ranked[:SHOWN]:
        keys = _keys(sorted(set(direct.loc[direct["source"] == name, "routing_key"]))) if name else f"key {queue}"
        box = FlowBox(EXCHANGE, exchange_name(name), (*exchange_details(traffic, name), keys))
        rate = traffic.route_rate(sources, name, published)
        drawing.lines.append(FlowLine(drawing.add(2, _exchange_key(name), box), mine, rate, keys))
    if len(ranked) > SHOWN:
        key = drawing.add(2, f"{REST}:exchanges", FlowBox(REST, f"{len(ranked) - SHOWN} more exchanges"))
        drawing.lines.append(FlowLine(key, mine))
    behind = here[(here["destination_type"] == "exchange") & here["destination"].isin(ranked[:SHOWN])]
    for source, target, text in _pairs(behind)[:SHOWN]:
        if source not in sources:
            box = FlowBox(EXCHANGE, exchange_name(source), (*exchange_details(traffic, source), _keys([text])))
            drawing.add(1, _exchange_key(source), box)
        drawing.lines.append(FlowLine(_exchange_key(source), _exchange_key(target), None, _keys([text])))
    _publishers(drawing, 0, traffic, drawing.exchanges(), published)
    if writers is not None:
        _writers(drawing, mine, writers[(writers["vhost"] == vhost) & (writers["queue"] == queue)])
    _consumers(drawing, mine, consumers[(consumers["vhost"] == vhost) & (consumers["queue"] == queue)], traffic)
    _dead_letters(drawing, mine, vhost, queue, dead)
    _notes(drawing, traffic, published)
    return drawing.graph()


def _writers(drawing: _Drawing, stream: str, rows: pd.DataFrame) -> None:
    """Add the clients that publish to a stream with the stream protocol, one box per client name."""
    groups = [(str(client), mine) for client, mine in rows.groupby("client", sort=True)]
    for client, mine in groups[:SHOWN]:
        waiting, refused = mine["unconfirmed"].sum(min_count=1), float(mine["errored"].sum())
        details = [] if math.isnan(waiting) else [f"{waiting:,.0f} unconfirmed"]
        details += [f"{refused:,.0f} refused"] if refused else []
        details += [fmt.plural(len(mine), "publisher")] if len(mine) > 1 else []
        box = FlowBox(PUBLISHER, client or "unknown client", (*details, STREAM))
        drawing.lines.append(FlowLine(drawing.add(2, f"{PUBLISHER}:{STREAM}:{client}", box), stream))
    if len(groups) > SHOWN:
        box = FlowBox(REST, f"{len(groups) - SHOWN} more publishing clients", (STREAM,))
        drawing.lines.append(FlowLine(drawing.add(2, f"{REST}:writers", box), stream))


def _pairs(rows: pd.DataFrame) -> list[tuple[str, str, str]]:
    return [(source, target, key) for source, target, key in rows[["source", "destination", "routing_key"]].to_numpy()]


def _keys(keys: Sequence[str]) -> str:
    shown = [repr(key) if not key.strip() else key for key in keys[:_KEYS]]
    more = f" and {len(keys) - _KEYS} more" if len(keys) > _KEYS else ""
    return f"{'key' if len(keys) == 1 else 'keys'} {', '.join(shown)}{more}"


def _consumers(drawing: _Drawing, queue: str, rows: pd.DataFrame, traffic: VhostTraffic) -> None:
    """Add the consumers of a queue, one box per client name, the fullest first."""
    groups = [(str(client), mine) for client, mine in rows.groupby("client", sort=False)]
    for client, mine in groups[:SHOWN]:
        channels = [traffic.channels.get(name, (None, None)) for name in dict.fromkeys(mine["channel"])]
        sent, acked = _total(it[0] for it in channels), _total(it[1] for it in channels)
        # A channel may also consume from other queues; the broker counts all of them together.
        more = (
            ", with other queues"
            if (mine["beside"].fillna(0) > mine.groupby("channel")["tag"].transform("size")).any()
            else ""
        )
        details = [per_second(sent, f"delivered{more}")]
        if (mine["protocol"] != STREAM).any():
            details += [per_second(acked, f"acked{more}")] if (mine["acks"] != "automatic").any() else ["automatic ack"]
        lag = mine["lag"].max()
        details += [] if pd.isna(lag) else [f"{lag:,.0f} behind the end"]
        details += [name for name in dict.fromkeys(mine["protocol"]) if name]
        details += [fmt.plural(len(mine), "consumer")] if len(mine) > 1 else []
        hosts = sorted({host for host in mine["host"] if host} - {client})
        details += [hosts[0] if len(hosts) == 1 else f"{len(hosts)} hosts"] if hosts else []
        box = FlowBox(CONSUMER, client or "unknown client", tuple(dict.fromkeys(details)))
        drawing.lines.append(FlowLine(queue, drawing.add(4, f"{CONSUMER}:{client}", box), None if more else sent))
    if len(groups) > SHOWN:
        number = sum(len(mine) for _, mine in groups[SHOWN:])
        key = drawing.add(4, f"{REST}:consumers", FlowBox(REST, f"{number} more consumers"))
        drawing.lines.append(FlowLine(queue, key))
    if not groups:
        drawing.add(4, f"{REST}:none", FlowBox(REST, "no consumer"))


def _dead_letters(drawing: _Drawing, mine: str, vhost: str, queue: str, dead: Sequence[DeadLetterRoute]) -> None:
    for route in dead:
        if (route.vhost, route.queue) == (vhost, queue):
            exchange = drawing.add(
                4, f"{DEAD}:{route.exchange}", FlowBox(DEAD, exchange_name(route.exchange), ("dead letters",))
            )
            drawing.lines.append(FlowLine(mine, exchange, None, "dead letters", dead=True))
            target = (
                FlowBox(QUEUE, route.target, ("receives dead letters",), (vhost, route.target))
                if route.target
                else FlowBox(REST, route.why)
            )
            key = mine if route.target == queue else drawing.add(5, f"{QUEUE}:{route.target or route.why}", target)
            drawing.lines.append(FlowLine(exchange, key, None, "dead letters", dead=True))
        elif route.target == queue and route.vhost == vhost:
            box = FlowBox(QUEUE, route.queue, ("sends its dead letters here",), (vhost, route.queue))
            key = drawing.add(2, _queue_key(route.queue), box)
            drawing.lines.append(FlowLine(key, mine, None, "dead letters", dead=True))


def of_vhost(
    vhost: str,
    queues: pd.DataFrame,
    bindings: pd.DataFrame,
    dead: Sequence[DeadLetterRoute],
    traffic: VhostTraffic,
) -> FlowGraph:
    """The busiest queues of a virtual host without those of probes, the exchanges that feed them, and publishers.

    Idle queues without a finding are only counted, unless all are idle.

    Args:
        vhost: the virtual host.
        queues: rows of `queue_rows`.
        bindings: columns as in `of_queue`.
        dead: all dead-letter routes.
        traffic: of the virtual host.
    """
    drawing = _Drawing(4)
    here = bindings[bindings["vhost"] == vhost]
    mine = queues[(queues["vhost"] == vhost) & ~queues["own"]]
    busy = mine["published"].fillna(0) + mine["acked"].fillna(0) + mine["ready"].fillna(0) / 60
    ranked = mine.assign(_busy=busy).sort_values(["urgency", "_busy", "queue"], ascending=[True, False, True])
    active = ranked[(ranked["_busy"] > 0) | (ranked["finding"] != "")]
    shown = (active if len(active) else ranked).head(SHOWN)
    rates: dict[str, Any] = dict(zip(shown["queue"], shown["published"], strict=True))
    for row in shown.to_dict("records"):
        drawing.add(3, _queue_key(row["queue"]), _queue_box(row, vhost))
    if len(ranked) > len(shown):
        idle = " idle" if len(shown) == len(active) else ""
        title = f"{len(ranked) - len(shown)} more{idle} queues"
        drawing.add(3, f"{REST}:queues", FlowBox(REST, title, ("see page Queues",)))
    keys: dict[tuple[str, str], list[str]] = {}
    for source, target, key in _pairs(here[here["destination_type"] == "queue"]):
        if target in rates:
            keys.setdefault((target, source), []).append(key)
    sources: dict[str, list[str]] = {}
    for target, source in keys:
        sources.setdefault(target, []).append(source)
    for target, published in rates.items():
        bound = sources.get(target, [])
        rate = None if pd.isna(published) else float(published)
        # The default exchange is drawn where it is the only way in.
        way_in = bound or ([_DEFAULT] if traffic.route_rate([], _DEFAULT, rate) != 0 and rate else [])
        for source in way_in:
            text = _keys(sorted(set(keys.get((target, source), [target]))))
            box = FlowBox(EXCHANGE, exchange_name(source), exchange_details(traffic, source))
            key = drawing.add(2, _exchange_key(source), box)
            drawing.lines.append(FlowLine(key, _queue_key(target), traffic.route_rate(bound, source, rate), text))
    for source, target, key in _pairs(here[here["destination_type"] == "exchange"]):
        if _exchange_key(target) in drawing.columns[2]:
            if _exchange_key(source) not in drawing.columns[2]:
                box = FlowBox(EXCHANGE, exchange_name(source), exchange_details(traffic, source))
                drawing.add(1, _exchange_key(source), box)
            drawing.lines.append(FlowLine(_exchange_key(source), _exchange_key(target), None, _keys([key])))
    _publishers(drawing, 0, traffic, drawing.exchanges())
    for route in dead:
        if route.vhost == vhost and route.target and route.queue in rates and route.target in rates:
            start, end = _queue_key(route.queue), _queue_key(route.target)
            drawing.lines.append(FlowLine(start, end, None, "dead letters", dead=True))
    _notes(drawing, traffic)
    return drawing.graph()


def _queue_box(row: Mapping[Hashable, Any], vhost: str) -> FlowBox:
    def whole(name: str) -> str:
        value = row[name]
        return fmt.ABSENT if pd.isna(value) else f"{value:,.0f}"

    name = str(row["queue"])
    details = [
        f"{whole('ready')} ready, {whole('unacked')} unacked",
        _in_and_acked(row["published"], row["acked"]),
        "consumers unknown" if pd.isna(row["consumers"]) else fmt.plural(row["consumers"], "consumer"),
    ]
    sick = bool(row["finding"])
    details += [f"finding: {row['finding']}"] if sick else []
    return FlowBox(QUEUE, name, tuple(details), (vhost, name), own=is_own(name), sick=sick)


def table(graph: FlowGraph) -> pd.DataFrame:
    """The lines as rows: `from`, `to`, `rate` (messages per second), `what`."""
    rows = [
        (
            f"{graph.boxes[it.start].kind} {graph.boxes[it.start].title}",
            f"{graph.boxes[it.end].kind} {graph.boxes[it.end].title}",
            it.rate,
            it.text,
        )
        for it in graph.lines
    ]
    return pd.DataFrame(rows, columns=["from", "to", "rate", "what"])
