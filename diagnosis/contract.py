"""The contract of a rule: a name, a page in the catalogue, and one function from a view to results."""

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass

from ackscope.findings import Finding, Impact, Inconclusive, Suppressed
from diagnosis.view import ConsumerPath, View

__all__ = ["ConsumerPath", "Explains", "Relation", "Rule", "RuleResult", "View"]

RuleResult = Finding | Inconclusive | Suppressed

Keys = Callable[[View, Finding], Iterable[Hashable]]


@dataclass(frozen=True, slots=True)
class Relation:
    """Relates findings of one rule to findings of another: those that share a key belong together.

    Keys are used instead of pairs, so that thousands of findings are related in one pass.

    Attributes:
        of_cause: returns the keys that a finding of the cause covers, such as its queue or node.
        of_other: returns the keys to which another finding belongs.
    """

    of_cause: Keys
    of_other: Keys


@dataclass(frozen=True, slots=True)
class Explains:
    """Consequences of a cause. They are shown under the cause and not as findings of their own.

    Attributes:
        rules: names of the rules whose findings are consequences.
        where: selects the findings of those rules (see `diagnosis.relations`).
    """

    rules: tuple[str, ...]
    where: Relation


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule, as its page of the catalogue registers it (`diagnosis.pages.Page`).

    Attributes:
        name: stable once released, because metrics, alerts, runbooks and links use it.
        impact: the harm while the cause lasts; an info finding counts as a risk, whatever its rule.
        needs: snapshot families that the rule requires; without them the engine reports it as inconclusive.
        compares_counters: True if the rule needs two readings of queues from a broker that keeps counters.
        by_process: True if it also judges channels that are known by their Erlang process only, where the broker lists
            no clients (`diagnosis.process_view`).
        needs_management: True if it needs what only the management API tells of these families, such as members of
            queues.
        stays: True if its findings stay as information for some minutes after their end (`diagnosis.aftermath`).
        evaluate: yields findings (one per subject, in any order), inconclusive results and suppressed results. The
            engine calls it only if all that the rule needs is there and fresh.
        explains: consequences of this cause. Chains are followed; if two rules explain each other, the more harmful
            finding is the cause.
    """

    name: str
    impact: Impact
    needs: tuple[str, ...]
    compares_counters: bool
    evaluate: Callable[[View], Iterator[RuleResult]]
    explains: tuple[Explains, ...] = ()
    stays: bool = False
    by_process: bool = False
    needs_management: bool = False
