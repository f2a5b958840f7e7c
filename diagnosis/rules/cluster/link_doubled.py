"""link-doubled: two links move the same messages to the same place.

A shovel that takes from an exchange binds a queue of its own, so each of two shovels gets every message, and the target
gets it twice. A shovel and a federation link double in the same way. Two federation links to one upstream exchange
share one queue there, whatever their names: messages come once, but through two connections, so not in order (seen on
4.3.6: 20 published, 20 arrived). Links that take from one queue share its messages, which may be meant.
Source: https://www.rabbitmq.com/docs/shovel; https://www.rabbitmq.com/docs/federated-exchanges
"""

from collections import defaultdict
from collections.abc import Iterator
from urllib.parse import unquote, urlsplit

from ackscope.findings import (
    Certainty,
    Evidence,
    ExchangeRef,
    Finding,
    Involved,
    QueueRef,
    Severity,
    Subject,
    Unit,
    source,
)
from ackscope.topology import Exchange, Link
from diagnosis.contract import RuleResult, View
from diagnosis.series import delta, last, span
from diagnosis.window import Series

NAME = "link-doubled"

_TRANSFERS = {"running", "flow"}
_WATCHED = 25.0
_QUEUE, _ANY_KEY = "queue ", "#"

_Address = tuple[str, str]
"""Host with port, and virtual host."""
_Way = tuple[_Address, str, str, _Address, str, str]
"""From where, which exchange or queue and which key, to where, which exchange or queue and with which key."""


def evaluate(view: View) -> Iterator[RuleResult]:
    """Group the running links by where they take messages from and where they bring them."""
    ways: dict[_Way, list[Link]] = defaultdict(list)
    for link in view.bridges:
        if link.state in _TRANSFERS and (way := _way(link)) is not None:
            ways[way].append(link)
    for way, links in sorted(ways.items()):
        # All federation links to one upstream exchange share a queue there; each shovel has its own.
        copies = sum(link.kind == "shovel" for link in links) + any(link.kind == "federation" for link in links)
        if len(links) > 1:
            yield _finding(view, way, sorted(links, key=lambda each: (each.kind, each.name)), copies)


def _way(link: Link) -> _Way | None:
    """Return between which places a link moves messages; None for links that share the messages of one queue."""
    origin = _address(link.source, link.vhost)
    if link.kind == "federation":
        remote = link.source_exchange if link.type == "exchange" else link.source_queue
        if remote is None or link.local is None:
            return None
        # Without a key: the local exchange routes by the keys of the messages.
        kind = "" if link.type == "exchange" else _QUEUE
        return origin, f"{kind}{remote}", "", ("", link.vhost or "/"), f"{kind}{link.local}", ""
    if link.source_exchange is None:
        return None
    target = _address(link.destination, link.vhost)
    if target[0] in ("", origin[0]):
        # From and to this cluster, which is also where federation links deliver to.
        target = ("", target[1])
    name = link.target_exchange if link.target_queue is None else _QUEUE + link.target_queue
    key = "" if link.source_key in (None, _ANY_KEY) else link.source_key
    return origin, link.source_exchange, key, target, name or "", link.target_key or ""


def _address(uri: str | None, own: str | None) -> _Address:
    parts = urlsplit(uri or "")
    host = parts.netloc.rpartition("@")[2].removesuffix(":5672").removesuffix(":5671")
    return host.lower(), unquote(parts.path[1:]) or own or "/"


def _moved(view: View, links: list[Link]) -> tuple[float | None, float | None]:
    """Return the messages a second that source and target got recently; None of what is not in this cluster."""
    readings = view.window.readings("exchanges")
    recent = last(readings, _WATCHED)
    first = links[0]
    place = _address(first.destination, first.vhost)[1] if first.kind == "shovel" else first.vhost or "/"
    target = first.target_exchange if first.kind == "shovel" else first.local
    origin = _address(first.source, first.vhost)[1]
    came = _received(recent, (origin, first.source_exchange or ""))
    if first.target_queue is not None or (first.kind == "federation" and first.type == "queue"):
        queue = view.queue(place, first.target_queue or first.local or "")
        history = last(view.history(queue), _WATCHED) if queue is not None else ()
        went = delta(history, "publish") / span(history) if span(history) else None
    else:
        went = _received(recent, (place, target or ""))
    return came, went


def _received(readings: Series[tuple[Exchange, ...]], key: tuple[str, str]) -> float | None:
    found = [(seen.at, each.stats.publish_in or 0) for seen in readings for each in seen.value if each.key == key]
    if len(found) < 2 or found[-1][0] == found[0][0]:
        return None
    return (found[-1][1] - found[0][1]) / found[-1][0].since(found[0][0])


def _forwards(view: View, links: list[Link]) -> bool:
    """Return whether a shovel of these counted messages in the latest readings of links."""
    names = {each.name for each in links if each.kind == "shovel"}
    numbers = [
        sum(each.forwarded or 0 for each in seen.value if each.kind == "shovel" and each.name in names)
        for seen in view.window.readings("links")[-3:]
    ]
    return len(numbers) > 1 and numbers[-1] > numbers[0]


def _finding(view: View, way: _Way, links: list[Link], copies: int) -> Finding:
    (_, remote, _, (_, vhost), local, _), first = way, links[0]
    came, went = _moved(view, links)
    flows = bool(went) or _forwards(view, links)
    doubled = copies > 1
    queue, target = local.startswith(_QUEUE), local.removeprefix(_QUEUE)
    evidence = [
        Evidence(
            key="links",
            value=len(links),
            source=source("/api/shovels", "src_exchange", "dest_exchange", "dest_queue")
            + source("/api/federation-links", "upstream_exchange", "upstream_queue", "uri"),
        )
    ]
    if went is not None:
        path = "/api/queues" if queue else "/api/exchanges"
        evidence.append(
            Evidence(
                key="moved",
                value=went,
                unit=Unit.PER_SECOND,
                source=source(path, "message_stats"),
                facts={"came_rate": came},
            )
        )
    return Finding(
        rule=NAME,
        severity=Severity.WARNING if doubled and flows else Severity.INFO,
        subject=Subject(kind="link", name=first.name, vhost=first.vhost, node=first.node),
        facts={
            "vhost": first.vhost or "/",
            "target_vhost": vhost,
            "links": [each.name for each in links],
            "kinds": sorted({each.kind for each in links}),
            "copies": copies,
            "doubled": doubled,
            "flows": flows,
            "remote": remote.removeprefix(_QUEUE),
            "remote_is_queue": remote.startswith(_QUEUE),
            "address": first.source,
            "target": target,
            "target_is_queue": queue,
            "dynamic": all(each.type != "static" for each in links),
        },
        certainty=Certainty.CERTAIN,
        evidence=tuple(evidence),
        involved=Involved(
            exchanges=() if queue else (ExchangeRef(vhost, target),),
            queues=(QueueRef(vhost, target),) if queue else (),
        ),
    )
