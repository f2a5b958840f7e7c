"""Queues that were left behind: their client came back and declared a queue with a new name."""

from collections import defaultdict
from dataclasses import dataclass

from ackscope.snapshot import Queue
from diagnosis.memo import per_view
from diagnosis.purpose import had_consumer, was_consumed
from diagnosis.queue_families import SERVER_NAMED, has_random_part, name_pattern
from diagnosis.routes import bound_exchanges
from diagnosis.view import View
from diagnosis.window import Series

_SOON = 60.0
"""Seconds from the end of the last consumer of a queue within which its client declares the next one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """Queues of the same form that are consumed instead of one.

    Attributes:
        pattern: form of their names, with `*` for the parts that differ.
        consumed: number of them.
        expires_seconds: time without use after which the broker deletes the queue that was left; None if it does not.
    """

    pattern: str
    consumed: int
    expires_seconds: float | None


def replacement(view: View, queue: Queue, unconsumed: Series[Queue]) -> Replacement | None:
    """Return what probably replaced a queue without a consumer.

    Its name has a part that a program made up, and queues of the same form that are bound to the same exchanges are
    consumed. If that part is a number, the names may be those of shards. Then the next one must have been declared
    shortly after the queue lost its consumer. Of names that the broker made up, only the bindings show whose they are.

    Args:
        view: the view that is being judged.
        queue: it was consumed before.
        unconsumed: its latest readings without a consumer.
    """
    pattern = name_pattern(queue.name)
    if "*" not in pattern or not (was_consumed(queue) or had_consumer(view.listings(queue))):
        return None
    sources = bound_exchanges(view, queue)
    if pattern == SERVER_NAMED and not sources:
        return None
    alike = per_view(view, _by_form).get((queue.vhost, pattern, sources), [])
    consumed = sum(1 for each in alike if each.consumers)
    if not consumed or not (has_random_part(queue.name) or any(_is_next(view, each, unconsumed) for each in alike)):
        return None
    expires = queue.setting("expires")
    return Replacement(
        pattern=pattern,
        consumed=consumed,
        expires_seconds=expires / 1000 if isinstance(expires, int) else None,
    )


def _by_form(view: View) -> dict[tuple[str, str, frozenset[str]], list[Queue]]:
    """Return the queues by virtual host, form of the name, and exchanges that they are bound to."""
    found: dict[tuple[str, str, frozenset[str]], list[Queue]] = defaultdict(list)
    for queue in view.queues:
        if "*" in (pattern := name_pattern(queue.name)):
            found[queue.vhost, pattern, bound_exchanges(view, queue)].append(queue)
    return found


def _is_next(view: View, other: Queue, unconsumed: Series[Queue]) -> bool:
    since, readings = view.listed_since(other), view.window.readings("queues")
    if since is None or since == readings[0].at:
        return False
    return -view.thresholds.interval <= since.since(unconsumed[0].at) <= _SOON
