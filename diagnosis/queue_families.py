"""Groups queues that one pattern of use left behind: used a few times, and named alike or held by one connection.

A queue for each request is used once. If it is then neither deleted nor expires, such queues only become more. What
they share shows where they come from: the connection that consumes from them, or the form of their names.
"""

import re
from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache

from ackscope.snapshot import Queue
from diagnosis.memo import per_view
from diagnosis.purpose import MQTT_SESSIONS
from diagnosis.routes import dead_letter_targets
from diagnosis.view import View
from diagnosis.window import Timestamped

SERVER_NAMED = "amq.gen-*"
"""Form of the names that the broker makes up, for queues of any application."""

_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)
_SERVER_NAMED = re.compile(r"^amq\.gen-.+")
_SEPARATORS = re.compile(r"([^0-9A-Za-z]+)")
_HEX = re.compile(r"[0-9a-fA-F]{8,}")
_WORD = re.compile(r"(?:[A-Z]?[a-z]{2,})+(?=\d)|[A-Z]{3,}(?=\d)")
_CAPITAL = re.compile(r"[A-Z]+")
_CAPITALS, _TOKEN = 3.5, 8
"""Letters per capital below which a part of at least that length is a random token, not CamelCase."""

_FEW, _ONCE = 10, 2
"""Most messages that an unconsumed queue got if it was left behind; a consumed one got its reply, perhaps twice."""

_PER_CONNECTION = 2
"""Exclusive queues without a consumer, per connection: with more, at least one connection holds several."""

_CHURN = 0.2
"""Share of the new queues that may be deleted meanwhile; of more, the client deletes its queues."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueFamily:
    """Queues of one virtual host that were used a few times and left behind.

    Attributes:
        pattern: form of their names, with `*` for the parts that differ.
        connection: name of the connection that consumes from all of them; None if they have no consumer.
        growth: number of those that already existed at each reading of queues; empty if some are deleted, too.
    """

    vhost: str
    pattern: str
    connection: str | None
    queues: tuple[Queue, ...]
    growth: tuple[Timestamped[int], ...]


@lru_cache(maxsize=2**17)
def name_pattern(name: str) -> str:
    """Return a name with `*` for each part that a program made up, such as a number, a UUID or a random token."""
    if _SERVER_NAMED.match(name):
        return SERVER_NAMED
    parts = [_part(part) for part in _SEPARATORS.split(_UUID.sub("0", name))]
    return re.sub(r"\*(?:[^0-9A-Za-z]*\*)+", "*", "".join(parts))


def has_random_part(name: str) -> bool:
    """Return whether a part of a name is a UUID or a random token, which no person chose and no shard has."""
    if _SERVER_NAMED.match(name) or _UUID.search(name):
        return True
    return any(_part(part) == "*" and not part.isdecimal() and len(part) >= _TOKEN for part in _SEPARATORS.split(name))


def _part(part: str) -> str:
    if _HEX.fullmatch(part):
        return "*"
    if any(letter.isdigit() for letter in part):
        word = _WORD.match(part)
        return f"{word[0]}*" if word else "*"
    capitals = len(_CAPITAL.findall(part))
    mixed = 1 < capitals < len(part) and len(part) < _CAPITALS * capitals
    return "*" if mixed and len(part) >= _TOKEN else part


def queue_families(view: View) -> tuple[QueueFamily, ...]:
    """Return the families of queues that were left behind, the largest first."""
    return per_view(view, _families)


def _families(view: View) -> tuple[QueueFamily, ...]:
    least = view.thresholds.queues.reply_least
    grouped: dict[tuple[str, str | None, str], list[Queue]] = defaultdict(list)
    for queue in view.queues:
        if (holder := _left_behind(view, queue)) is not None:
            grouped[(queue.vhost, holder or None, "" if holder else name_pattern(queue.name))].append(queue)
    families = [
        QueueFamily(
            vhost=vhost,
            pattern=pattern or _pattern_of(queues),
            connection=connection,
            queues=tuple(sorted(queues, key=lambda each: each.name)),
            growth=(),
        )
        for (vhost, connection, pattern), queues in grouped.items()
        if len(queues) >= least and ("*" in pattern or connection) and not _one_each(view, vhost, queues)
    ]
    known = _growths(view, families)
    grown = [
        QueueFamily(vhost=it.vhost, pattern=it.pattern, connection=it.connection, queues=it.queues, growth=growth)
        for it, growth in zip(families, known, strict=True)
    ]
    return tuple(sorted(grown, key=lambda it: (-len(it.queues), it.vhost, it.connection or "", it.pattern)))


def _left_behind(view: View, queue: Queue) -> str | None:
    """Return the connection that holds a queue that may be left behind, "" if none is known; None if it is in use."""
    published, consumers = queue.stats.publish or 0, queue.consumers
    if consumers is None or published > (_ONCE if consumers else _FEW) or queue.type == "stream":
        return None
    used = published or (not consumers and (queue.messages or queue.exclusive or queue.auto_delete))
    if not used or any(queue.setting(name) is not None for name in ("expires", "dead-letter-exchange")):
        return None
    if not consumers:
        return "" if not _is_meant(view, queue) else None
    holders = {link.consumer.connection_name for link in view.links(queue)}
    return holders.pop() if len(holders) == 1 else None


def _is_meant(view: View, queue: Queue) -> bool:
    """Return whether a queue without a consumer is there for dead letters, or for a session of the MQTT plugin."""
    if queue.name.startswith(MQTT_SESSIONS) or queue.key in dead_letter_targets(view):
        return True
    return any(re.search(pattern, queue.name) for pattern in view.thresholds.benign_queue_patterns)


def _pattern_of(queues: list[Queue]) -> str:
    patterns = [name_pattern(queue.name) for queue in queues]
    return max(sorted(set(patterns)), key=patterns.count)


def _one_each(view: View, vhost: str, queues: list[Queue]) -> bool:
    """Return whether each connection may hold only a few: the list does not say whose exclusive queues they are."""
    if not all(queue.exclusive and not queue.consumers for queue in queues):
        return False
    return len(queues) < _PER_CONNECTION * sum(each.vhost == vhost for each in view.connections)


def _growths(view: View, families: list[QueueFamily]) -> list[tuple[Timestamped[int], ...]]:
    if not families:
        return []
    times = [seen.at for seen in view.window.readings("queues")]
    deleted: dict[tuple[str, str], int] = defaultdict(int)
    for queue in view.gone_queues():
        deleted[(queue.vhost, name_pattern(queue.name))] += 1
    found = []
    for family in families:
        since = [at.mono for queue in family.queues if (at := view.listed_since(queue)) is not None]
        numbers = tuple(Timestamped(at, sum(each <= at.mono for each in since)) for at in times)
        gained = numbers[-1].value - numbers[0].value if numbers else 0
        churns = deleted[(family.vhost, family.pattern)] > _CHURN * gained
        found.append(() if churns else numbers)
    return found
