"""What is usual of an object at this hour of the week, as rules use it: a limit, a reason to leave alone, a line.

A band is what hours of the past were like. It may tell more than a fixed number can, and hold back what is so every
night; what loses messages is never held back.
"""

import re
from collections.abc import Iterator

from ackscope.baselines import HOUR_OF_WEEK, Band, NotYet
from ackscope.measures import measure as in_words
from ackscope.measures import quantity
from ackscope.records import ProbeOutcome
from ackscope.reports import EvidenceReport as Evidence
from ackscope.snapshot import Queue
from diagnosis.contract import View
from diagnosis.words import amount

SOURCE = "rollups of the pipeline (history.rollups), table baselines"

_NUMBER = re.compile(r"[-+0-9.,e]+")

_MAY_LOSE = ("max-length", "max-length-bytes", "message-ttl", "expires")
"""Settings of a queue that lets go of messages when there are many of them, or when they wait."""


def of_queue(view: View, queue: Queue, measure: str) -> Band | NotYet:
    """The band of a queue."""
    return view.usual("queue", queue.vhost, queue.name, measure)


def of_probe(view: View, outcome: ProbeOutcome, measure: str) -> Band | NotYet:
    """The band of a stream of a probe."""
    return view.usual("probe", "", f"{outcome.probe}/{outcome.stream}/{outcome.node}", measure)


def is_sure(view: View, band: Band) -> bool:
    """Whether it is made of enough to leave something alone for: three days of trouble must not look usual."""
    return band.scope == HOUR_OF_WEEK or band.values >= view.thresholds.usual.least


def span_of(band: Band, measure: str) -> str:
    """Its edges with their unit: `2 to 9 ms`, `0.5 ms to 1.5 s`."""
    unit = in_words(measure).unit
    # A band is as wide as chance, so it may reach beyond what there can be.
    low = quantity(max(0.0, band.low), unit)
    high = quantity(min(1.0, band.high) if unit == "share" else band.high, unit)
    if low == high:
        return low
    one, other = _NUMBER.match(low), _NUMBER.match(high)
    # The unit once, where both have the same; that of one message is the same, too.
    same = one and other and low[one.end() :].rstrip("s") == high[other.end() :].rstrip("s")
    return f"{one[0]} to {high}" if one and same else f"{low} to {high}"


def made_of(band: Band) -> str:
    """What it is the band of: `at this hour of the week, from 6 weeks`."""
    if band.scope == HOUR_OF_WEEK:
        return f"at this hour of the week, from {amount(band.values, 'week')}"
    return f"at this hour of the day, from {amount(band.values, 'day')}"


def spelt(band: Band, measure: str) -> str:
    """The whole band in words: `usual at this hour of the week: 2 to 9 ms, from 6 weeks`."""
    when, _, rest = made_of(band).partition(", ")
    return f"usual {when}: {span_of(band, measure)}, {rest}"


def line(view: View, found: Band | NotYet, measure: str) -> Iterator[Evidence]:
    """The band as a line of evidence, or that it is not known yet; none where no history is read at all."""
    if view.baselines is None or view.baselines.made_at is None:
        return
    if isinstance(found, Band):
        told = f"{span_of(found, measure)} {made_of(found)}"
    else:
        told = f"not known yet: {found.reason} {found.days}"
    yield Evidence(what=f"usual {in_words(measure).words}", value=told, source=SOURCE)


def lines(view: View, queue: Queue, *measures: str) -> tuple[Evidence, ...]:
    """The bands of a queue, a line each."""
    return tuple(item for each in measures for item in line(view, of_queue(view, queue, each), each))


def usual_backlog(view: View, queue: Queue, ack_rate: float | None = None) -> str | None:
    """Why the backlog of a queue can be left alone: it is as large every time at this hour. None where it cannot.

    It cannot where the queue lets go of messages, where an alarm is in force, and where its consumers acknowledge
    less than usual.

    Args:
        view: the one look that is being judged.
        queue: whose messages wait.
        ack_rate: acknowledged a second; None where that is not the question.
    """
    band, acked = of_queue(view, queue, "ready"), of_queue(view, queue, "acked")
    if not isinstance(band, Band) or not is_sure(view, band) or queue.messages_ready is None:
        return None
    if queue.messages_ready > band.high or view.alarms or any(queue.setting(name) is not None for name in _MAY_LOSE):
        return None
    if ack_rate is not None and is_less(view, ack_rate, acked):
        return None
    return f"{amount(queue.messages_ready, 'message')} ready; {spelt(band, 'ready')}"


def grows_as_usual(reason: str) -> str:
    """What is said of a queue that grows and is left alone, for the reason of `usual_backlog`."""
    return f"it grows, as it does every time at this hour, and loses nothing: {reason}"


def is_less(view: View, value: float, found: Band | NotYet) -> bool:
    """Whether a value is clearly less than what is usual; False where that is not known."""
    return isinstance(found, Band) and value < view.thresholds.usual.slower * found.low


def is_more(view: View, value: float, found: Band | NotYet) -> bool:
    """Whether a value is clearly more than what is usual; False where that is not known."""
    return isinstance(found, Band) and value > view.thresholds.usual.times * found.high
