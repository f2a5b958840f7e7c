from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path

import orjson
import pytest

from ackscope.__main__ import main
from ackscope.tables import CHANNELS_1M, CONSUMERS_1M, EPISODES, HOURS, LATENCY_1M, NODES_1M, OUTCOMES_1M, QUEUES_1M
from pipeline.answers import answers_file
from pipeline.answers.capacity import capacity
from pipeline.answers.render import render
from pipeline.answers.rollup_reader import RollupReader
from pipeline.answers.slo import slo
from pipeline.answers.weeks import WEEK, weeks
from pipeline.answers.worst import BACKLOG, BY, CEILING, CONFIRM, REDELIVERED, worst
from tests.spark.answer_rollups import DAY, HOUR, NOW, at, buckets, put, row

pytestmark = [pytest.mark.spark, pytest.mark.slow]

QUEUES, NODES, LATENCY, OUTCOMES = (HOURS[it.name] for it in (QUEUES_1M, NODES_1M, LATENCY_1M, OUTCOMES_1M))
CHANNELS, CONSUMERS = HOURS[CHANNELS_1M.name], HOURS[CONSUMERS_1M.name]


def queue(hours: float, name: str, **values) -> dict:
    """An hour of a queue that began so many hours before now."""
    return row(QUEUES, hour=at(hours), vhost="/", queue=name, **values)


def stream(table, hours: float, name: str = "classic", **values) -> dict:
    """An hour of a confirm probe."""
    kind = {"probe": "confirm", "stream": name, "queue_type": name, "vhost": "/", "node": "a", "delivery_mode": 2}
    return row(table, hour=at(hours), **{**kind, **values})


def worst_of(spark, root: Path, by: str):
    """The worst of the last week."""
    return worst(spark, RollupReader.of(root, "shop"), by, NOW - 7 * DAY, NOW)


def test_the_worst_by_redelivery_have_their_share(spark, tmp_path: Path) -> None:
    """Of the total, and of their own deliveries; an hour outside of the span does not count."""
    rows = [queue(it, "loop", redelivered=75, delivered=100) for it in (1, 2)]
    rows += [queue(1, "some", redelivered=50, delivered=None), queue(1, "none", redelivered=0)]
    rows += [queue(200, "some", redelivered=9_999)]
    put(tmp_path, QUEUES, rows)
    answer = worst_of(spark, tmp_path, REDELIVERED)

    assert [("loop", 150, 0.75), ("some", 50, 0.25)] == [(it["queue"], it["value"], it["share"]) for it in answer.rows]
    assert (
        "queue 'loop' in vhost '/': 150 messages redelivered, 75 % of its deliveries; 75 % of all"
        == answer.sentences[0]
    )
    assert ("2026-03-15T22:00:00Z", "2026-03-16T00:00:00Z", 120) == (
        answer.data.first,
        answer.data.last,
        answer.data.minutes,
    )


def test_the_worst_by_backlog(spark, tmp_path: Path) -> None:
    """By the average backlog, with the maximum; a peak of one hour is not a backlog."""
    rows = [queue(it, "deep", messages_ready_last=300, messages_ready_max=310) for it in (1, 2, 3, 4)]
    rows += [queue(1, "peak", messages_ready_last=0, messages_ready_max=5_000)]
    rows += [queue(2, "peak", messages_ready_last=200, messages_ready_max=200)]
    put(tmp_path, QUEUES, rows)
    answer = worst_of(spark, tmp_path, BACKLOG)

    assert ["deep", "peak"] == [it["queue"] for it in answer.rows]
    assert (
        "peak' in vhost '/': 100 messages ready on average, 5,000 messages at most; 25 % of all" in answer.sentences[1]
    )


