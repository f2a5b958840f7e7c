"""Realistic history of a simulated fleet, with planted incidents whose ground truth is known.

    python -m bench.pipeline.fleet --to DIR [--clusters 1] [--queues 100] [--days 30] [--incidents 12] [--seed 1]

Queues of very different sizes with daily and weekly seasons, slow and fast noise, short bursts, nightly batches,
deploys (consumers absent for a minute), chains of queues, dead letters, queues that are declared and deleted, and gaps
without polls. Everything follows from the seed. Nothing here depends on how changes are detected.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from ackscope.cli import Parser
from bench.bench import progress
from bench.pipeline import findings, incident_plan, minutes, probing
from bench.pipeline.cluster import ClusterShape, shape
from bench.pipeline.incident_plan import Incident, Planned
from bench.pipeline.simulation import Simulation

# A Monday, seconds since 1970.
START = int(datetime(2026, 1, 5, tzinfo=UTC).timestamp())

_NODES = 3


@dataclass(frozen=True)
class Fleet:
    """The history of one cluster; iterate over it once, from its beginning.

    Attributes:
        cluster: its name.
        seed: of all randomness.
        start: seconds since 1970, a full hour.
    """

    cluster: str = "shop"
    seed: int = 1
    queues: int = 100
    days: int = 30
    incidents: int = 12
    start: int = START

    @property
    def total(self) -> int:
        """Minutes of the history."""
        return self.days * 1440

    @cached_property
    def shape(self) -> ClusterShape:
        """Its queues."""
        return shape(self._dice("shape"), self.queues, _NODES, self.total)

    @cached_property
    def plan(self) -> tuple[Planned, ...]:
        """The planned incidents."""
        return incident_plan.plan(self._dice("plan"), self.shape, self.total, self.incidents)

    @cached_property
    def simulation(self) -> Simulation:
        """Its simulation, in steps of a minute."""
        return Simulation(self.shape, self.plan, self._dice("motion"), self.start, self.total)

    def minutes(self) -> Iterator[tuple[int, dict[str, pa.Table]]]:
        """Day by day: its first hour since 1970, and its rows by the name of the table of minutes.

        Tables: queues, channels, consumers, nodes, polls, latency, outcomes. Not every minute has rows.
        """
        dice = self._dice("minutes")
        for stretch in self.simulation.stretches(1440):
            rows = minutes.rolled_up(dice, stretch, self.shape)
            yield stretch.first // 3600, rows | probing.minutes(dice, stretch, self.shape.node_names)

    def landing(self, step: int = 30, hours: int = 1, times: float = 1.0) -> Iterator[tuple[int, dict[str, pa.Table]]]:
        """The same cluster as landing rows: (hour since 1970, rows by the name of the table), `hours` at a time.

        Args:
            step: seconds between polls.
            hours: hours per item.
            times: probe messages, as a multiple of the usual rates; 0 for none.
        """
        from bench.pipeline.landed import LandingRows  # noqa: PLC0415  only who lands needs it

        dice, landed = self._dice("landing"), LandingRows(self.shape)
        motion = Simulation(self.shape, self.plan, self._dice("motion"), self.start, self.total, step)
        for stretch in motion.stretches(hours * 60):
            rows = landed.rows(dice, stretch)
            if times:
                rows["probe_messages"] = probing.messages(
                    dice, stretch, self.shape.node_names, f"run-{self.seed}", times
                )
            yield stretch.first // 3600, rows

    def truth(self) -> list[Incident]:
        """The incidents; known after iterating over `minutes` to its end."""
        return [self._truth_of(it) for it in self.plan]

    def finding_events(self) -> pa.Table:
        """Return rows of `finding_events` of the whole history, mostly of incidents; call it after `minutes`."""
        return findings.events(self._dice("findings"), self.shape, self.plan, self._settled, self.start, self.total)

    def _truth_of(self, planned: Planned) -> Incident:
        synced = True if planned.kind == incident_plan.DISK_SLOWS else None
        node = planned.node if planned.kind == incident_plan.NODE_DIES else -1
        streams = probing.subjects(self.shape.node_names, synced=synced, node=node)
        times = (self._iso(planned.began), self._iso(planned.ended), self._iso(self._settled.get(planned)))
        return incident_plan.incident(planned, self.shape, self.cluster, times, streams)

    @property
    def _settled(self) -> dict[Planned, int]:
        return self.simulation.settled

    def _iso(self, minute: int | None) -> str:
        return "" if minute is None else datetime.fromtimestamp(self.start + minute * 60, UTC).isoformat()

    def _dice(self, what: str) -> np.random.Generator:
        return np.random.default_rng([self.seed, *what.encode()])


def fleets(clusters: int, queues: int, days: int, incidents: int, seed: int) -> list[Fleet]:
    """Return clusters of different sizes: the first has `queues`, each next one two thirds of that, at least 20."""
    return [
        Fleet(f"cluster-{number + 1}", seed + number, max(20, round(queues * (2 / 3) ** number)), days, incidents)
        for number in range(clusters)
    ]


def write_truth(path: Path, fleet: Fleet) -> None:
    """Write the ground truth as one JSON document; call it after generating the history."""
    document = {"cluster": fleet.cluster, "seed": fleet.seed, "days": fleet.days, "queues": fleet.queues}
    incidents = [it.as_dict() for it in fleet.truth()]
    path.write_bytes(orjson.dumps(document | {"incidents": incidents}, option=orjson.OPT_INDENT_2) + b"\n")


def main(words: list[str] | None = None) -> int:
    """Write a history: one Parquet file per table and day, and the ground truth."""
    parser = Parser(
        prog="python -m bench.pipeline.fleet", description="write a simulated history with planted incidents"
    )
    parser.add_argument("--to", type=Path, required=True, metavar="DIR", help="output folder")
    for name, default in (("clusters", 1), ("queues", 100), ("days", 30), ("incidents", 12), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=default, help=f"default {default}")
    args = parser.parse_args(words)
    for fleet in fleets(args.clusters, args.queues, args.days, args.incidents, args.seed):
        folder: Path = args.to / fleet.cluster
        folder.mkdir(parents=True, exist_ok=True)
        rows = 0
        for first_hour, tables in fleet.minutes():
            for name, table in tables.items():
                pq.write_table(table, folder / f"{name}.{first_hour}.parquet", compression="zstd")
                rows += table.num_rows
        pq.write_table(fleet.finding_events(), folder / "finding_events.parquet", compression="zstd")
        write_truth(folder / "truth.json", fleet)
        progress(f"{folder}: {rows} rows of {fleet.days} days, {fleet.queues} queues, {len(fleet.plan)} incidents")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
