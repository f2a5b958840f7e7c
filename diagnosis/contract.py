"""What a rule is: a name, what it needs to see, and one function from a view to answers."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum

from ackscope.findings import CannotTell, Finding
from diagnosis.view import Link, View

__all__ = ["Answer", "Harm", "Link", "Rule", "View"]

Answer = Finding | CannotTell


class Harm(IntEnum):
    """What a cause does to messages; findings are ranked in this order."""

    LOSES = 0
    STOPS = 1
    SLOWS = 2
    RISKS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One named cause.

    Attributes:
        name: stable once released: metrics, alerts, runbooks and links hold on to it.
        title: a few words for a person.
        harm: what it does while it lasts; an info finding counts as a risk, whatever its rule.
        needs: parts of a snapshot without which it has no answer; the engine then says so in its place.
        counts: it compares message counters, so it needs two readings of queues from a broker that keeps counters.
        evaluate: yields a finding for each subject, in any order, and what it cannot tell. It is asked only when
            what it needs is there and fresh.
    """

    name: str
    title: str
    harm: Harm
    needs: tuple[str, ...]
    counts: bool
    evaluate: Callable[[View], Iterator[Answer]]
