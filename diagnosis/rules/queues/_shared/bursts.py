"""Bursts that others wait behind: many messages came at once, and what is published since waits in line.

The law: with first in, first out, a message that comes after a burst waits until the burst is worked off, however few
messages its own publisher sends. Nobody waits if nothing comes after it. The rates look balanced meanwhile, and the
queue drains. A queue with priorities hands out others first, so nothing is known of it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from ackscope.findings import Fact
from ackscope.snapshot import Channel, Queue
from diagnosis.contract import View
from diagnosis.facts import client_name
from diagnosis.purpose import CONSUMED
from diagnosis.rules.clients._shared.connections import age_seconds
from diagnosis.series import count, delta, span
from diagnosis.window import Series, Timestamped

_TIMES = 3.0
"""How many times as many messages a second come in a burst as at other times, at least."""
_LEFT = 0.5
"""Least share of a burst that must be left when it ends. Older readings are minutes apart, so its rate says little."""
_EMPTY = 0.25
"""Largest share of the backlog after a burst that there may be before it; else that backlog makes others wait."""
_LEAST = 20
"""Messages of a burst, and those that came since, at least: fewer may be of one publisher."""
_SETTLED = 20.0
"""Seconds after a burst until its messages are counted: lengths and counters are refreshed every 5 s, one by one."""
_MOSTLY = 0.7
"""Share of a burst that one publisher must have sent beyond its usual rate, so that it is the source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BurstAhead:
    """Messages that came at once to a queue.

    Attributes:
        before, after: the readings between which they came.
        messages: how many.
        later: messages that came since, which wait behind them.
        consume_rate: messages a second that were consumed since.
        sources: clients that published most of them; () if that is not known.
    """

    before: Timestamped[Queue]
    after: Timestamped[Queue]
    messages: int
    later: int
    consume_rate: float
    sources: tuple[str, ...]

    def facts(self, queue: Queue) -> dict[str, Fact]:
        """Return `{"messages", "at", "over_seconds", "later", "consume_rate", "wait_seconds", "sources"}`.

        `wait_seconds` is how long a message waits that comes now.
        """
        return {
            "messages": self.messages,
            "at": self.before.at.iso(),
            "over_seconds": self.after.at.since(self.before.at),
            "later": self.later,
            "consume_rate": self.consume_rate,
            "wait_seconds": (queue.messages_ready or 0) / self.consume_rate,
            "sources": list(self.sources),
        }


def burst_ahead(view: View, queue: Queue) -> BurstAhead | None:
    """Return the burst that a draining queue works off while other messages wait behind it; None without one."""
    history = tuple(seen for seen in view.history(queue) if seen.value.messages is not None)
    if len(history) < 4 or queue.type == "stream" or queue.setting("max-priority") is not None:
        return None
    rates = [_arrived(pair) / span(pair) for pair in pairwise(history)]
    peak = max(range(len(rates)), key=lambda place: rates[place])
    high = max(rates) / _TIMES
    start = next((place + 1 for place in range(peak - 1, -1, -1) if rates[place] < high), 0)
    end = next((place for place in range(peak + 1, len(rates)) if rates[place] < high), len(rates))
    run, since, before = history[start : end + 1], history[end:], history[: start + 1]
    if span(since) < _SETTLED:
        return None
    came, later, consumed = _arrived(run), _arrived(since), delta(since, *CONSUMED) / span(since)
    quiet = max(later / span(since), _arrived(before) / span(before) if span(before) else 0.0)
    if min(came, later) < _LEAST or not consumed or came / span(run) < _TIMES * quiet:
        return None
    if _held(run[-1]) - _held(run[0]) < _LEFT * came:
        return None
    if _held(run[0]) > _EMPTY * _held(run[-1]) or not later / span(since) < consumed:
        return None
    # The number of messages rises for as long as it is refreshed; then it falls.
    settled = next((seen for seen in since if seen.at.since(since[0].at) >= 5.0), since[-1])
    if _held(since[-1]) >= _held(settled) or delta(since, *CONSUMED) >= _held(since[0]):
        return None
    return BurstAhead(
        before=run[0],
        after=run[-1],
        messages=came,
        later=later,
        consume_rate=consumed,
        sources=tuple(_sources(view, queue, came)),
    )


def _arrived(pair: Series[Queue]) -> int:
    """Return the messages that came; dead letters come without a publish."""
    gained = _held(pair[-1]) - _held(pair[0]) + delta(pair, *CONSUMED)
    return max(0, delta(pair, "publish"), gained)


def _held(seen: Timestamped[Queue]) -> int:
    return seen.value.messages or 0


def _sources(view: View, queue: Queue, messages: int) -> Iterator[str]:
    """Yield the client that published a burst beyond its present rate, if only one did; channels count since opened."""
    found = {
        client_name(view.connection(each.connection_name), each.connection_name) or each.name
        for each in view.channels
        if each.vhost == queue.vhost and _beyond_its_rate(view, each) >= _MOSTLY * messages
    }
    if len(found) == 1:
        yield from found


def _beyond_its_rate(view: View, channel: Channel) -> float:
    """Return how many messages a channel has published that its present rate does not explain."""
    published = count(channel.stats, "publish")
    connection = view.connection(channel.connection_name)
    if not published or connection is None:
        return 0.0
    history = view.channel_history(channel.name)
    rate = delta(history, "publish") / span(history) if span(history) else 0.0
    return published - rate * age_seconds(view, connection)
