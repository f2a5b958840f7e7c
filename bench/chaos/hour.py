"""An hour of random disturbances: invariants, and the time to recover from each kind."""

import argparse
import random
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

from bench.bench import Bench, Document, progress
from bench.chaos.disturbances import Disturbance, disturbances
from bench.chaos.invariants import Watch, landed_messages, uncounted, unlanded
from bench.chaos.scene import LANDING, ChaosScene, scene
from bench.exporting import bucket_rows, wait_for
from bench.probes.users import Users
from bench.tables import median, table
from probes.settings import ProbesSettings

_SHORTEST, _LONGEST = 2.0, 12.0
_RECOVERED_WITHIN = 180.0
_SETTLED = 20.0
_SHOWN = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--broker", default="4.3", help="version (default 4.3)")
    parser.add_argument("--minutes", type=float, default=60, metavar="N", help="how long (default 60)")
    parser.add_argument("--seed", type=int, help="of the order; printed (default: a new one)")
    names = [each.name for each in disturbances()]
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=names, help=f"kinds, of: {', '.join(names)}")


def measure(args: argparse.Namespace) -> Document:
    """Disturb one kind after the other in random order, and check the invariants all the time."""
    seed = args.seed if args.seed is not None else random.SystemRandom().randrange(1_000_000)
    dice = random.Random(seed)  # noqa: S311  picks disturbances, guards nothing
    kinds = [each for each in disturbances() if not args.only or each.name in args.only]
    with scene(args.broker) as running, Watch(running) as watch:
        wait_for(lambda: not watch.faulty(), "all parts at work", _RECOVERED_WITHIN)
        time.sleep(_SETTLED)
        users = Users(running.lab.nodes[0], ProbesSettings().prefix)
        in_use = users.probes_objects()
        until, recoveries = time.monotonic() + args.minutes * 60, defaultdict[str, list[float | None]](list)
        for number, kind in enumerate(_order(kinds, dice), start=1):
            if time.monotonic() > until:
                break
            recoveries[kind.name].append(_disturb(kind, running, watch, dice))
            progress(
                f"{number}: {kind.name}, recovered in {recoveries[kind.name][-1]}; violations: {len(watch.violations)}"
            )
        landing = _landing(running, watch)
        left = users.probes_objects() - in_use
    by_invariant = Counter(each.invariant for each in watch.violations)
    return {
        "broker": running.lab.broker,
        "seed": seed,
        "minutes": args.minutes,
        "disturbances": sum(map(len, recoveries.values())),
        "kinds": {name: _kind(name, found, watch) for name, found in sorted(recoveries.items())},
        "scrapes": watch.scrapes,
        "scrapes_failed": watch.failed,
        "slowest_scrape": watch.slowest,
        **landing,
        "left": sorted(left),
        "violations_by_invariant": dict(by_invariant),
        "violations": [
            {"invariant": it.invariant, "at": it.at, "during": it.during, "detail": it.detail}
            for it in watch.violations
        ],
    }


def _order(kinds: list[Disturbance], dice: random.Random) -> Iterator[Disturbance]:
    """Yield every kind once in random order, then again, for ever."""
    while True:
        yield from dice.sample(kinds, len(kinds))


def _disturb(kind: Disturbance, running: ChaosScene, watch: Watch, dice: random.Random) -> float | None:
    """Hold a disturbance; return the seconds until everything works again, or None if it did not in time."""
    watch.during = kind.name
    with kind.hold(running, dice):
        watch.hidden = dict.fromkeys(kind.hides, time.time())
        time.sleep(dice.uniform(_SHORTEST, _LONGEST))
        watch.hidden = {}
    ended, since = time.monotonic(), time.time()
    while faulty := watch.faulty(since):
        if time.monotonic() - ended > _RECOVERED_WITHIN:
            progress(f"{kind.name}: does not work after {_RECOVERED_WITHIN:g} s: {', '.join(faulty)}")
            return None
        time.sleep(0.5)
    recovery = time.monotonic() - ended
    watch.during = f"after {kind.name}"
    return round(recovery, 1)


def _landing(running: ChaosScene, watch: Watch) -> Document:
    """Compare scrapes of each life of the exporter with what landed."""
    last = len(running.lives) - 1
    before = watch.latest.get(last)
    time.sleep(_SETTLED)
    rows = bucket_rows(running.storage, f"{LANDING}/probe_messages")
    for row in rows:
        row["intended_at"] = row["intended_at"].timestamp()
    landed = landed_messages(rows, running.lives, running.clock)
    missed = [each for life, scrape in watch.latest.items() for each in uncounted(scrape, landed.by_life[life])]
    return {
        "uncounted": missed,
        "unlanded": unlanded(before, landed, last) if before else [],
        "timeless": landed.timeless,
    }


def _kind(name: str, found: list[float | None], watch: Watch) -> dict[str, Any]:
    seconds = [each for each in found if each is not None]
    return {
        "times": len(found),
        "never": found.count(None),
        "median": median(seconds) if seconds else None,
        "worst": max(seconds, default=None),
        "rules": sorted(watch.seen[name]),
    }


def lines(document: Document) -> list[str]:
    """The table."""
    rows = [
        (name, str(it["times"]), _seconds(it["median"]), _seconds(it["worst"]), str(it["never"] or ""))
        for name, it in document["kinds"].items()
    ]
    violations = document["violations"]
    length = f"{document['disturbances']} disturbances in {document['minutes']:g} minutes"
    failed = f"{document['scrapes_failed']} without an answer (the exporter was killed)"
    return [
        f"RabbitMQ {document['broker']}, three nodes; {length}, seed {document['seed']}",
        "",
        *table(("disturbance", "times", "recovery median", "worst", "not in 180 s"), rows),
        "",
        f"{document['scrapes']} scrapes, {failed}, slowest {document['slowest_scrape']:.2f} s",
        f"violations: {len(violations)} {document['violations_by_invariant'] or ''}",
        *(f"  {it['invariant']}; during {it['during']}: {it['detail']}" for it in violations[:_SHOWN]),
        f"acked messages that landed and were not counted: {', '.join(document['uncounted']) or 'none'}",
        f"that were counted and did not land: {', '.join(document['unlanded']) or 'none'}",
        f"that have a time which the clock of the exporter never showed: {document['timeless'] or 'none'}",
        f"objects left on the broker: {', '.join(document['left']) or 'none'}",
    ]


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.1f} s"


BENCH = Bench(
    name="hour",
    shows="everything around the exporter breaks at random: invariants, and the time to recover",
    measure=measure,
    lines=lines,
    add_arguments=add_arguments,
    short=("--minutes", "10"),
    room="chaos",
)

if __name__ == "__main__":
    raise SystemExit(BENCH.main())
