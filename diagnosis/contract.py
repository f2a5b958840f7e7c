"""What a rule is: a name, its page of the catalogue, and one function from a view to results."""

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass

from ackscope.findings import Finding, Impact, Inconclusive, Suppressed
from diagnosis.view import ConsumerPath, View

__all__ = ["ConsumerPath", "Explains", "Relation", "Rule", "RuleResult", "View"]

RuleResult = Finding | Inconclusive | Suppressed

Keys = Callable[[View, Finding], Iterable[Hashable]]


@dataclass(frozen=True, slots=True)
class Relation:
    """Which findings of one rule account for which of another: those that share a key.

    By keys and not pair by pair, so that thousands of findings are related in one pass.

    Attributes:
        of_cause: what a finding of the cause covers: its queue, its node, ...
        of_other: where another finding belongs.
    """

    of_cause: Keys
    of_other: Keys


@dataclass(frozen=True, slots=True)
class Explains:
    """What follows from a cause, so that it hangs under it and is no finding of its own.

    Attributes:
        rules: names of the rules whose findings follow.
        where: which of their findings (see `diagnosis.relations`).
    """

    rules: tuple[str, ...]
    where: Relation


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One named cause, as its page of the catalogue registers it (`diagnosis.pages.Page`).

    Attributes:
        name: stable once released: metrics, alerts, runbooks and links hold on to it.
        impact: what it does while it lasts; an info finding counts as a risk, whatever its rule.
        needs: families of a snapshot without which it cannot be judged; the engine then says so in its place.
        compares_counters: it needs two readings of queues from a broker that keeps counters.
        evaluate: yields a finding for each subject, in any order, why it is inconclusive, and what it suppresses as
            benign. It is asked only when what it needs is there and fresh.
        explains: what follows from it. Chains are followed; of two rules that explain each other the one that harms
            more is the cause.
    """

    name: str
    impact: Impact
    needs: tuple[str, ...]
    compares_counters: bool
    evaluate: Callable[[View], Iterator[RuleResult]]
    explains: tuple[Explains, ...] = ()