def test_the_worst_by_time_at_the_prefetch_ceiling(spark, tmp_path: Path) -> None:
    """Channels are joined with the queues that their consumers consume from; one without a limit has no ceiling."""
    channels = [
        row(CHANNELS, hour=at(1), channel="c1", samples=60, limited=60, at_ceiling=30),
        row(CHANNELS, hour=at(2), channel="c1", samples=60, limited=60, at_ceiling=60),
        row(CHANNELS, hour=at(1), channel="c2", samples=60, limited=60, at_ceiling=15),
        row(CHANNELS, hour=at(1), channel="free", samples=60, limited=0, at_ceiling=0),
    ]
    consumers = [
        *(row(CONSUMERS, hour=at(it), vhost="/", queue="orders", tag="t", channel="c1", samples=60) for it in (1, 2)),
        row(CONSUMERS, hour=at(1), vhost="/", queue="orders", tag="again", channel="c1", samples=60),
        row(CONSUMERS, hour=at(1), vhost="/", queue="mails", tag="t", channel="c2", samples=60),
        row(CONSUMERS, hour=at(1), vhost="/", queue="mails", tag="t", channel="free", samples=60),
    ]
    put(tmp_path, CHANNELS, channels)
    put(tmp_path, CONSUMERS, consumers)
    answer = worst_of(spark, tmp_path, CEILING)

    assert [("orders", 5400.0, 7200.0), ("mails", 900.0, 3600.0)] == [
        (it["queue"], it["value"], it["beside"]) for it in answer.rows
    ]
    assert "1 h 30 min at the prefetch ceiling, summed" in answer.sentences[0]
    assert "75 % of the time they were followed, 85.7 % of all" in answer.sentences[0]


def test_the_worst_by_confirm_tail(spark, tmp_path: Path) -> None:
    """By p99; probes that are refused by design do not count, nor do other measures."""
    fast, slow = buckets([0.001] * 990 + [0.002] * 10), buckets([0.001] * 900 + [1.5] * 100)
    rows = [
        stream(LATENCY, 1, "classic", measure="confirm", **fast),
        stream(LATENCY, 1, "quorum", measure="confirm", **slow),
        stream(LATENCY, 1, "classic", measure="response", **buckets([50.0])),
        stream(LATENCY, 1, "nack", probe="nack", measure="confirm", **buckets([40.0])),
    ]
    put(tmp_path, LATENCY, rows)
    answer = worst_of(spark, tmp_path, CONFIRM)

    assert ["confirm/quorum/a", "confirm/classic/a"] == [it["stream"] for it in answer.rows]
    assert [1.0, 0.0] == [it["share"] for it in answer.rows]
    assert 1.0 < answer.rows[0]["value"] <= 1.5
    assert "100 % of the slowest 1 % overall" in answer.sentences[0]


def test_without_data_nothing_is_ranked(spark, tmp_path: Path) -> None:
    """An empty answer is not the answer that all is well."""
    answer = worst_of(spark, tmp_path, CEILING)

    assert "channels_1h has no hours in this time range" == answer.because
    assert () == answer.rows


def test_the_slo_counts_what_was_lost_and_late(spark, tmp_path: Path) -> None:
    """Lost and nacked messages stay in the whole; the threshold is a bucket's edge, and that is said."""
    put(tmp_path, OUTCOMES, [stream(OUTCOMES, 2, messages=1000, acked=990, nacked=4, lost=6)])
    # 985 in time, 5 late, and the four that were nacked, soon.
    durations = buckets([0.001] * 989 + [2.0] * 5)
    put(tmp_path, LATENCY, [stream(LATENCY, 2, measure="confirm", **durations)])
    answer = slo(spark, RollupReader.of(tmp_path, "shop"), NOW - 30 * DAY, NOW, 0.1, 0.99)
    whole = answer.rows[0]

    assert ("all", 1000, 15) == (whole["stream"], whole["messages"], whole["bad"])
    assert -0.5 == pytest.approx(whole["budget_left"])
    assert "100 ms is inside a bucket: counted at" in answer.sentences[0]
    assert "98.5 % in time of 1,000 messages; 99 % is not met; budget spent" in answer.sentences[1]
    assert "1.5 over 3d" in answer.sentences[1]
    assert {"1h": None, "6h": None} == {name: whole["burn"][name] for name in ("1h", "6h")}


def test_the_command_takes_threshold_and_target(spark, tmp_path: Path, monkeypatch, capsys) -> None:
    """As README shows them."""
    monkeypatch.setattr("pipeline.cli.ask.spark_session", lambda _: nullcontext(spark))
    put(tmp_path, OUTCOMES, [stream(OUTCOMES, 2, messages=1000, acked=1000)])
    put(tmp_path, LATENCY, [stream(LATENCY, 2, measure="confirm", **buckets([0.001] * 998 + [2.0] * 2))])
    words = ["--under", "100ms", "--target", "99.9", "--rollups", str(tmp_path), "--until", "2026-03-16T00:00"]

    assert 0 == main(["pipeline", "ask", "slo", *words])
    assert "99.8 % in time of 1,000 messages; 99.9 % is not met" in " ".join(capsys.readouterr().out.split())


