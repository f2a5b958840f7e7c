"""consumer-pauses: the consumers of a queue stop together, work again, and stop again, while messages wait.

What they depend on comes and goes, such as a database lock, a remote call that runs into its timeout, or a long job
among short ones. Each time, nothing is delivered and nothing is settled for 10 s or longer (`diagnosis.pauses`), and
between two such times they settle several times as much as they hold. Consumers that work in batches of what they hold
settle just that; slow ones settle less.

What consumers with automatic acknowledgement are sent counts as settled at once, so pauses are those of their sockets:
a slow client reads them in lumps, and looks like one whose handler waits.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from ackscope.clock import iso
from ackscope.findings import Certainty, Evidence, Finding, Severity, Unit, source
from ackscope.snapshot import Queue
from diagnosis.contract import RuleResult, View
from diagnosis.facts import queue_facts
from diagnosis.pauses import LEAST_SECONDS, Pause
from diagnosis.purpose import CONSUMED
from diagnosis.rules.consumers._shared.objects import client_names, involved_consumers, queue_subject
from diagnosis.rules.consumers._shared.standstill import ready
from diagnosis.series import count

NAME = "consumer-pauses"

_WORK, _LEAST_WORK = 3, 10
"""Least messages settled between two pauses: so many times what the consumers hold, and so many."""
_BEYOND_BATCHES = 1.2
"""How many times as much as a client settles that works on one batch after another, at least."""
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class PausePattern:
    """Pauses of one queue with work between them.

    Attributes:
        pauses: oldest first; the longest of those without work between them.
        seconds: sum of all.
        goes_on: whether the last one lasts until now.
        worked: messages settled between the first and the last pause.
    """

    pauses: tuple[Pause, ...]
    seconds: float
    goes_on: bool
    worked: int

    @property
    def share(self) -> float:
        """Share of the time from the first to the last pause."""
        return self.seconds / self.pauses[-1].end.since(self.pauses[0].begin)


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every queue that stood still more than once."""
    for key, found in groupby(sorted(view.window.pauses, key=lambda each: each.key), key=lambda each: each.key):
        queue = view.queue(*key)
        if queue is None or queue.exclusive or queue.name.startswith(view.thresholds.own_prefixes):
            continue
        pattern = pause_pattern(queue, tuple(found), view.limits(queue).consumers.pause_times)
        if pattern is not None:
            yield _finding(view, queue, pattern)


def pause_pattern(queue: Queue, pauses: Sequence[Pause], least: int) -> PausePattern | None:
    """Return the pauses of a queue between which its consumers worked; None if there are too few.

    Args:
        queue: its last reading.
        pauses: its pauses, in any order.
        least: how many are a pattern.
    """
    groups: list[list[Pause]] = []
    # A shorter one that may go on is remembered, and is no pause yet.
    lasting = (each for each in pauses if each.seconds >= LEAST_SECONDS)
    for pause in sorted(lasting, key=lambda each: each.begin.mono):
        if groups and _began_again(groups[-1][-1], pause):
            groups = []
        if not groups or _settled(pause) - _settled(groups[-1][-1]) >= _least_work(groups[-1][-1], pause):
            groups.append([])
        groups[-1].append(pause)
    longest = tuple(max(group, key=lambda each: each.seconds) for group in groups)
    if len(longest) < least:
        return None
    last = groups[-1][-1]
    return PausePattern(
        pauses=longest,
        seconds=sum(each.seconds for each in longest),
        goes_on=count(queue.stats, *CONSUMED) == _settled(last) and bool(ready(queue)),
        worked=_settled(last) - _settled(groups[0][0]),
    )


def _settled(pause: Pause) -> int:
    return count(pause.stats, *CONSUMED)


def _least_work(older: Pause, newer: Pause) -> float:
    """Return the least messages settled between two pauses that are more than batches of what consumers hold.

    A client that settles one batch after another, each as long as the pause, settles no more than this.
    """
    held = max(older.held, newer.held)
    batches = newer.end.since(older.end) / min(older.seconds, newer.seconds)
    return max(_LEAST_WORK, _WORK * held, _BEYOND_BATCHES * held * batches)


def _began_again(older: Pause, newer: Pause) -> bool:
    """Return whether counters began again, or messages came back because consumers ended: those did not pause."""
    returned = count(newer.stats, "redeliver") - count(older.stats, "redeliver")
    return newer.stats.began_again(older.stats) or returned > 0


def _finding(view: View, queue: Queue, found: PausePattern) -> Finding:
    links = view.links(queue)
    first, last = found.pauses[0], found.pauses[-1]
    limits = view.limits(queue).consumers
    automatic = bool(links) and all(link.consumer.ack_required is False for link in links)
    often = len(found.pauses) >= limits.pause_often and found.share >= limits.pause_share
    return Finding(
        rule=NAME,
        severity=Severity.WARNING if often else Severity.INFO,
        subject=queue_subject(queue),
        since=iso(first.begin.wall),
        facts={
            "queue": queue_facts(queue),
            "clients": client_names(links),
            "consumers": queue.consumers,
            "times": len(found.pauses),
            "first_at": iso(first.begin.wall),
            "last_at": iso(last.begin.wall),
            "longest_seconds": max(each.seconds for each in found.pauses),
            "shortest_seconds": min(each.seconds for each in found.pauses),
            "paused_seconds": found.seconds,
            "watched_seconds": last.end.since(first.begin),
            "most_ready": max(each.ready for each in found.pauses),
            "most_held": max(each.held for each in found.pauses),
            "worked": found.worked,
            "goes_on": found.goes_on,
            "automatic": automatic,
        },
        certainty=Certainty.CERTAIN,
        seen_seconds=last.end.since(first.begin),
        evidence=(
            *(
                Evidence(
                    key="pause",
                    value=pause.seconds,
                    unit=Unit.SECONDS,
                    source=source("/api/queues", "message_stats.deliver_get", "message_stats.ack", "messages_ready"),
                    facts={"from_at": iso(pause.begin.wall), "held": pause.held, "ready": pause.ready},
                )
                for pause in found.pauses[-_SHOWN:]
            ),
            Evidence(
                key="worked",
                value=found.worked,
                unit=Unit.MESSAGES,
                source=source("/api/queues", "message_stats.deliver_no_ack" if automatic else "message_stats.ack"),
            ),
        ),
        involved=involved_consumers((queue,), links),
    )
