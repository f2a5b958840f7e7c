"""The backtest as a Spark job: one task for some hours of one cluster, all clusters and settings side by side."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from ackscope.errors import DataError
from ackscope.findings import Severity
from ackscope.manifest import Manifest
from ackscope.object_path import Place
from ackscope.ranking import FindingEpisode
from ackscope.tables import EPISODES, POLL_SAMPLES, POLLS_1M, Table
from pipeline.answers.rollup_reader import RollupReader
from pipeline.backtest import task
from pipeline.backtest.comparison import ReplayedHistory
from pipeline.backtest.episodes import joined
from pipeline.backtest.rows import MINUTES_OF
from pipeline.backtest.settings import Setting, needs_trend, related_rules, replayable
from pipeline.backtest.sources import LANDED
from pipeline.backtest.stretches import LANDING, LEAD, TREND_LEAD, bounds, stretches
from pipeline.backtest.task import ReplayTask, TaskResult
from pipeline.backtest.truth import Truth, of_episodes
from pipeline.hours import HOUR, date_of
from pipeline.session import SPARK_ERRORS, cause
from pipeline.storage.file_stats import FileStats
from pipeline.storage.landing import Landing, Partition

_TASKS_A_CORE = 3


@dataclass(frozen=True, slots=True)
class BacktestPlan:
    """What to replay.

    Attributes:
        landing: the landing folder; None to use minutes only.
        rollups: the rollup folder.
        clusters: names.
        start, end: seconds since 1970.
        rules: the rules to compare.
        severity: the lowest that counts.
        incidents: what really happened, each with its cluster (None: any); None: what was recorded.
        brief: recorded episodes that ended within so many seconds do not count as something that happened.
    """

    landing: Place | None
    rollups: Place
    clusters: Sequence[str]
    start: float
    end: float
    rules: Sequence[str]
    severity: Severity = Severity.WARNING
    incidents: Sequence[tuple[str | None, Truth]] | None = None
    brief: float = 0.0


@dataclass(slots=True)
class BacktestResult:
    """What was found.

    Attributes:
        histories: one per cluster that has data.
        tasks: results of all tasks.
        recorded: cluster -> recorded episodes of the compared rules.
        missing_hours: cluster -> hours without any data that is fine enough.
    """

    histories: list[ReplayedHistory] = field(default_factory=list)
    tasks: list[TaskResult] = field(default_factory=list)
    recorded: dict[str, list[FindingEpisode]] = field(default_factory=dict)
    missing_hours: dict[str, int] = field(default_factory=dict)


def backtest(spark: SparkSession, plan: BacktestPlan, settings: Sequence[Setting]) -> BacktestResult:
    """Replay the history of every cluster with every setting.

    Raises:
        DataError: Spark failed, or a file cannot be read.
    """
    result = BacktestResult()
    tasks = []
    cores = spark.sparkContext.defaultParallelism
    least = -(-_TASKS_A_CORE * cores // max(1, len(plan.clusters)))
    for cluster in plan.clusters:
        mine = list(_tasks(plan, cluster, settings, least))
        covered = sum(it.end - it.start for it in mine)
        result.missing_hours[cluster] = round((plan.end - plan.start - covered) / HOUR)
        tasks += mine
    if tasks:
        result.tasks = _run(spark, tasks)
    for cluster in plan.clusters:
        parts = sorted((it for it in result.tasks if it.cluster == cluster), key=lambda it: it.start)
        if not any(it.diagnoses for it in parts):
            continue
        reader = RollupReader.of(plan.rollups, cluster)
        rows = reader.rows(EPISODES, 0, plan.end)
        recorded = [FindingEpisode.of(row) for row in rows if row["rule"] in plan.rules]
        result.recorded[cluster] = [it for it in recorded if _during(it.began, it.ended, plan)]
        result.histories.append(_history(plan, cluster, parts, result.recorded[cluster], len(settings)))
    return result


def _history(
    plan: BacktestPlan, cluster: str, parts: Sequence[TaskResult], recorded: Sequence[FindingEpisode], settings: int
) -> ReplayedHistory:
    first = min(it.first for it in parts if it.first is not None)
    last = max(it.last for it in parts if it.last is not None)
    if plan.incidents is None:
        truths = of_episodes(recorded, plan.rules, plan.severity, plan.brief)
    else:
        truths = [it for name, it in plan.incidents if name in (None, cluster)]
    truths = [it for it in truths if it.began < last and (it.ended is None or it.ended >= first)]
    episodes = [joined([(it.start, it.end, it.episodes[index]) for it in parts]) for index in range(settings)]
    seconds = sum(it.end - it.start for it in parts if it.diagnoses)
    return ReplayedHistory(cluster, min(seconds, last - first), truths, episodes, max(plan.start, first))


def _during(began: float, ended: float | None, plan: BacktestPlan) -> bool:
    return began < plan.end and (ended is None or ended >= plan.start)


def _tasks(plan: BacktestPlan, cluster: str, settings: Sequence[Setting], least: int) -> Iterator[ReplayTask]:
    first, last = int(plan.start // HOUR), -int(-plan.end // HOUR)
    landing = None if plan.landing is None else Landing(plan.landing)
    files = {} if landing is None else {it.name: _files(landing, it, cluster, first, last) for it in LANDED}
    landed = _landed(files, 0 if landing is None else landing.floor(cluster))
    minutes = _rolled_up(RollupReader.of(plan.rollups, cluster).manifest, first, last)
    rules = [rule for rule in plan.rules if replayable(rule)]
    related = related_rules(rules)
    lead = TREND_LEAD if needs_trend(rules) else LEAD
    documents = [it.thresholds.model_dump(mode="json") for it in settings]
    for stretch in stretches(landed, minutes, first, last, least):
        start, end, since = bounds(stretch, lead)
        yield ReplayTask(
            cluster,
            stretch.grain,
            start,
            end,
            lead,
            None if plan.landing is None else str(plan.landing),
            str(plan.rollups),
            {name: _within(mine, since - HOUR, end) for name, mine in files.items()}
            if stretch.grain == LANDING
            else {},
            documents,
            rules,
            related,
        )


def _files(landing: Landing, table: Table, cluster: str, first: int, last: int) -> dict[Place, FileStats]:
    """Return the files that may have rows of these hours; a row may be a day off the date of its folder."""
    days = dict.fromkeys(date_of(hour) for hour in range(first - 24, last + 25))
    return {path: stats for day in days for path, stats in landing.files(Partition(table, cluster, day)).items()}


def _landed(files: Mapping[str, Mapping[Place, FileStats]], floor: int) -> dict[int, float]:
    """Return the hours with complete landing rows, and about how many rows each has."""
    rows: dict[int, float] = {}
    for mine in files.values():
        for stats in mine.values():
            for hour in stats.hours:
                rows[hour] = rows.get(hour, 0.0) + stats.rows / len(stats.hours)
    polled = {hour for stats in files.get(POLL_SAMPLES.name, {}).values() for hour in stats.hours}
    return {hour: rows[hour] for hour in sorted(polled) if hour >= floor}


def _rolled_up(manifest: Manifest, first: int, last: int) -> dict[int, float]:
    """Return the hours that have minutes, and about how many rows each has."""
    rows: dict[int, float] = {}
    for table in MINUTES_OF.values():
        for it in manifest.files_for(table.name, first, last):
            for hour in it.parts:
                rows[int(hour)] = rows.get(int(hour), 0.0) + it.rows / len(it.parts)
    polled = {int(hour) for it in manifest.files_for(POLLS_1M.name, first, last) for hour in it.parts}
    return {hour: rows[hour] for hour in sorted(polled)}


def _within(files: Mapping[Place, FileStats], start: float, end: float) -> list[str]:
    low, high = start * 1_000_000, end * 1_000_000
    return [str(path) for path, stats in files.items() if stats.first < high and low <= stats.last]


def _run(spark: SparkSession, tasks: Sequence[ReplayTask]) -> list[TaskResult]:
    try:
        encoded = spark.sparkContext.parallelize([task.encode(it) for it in tasks], len(tasks))
        results = [task.decode(it) for it in encoded.map(task.run).collect()]
    except SPARK_ERRORS as error:
        raise DataError(f"the backtest failed: {cause(error)}") from None
    for it in results:
        if it.error is not None:
            raise DataError(it.error)
    return results