def test_the_burn_of_the_last_hour_is_of_minutes(spark, tmp_path: Path) -> None:
    """So that it is visible while it burns; the time until the budget is exhausted follows from it."""
    good = [stream(OUTCOMES, it, messages=6000, acked=6000) for it in range(1, 101)]
    fast = [stream(LATENCY, it, measure="confirm", **buckets([0.001] * 6000)) for it in range(1, 101)]
    put(tmp_path, OUTCOMES, good)
    put(tmp_path, LATENCY, fast)

    def minute(table, back: int, **values) -> dict:
        kind = {"probe": "confirm", "stream": "classic", "queue_type": "classic", "vhost": "/", "node": "a"}
        return row(table, minute=at(back / 60), delivery_mode=2, **kind, **values)

    put(tmp_path, OUTCOMES_1M, [minute(OUTCOMES_1M, it, messages=100, acked=98, lost=2) for it in range(1, 61)])
    put(tmp_path, LATENCY_1M, [minute(LATENCY_1M, it, measure="confirm", **buckets([0.001] * 98)) for it in range(61)])
    whole = slo(spark, RollupReader.of(tmp_path, "shop"), NOW - 30 * DAY, NOW, 0.1, 0.99).rows[0]

    assert 1.0 == whole["good"] == whole["budget_left"]
    assert {"1h": 2.0, "6h": 2.0, "3d": 0.0} == {name: pytest.approx(it) for name, it in whole["burn"].items()}
    assert 50 * HOUR == pytest.approx(whole["gone_in_seconds"])


def test_streams_without_a_queue_do_not_count_in_all(spark, tmp_path: Path) -> None:
    """They are listed on their own; probes that are refused by design are not listed at all."""
    rows = [
        stream(OUTCOMES, 1, messages=100, acked=100),
        stream(OUTCOMES, 1, "unroutable", queue_type="none", messages=100, acked=50, lost=50),
        stream(OUTCOMES, 1, "nack", probe="nack", messages=100, nacked=100),
    ]
    put(tmp_path, OUTCOMES, rows)
    put(tmp_path, LATENCY, [stream(LATENCY, 1, measure="confirm", **buckets([0.001] * 100))])
    answer = slo(spark, RollupReader.of(tmp_path, "shop"), NOW - 30 * DAY, NOW, 0.1, 0.99)

    assert ["all", "confirm/classic/a", "confirm/unroutable/a"] == [it["stream"] for it in answer.rows]
    assert 0 == answer.rows[0]["bad"]


def test_only_hours_of_both_weeks_are_compared(spark, tmp_path: Path) -> None:
    """A week that began late is not compared with a whole one; half an hour counts as half."""
    rows = []
    for back in (10, 11, 12):
        rows += [queue(back, "orders", published=7200, messages_ready_last=10)]
        rows += [queue(back + 168, "orders", published=1800, minutes=30, messages_ready_last=5)]
    rows += [queue(20, "orders", published=10**9), queue(168 + 30, "orders", published=10**9)]
    put(tmp_path, QUEUES, rows)
    answer = weeks(spark, RollupReader.of(tmp_path, "shop"), NOW)
    by_key = {it["measure"]: it for it in answer.rows}

    assert (2.0, 1.0, 3) == tuple(by_key["published"][name] for name in ("this_week", "week_before", "hours"))
    assert (10, 5) == (by_key["ready"]["this_week"], by_key["ready"]["week_before"])
    assert "compared 3 h of each week, the hours with data in both" == answer.sentences[0]
    assert "publish rate: 2/s, week before 1/s (2 times)" == answer.sentences[1]
    assert by_key["confirm_p99"]["this_week"] is None
    assert "queue 'orders' in vhost '/' received 21,600 messages, week before 5,400 messages" == answer.sentences[-1]


def test_a_first_week_has_nothing_beside_it(spark, tmp_path: Path) -> None:
    """And says from when there is data."""
    put(tmp_path, QUEUES, [queue(it, "orders", published=1) for it in range(1, 30)])
    answer = weeks(spark, RollupReader.of(tmp_path, "shop"), NOW)

    assert "no hour of this week has data a week before; data begins 2026-03-14T19:00" == answer.because


