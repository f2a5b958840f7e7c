"""Random pairs of faults on one real broker: whether diagnosis names both, and what else it says."""

import argparse
import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from itertools import combinations

from ackscope.errors import AckscopeError
from bench.bench import Bench, Document, progress
from bench.diagnosis.faults import WITHIN, Row, hold
from bench.diagnosis.scene import scene
from bench.exporter.goals import Goal
from bench.tables import table
from diagnosis.rules import RULES
from lab.brokers import SUITES, minor
from lab.faults import FAULTS
from lab.faults.fault import FaultSpec
from lab.node import NOTHING

_BOTH, _EXTRA = 0.90, 1
_INFO = "info"
_CONSEQUENCES = {rule.name: {name for each in rule.explains for name in each.rules} for rule in RULES}

Pair = tuple[FaultSpec, FaultSpec]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mixture:
    """Result of one pair.

    Attributes:
        faults: names of both.
        seconds: from each being in effect to its finding; None without a finding.
        once: whether `ackscope diagnose` named each; None if one run cannot show it.
        extra: "severity rule subject" of findings above info that neither fault explains.
        failed: why one of them was not injected.
    """

    broker: str
    faults: list[str]
    seconds: list[float | None] = field(default_factory=list)
    once: list[bool | None] = field(default_factory=list)
    extra: list[str] = field(default_factory=list)
    failed: str = ""

    @property
    def both(self) -> bool:
        """Whether both faults were named in time."""
        return all(each is not None for each in self.seconds)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--broker", nargs="+", default=["3.10", "4.3"], help=f"of {', '.join(SUITES)} (3.10 4.3)")
    parser.add_argument("--pairs", type=int, default=40, help="pairs on each broker (40)")
    parser.add_argument("--seed", type=int, default=None, help="chooses the pairs (default: a random one, printed)")


def measure(args: argparse.Namespace) -> Document:
    """Hold each pair on a broker with the sample workload."""
    seed = random.SystemRandom().randrange(1_000_000) if args.seed is None else args.seed
    progress(f"seed {seed}")
    found: list[Mixture] = []
    for broker in args.broker:
        found += _broker(broker, chosen(broker, args.pairs, seed))
    rows = [{**asdict(each), "both": each.both} for each in found]
    return {"seed": seed, "within": WITHIN, "rows": rows, "goals": [goal.as_dict() for goal in goals(found)]}


def chosen(broker: str, pairs: int, seed: int) -> list[Pair]:
    """Return different random pairs for one broker; the same seed gives the same pairs."""
    possible = possible_pairs([spec for spec in FAULTS.values() if broker in spec.brokers])
    # The pairs need not be a secret: they must only be random and repeatable.
    chooser = random.Random(f"{seed}/{broker}")  # noqa: S311
    return chooser.sample(possible, min(pairs, len(possible)))


def possible_pairs(specs: Sequence[FaultSpec]) -> list[Pair]:
    """Return all pairs that one broker of one node can hold."""
    plain = [spec for spec in specs if spec.nodes == 1 and spec.extra == NOTHING and not spec.alone and not spec.wrecks]
    return [pair for pair in combinations(plain, 2) if _can_meet(*pair)]


def _can_meet(first: FaultSpec, second: FaultSpec) -> bool:
    """Return whether both can be distinguished: they have different subjects, rules and counters."""
    named = first.subject.name != ""
    same = named and (first.subject.kind, first.subject.name) == (second.subject.kind, second.subject.name)
    return not same and first.rule != second.rule and not (first.apart and second.apart)


def _broker(broker: str, pairs: list[Pair]) -> list[Mixture]:
    """Hold the pairs one after the other; start a new broker after a pair that it did not recover from."""
    found: list[Mixture] = []
    left = list(pairs)
    while left:
        done = 0
        try:
            with scene(broker) as stage:
                for pair in left:
                    done += 1
                    rows, well = hold(stage, 1, pair)
                    found.append(judge(rows, pair))
                    if not well:
                        break
        except AckscopeError as error:
            done = max(done, 1)
            names = [spec.name for spec in left[done - 1]]
            found.append(Mixture(broker=broker, faults=names, failed=str(error)))
        left = left[done:]
    return found


def judge(rows: Sequence[Row], pair: Pair) -> Mixture:
    """Return the result of a pair from the results of its faults."""
    expected = {name for spec in pair for name in (spec.rule, *spec.also, *_CONSEQUENCES[spec.rule])}
    extra = sorted({text for row in rows for text in row.others if _is_extra(text, expected)})
    return Mixture(
        broker=rows[0].broker,
        faults=[row.fault for row in rows],
        seconds=[row.seconds for row in rows],
        once=[row.once for row in rows],
        extra=extra,
        failed="; ".join(row.failed for row in rows if row.failed),
    )


def _is_extra(text: str, expected: set[str]) -> bool:
    severity, rule, _ = text.split(" ", 2)
    return severity != _INFO and rule not in expected


def goals(found: Sequence[Mixture]) -> list[Goal]:
    """Return the goals over the pairs that were injected."""
    held = [each for each in found if not each.failed]
    missed = sum(not each.both for each in held)
    return [
        Goal("pairs of which not both were named, as a share", missed / len(held) if held else None, 1 - _BOTH),
        Goal("findings above info that neither fault explains, the worst pair", _worst(held), _EXTRA),
    ]


def _worst(held: Sequence[Mixture]) -> float | None:
    """Return the most extra findings of a pair; one whose severity changed is one."""
    return max((float(len({text.partition(" ")[2] for text in each.extra})) for each in held), default=None)


def lines(document: Document) -> list[str]:
    """Return the table, failed injections, what else was said, and the goals."""
    rows = document["rows"]
    held = [row for row in rows if not row["failed"]]
    shown = [
        (
            fault if place == 0 else f"+ {fault}",
            minor(row["broker"]) if place == 0 else "",
            "-" if row["seconds"][place] is None else f"{row['seconds'][place]:.0f}",
            {True: "yes", False: "NO", None: "-"}[row["once"][place]],
            str(len(row["extra"])) if place == 0 else "",
        )
        for row in held
        for place, fault in enumerate(row["faults"])
    ]
    text = table(("", "broker", "named s", "once", "extra"), shown)
    text += ["", f"seed {document['seed']}: both named in {sum(row['both'] for row in held)} of {len(held)} pairs"]
    text += [
        f"not injected: {' + '.join(row['faults'])} ({row['broker']}): {row['failed']}" for row in rows if row["failed"]
    ]
    text += [
        f"also said, {' + '.join(row['faults'])} ({row['broker']}): {'; '.join(row['extra'])}"
        for row in held
        if row["extra"]
    ]
    return [*text, "", *(Goal(**goal).line() for goal in document["goals"])]


BENCH = Bench(
    name="mixtures",
    room="diagnosis",
    shows="random pairs of faults on one real broker: whether both are named, and what else is said",
    measure=measure,
    lines=lines,
    add_arguments=add_arguments,
    short=("--broker", "4.3", "--pairs", "3"),
)

if __name__ == "__main__":
    raise SystemExit(BENCH.main())