def test_capacity_shows_disk_memory_and_backlog(spark, tmp_path: Path) -> None:
    """Limits that will be reached come first; a missing trend is stated; without a limit the growth is reported."""
    gib, nodes, queues = 1024**3, [], []
    for back in range(1, 10 * 24 + 1):
        jitter = (back * 7) % 5
        free = 100 * gib - (240 - back) * gib // 4 + jitter * 2**20
        values = {"disk_free_min": free, "disk_free_limit_last": 2 * gib}
        memory = {"mem_used_max": gib + jitter * 2**20, "mem_limit_last": 4 * gib}
        nodes.append(row(NODES, hour=at(back), node="a", **values, **memory))
        queues.append(queue(back, "leak", messages_ready_last=(240 - back) * 100 + jitter))
        queues.append(queue(back, "still", messages_ready_last=50 + jitter))
    put(tmp_path, NODES, nodes)
    put(tmp_path, QUEUES, queues)
    reader = RollupReader.of(tmp_path, "shop")
    answer = capacity(spark, reader, NOW - 14 * DAY, NOW, backlog=48_000)
    by_key = {(it["what"], it["kind"], it["name"]): it for it in answer.rows}

    assert "reaches it" == by_key["disk", "node", "a"]["verdict"]
    assert 152 * HOUR == pytest.approx(by_key["disk", "node", "a"]["at"] - NOW, rel=0.05)
    assert "no trend" == by_key["memory", "node", "a"]["verdict"]
    assert 240 * HOUR == pytest.approx(by_key["backlog", "queue", "leak"]["at"] - NOW, rel=0.05)
    assert ("backlog", "queue", "still") not in by_key
    assert "free disk of node 'a'" in answer.sentences[0]
    assert "reaches its limit of 2 GiB in about 6 d" in answer.sentences[0]
    assert all("reaches" in it or "no" in it for it in answer.sentences)
    assert max(len(line) for line in render(answer).splitlines()) <= 80


def test_capacity_of_two_days_is_not_yet_reported(spark, tmp_path: Path) -> None:
    """With how many days there are."""
    rows = [row(NODES, hour=at(back), node="a", disk_free_min=10**9 - 48 + back) for back in range(1, 49)]
    put(tmp_path, NODES, rows)
    answer = capacity(spark, RollupReader.of(tmp_path, "shop"), NOW - 14 * DAY, NOW)

    assert ("free disk of node 'a': not enough history: 2 of 4 days",) == answer.sentences


def test_the_file_of_the_page_holds_every_answer(spark, tmp_path: Path) -> None:
    """Valid with a single episode, too; it is written atomically, and read back unchanged."""
    episode = row(EPISODES, began=at(2), ended=at(1), last_told=at(1), rule="no-consumer", kind="queue", name="orders")
    put(tmp_path, EPISODES, [episode | {"severity": "critical", "vhost": "/"}])
    answers_file.write(spark, tmp_path, "shop", NOW)
    document = orjson.loads(answers_file.answers_path(tmp_path, "shop").read_bytes())

    assert (1, "shop", "2026-03-16T00:00:00Z") == tuple(document[it] for it in ("version", "cluster", "made_at"))
    assert set(BY) == set(document["worst"])
    assert all(document[it]["because"] for it in ("weeks", "capacity", "slo"))
    assert ["no-consumer"] == [it["rule"] for it in document["recurrences"]["rows"]]
    assert [answers_file.answers_path(tmp_path, "shop")] == list((tmp_path / answers_file.FOLDER).iterdir())


def test_a_gap_is_reported_with_every_answer(spark, tmp_path: Path) -> None:
    """Hours without polls."""
    put(tmp_path, QUEUES, [queue(it, "orders", redelivered=1) for it in (1, 2, 7, 8)])
    answer = worst_of(spark, tmp_path, REDELIVERED)

    assert (("2026-03-15T18:00:00Z", "2026-03-15T22:00:00Z"),) == answer.data.gaps
    assert timedelta(hours=4) == timedelta(minutes=answer.data.gap_minutes)
    assert "gaps of 4 h together" in render(answer)


def test_a_week_is_a_week() -> None:
    """The comparison leans on it."""
    assert 7 * DAY == WEEK
