from dataclasses import replace

import pytest

from ackscope.baselines import HOUR_OF_WEEK, Band, Baselines, NoBand, NotYet, hour_of_week
from ackscope.counters import MessageStats
from ackscope.findings import Subject
from ackscope.snapshot import Node, Overview, Part, Queue, Snapshot
from diagnosis.thresholds import Thresholds
from diagnosis.window import Window
from exporter.api.object_series import subject_series
from exporter.api.vitals import vitals
from exporter.runtime.state import ClusterState
from tests.unit.exporter.api.test_columns import at
from tests.unit.exporter.made import Verdicts, finding

NOW = at(120)
BAND = Band(low=2.0, middle=5.0, high=9.0, scope=HOUR_OF_WEEK, values=6)
QUEUE = Queue(vhost="/", name="orders", consumers=1, messages_unacked=1)


def taken(seconds, published):
    """Return a cluster with one queue that received all published messages."""
    moment, ready = at(seconds), published // 100
    queue = replace(QUEUE, messages_ready=ready, stats=MessageStats(publish=published, ack=published // 2))
    overview = Overview(messages_ready=ready, messages_unacked=1, stats=MessageStats(publish=published, confirm=7))
    node = Node(name="rabbit@one", running=True, mem_used=1000 + seconds)
    return Snapshot(
        cluster="shop",
        taken=moment,
        overview=Part(value=overview, at=moment),
        nodes=Part(value=(node,), at=moment),
        queues=Part(value=(queue,), at=moment),
    )


def state(**chunks):
    """Return two minutes of that cluster at 8 messages per second."""
    window = Window.empty("shop")
    for seconds in range(0, 130, 10):
        window = window.add(taken(seconds, 8 * seconds))
    return ClusterState(window=window, **chunks)


def usual(made_at=NOW.wall - 3600, hour=None, **bands):
    """Return baselines of the cluster by measure."""
    reported = {("cluster", "", "", measure): band for measure, band in bands.items()}
    hour = hour_of_week(NOW.wall) if hour is None else hour
    return Baselines(hour_of_week=hour, made_at=made_at, bands=reported)


def reported(baselines=None, known=None):
    """The cluster's entry."""
    (entry,) = vitals({"shop": known or state()}, NOW, lambda _: baselines, Thresholds())["clusters"]
    return entry


def signs(baselines=None):
    """The vital signs by name."""
    return {sign["name"]: sign for sign in reported(baselines)["signs"]}


def test_every_sign_has_its_value_and_its_line():
    """Signs are rates of the broker's own totals, and levels."""
    found = signs()

    assert ["publish", "confirm", "deliver", "ack", "redeliver", "ready", "unacked"] == list(found)
    assert {"publish": 8.0, "confirm": 0.0, "deliver": 0.0, "ready": 9.0} == {
        name: round(found[name]["value"], 6) for name in ("publish", "confirm", "deliver", "ready")
    }
    assert (0.0, 9) == found["ready"]["line"][-1]
    assert {8.0} == {round(value, 6) for _, value in found["publish"]["line"]}


def test_what_queues_carry_is_held_against_the_band():
    """The band is in the unit of the sign."""
    found = signs(usual(published=BAND, ready=BAND))
    band = {"low": 2.0, "middle": 5.0, "high": 9.0, "scope": HOUR_OF_WEEK, "values": 6}

    assert {**band, "value": 8.0} == found["publish"]["usual"]
    assert {**band, "value": 9.0} == found["ready"]["usual"]
    assert None is found["publish"]["because"]


@pytest.mark.parametrize(
    ("baselines", "because"),
    [
        (None, "not known: the exporter reads no history of this cluster (history.rollups)"),
        (Baselines(), "not known yet: the pipeline has not computed baselines for this cluster"),
        (usual(published=NotYet(NoBand.FEW_DAYS, 2)), "not known yet: 2 of 3 days of history"),
        (usual(published=NotYet(NoBand.FEW_DAYS, 1)), "not known yet: 1 of 3 days of history"),
        (usual(ready=BAND), "not known yet: no history of this object"),
        (usual(made_at=NOW.wall - 20 * 86400, published=BAND), "not known: the history ended 20 days ago"),
        (usual(hour=(hour_of_week(NOW.wall) + 9) % 168, published=BAND), "not known: the bands of this hour have not"),
    ],
    ids=["no-history", "no-bands", "a-day", "two-days", "not-of-it", "old", "another-hour"],
)
def test_why_nothing_is_usual_yet(baselines, because):
    """The reason is text with what is missing; nothing is compared."""
    publish = signs(baselines)["publish"]

    assert None is publish["usual"]
    assert publish["because"].startswith(because)


def test_of_confirms_nothing_is_ever_usual():
    """So no baseline is announced."""
    confirm = signs(usual(published=BAND))["confirm"]

    assert (None, None) == (confirm["usual"], confirm["because"])


def test_a_sum_that_is_not_whole_is_not_compared():
    """The reason is given; the broker's own total is still reported."""
    window = state().window
    latest = window.snapshots[-1]
    far = Queue(vhost="/", name="far", messages_ready=0, messages_unacked=0)
    queues = replace(latest.queues, value=(*latest.queues.value, far))
    seen = replace(window, snapshots=(*window.snapshots[:-1], replace(latest, queues=queues)))
    publish = reported(usual(published=BAND), ClusterState(window=seen))["signs"][0]

    assert (8.0, None) == (round(publish["value"], 6), publish["usual"])
    assert "cannot be compared: the details of 1 of 2 queues are unknown" == publish["because"]


def test_lines_of_what_findings_are_about():
    """This covers a queue and a node; an object without history has no line."""
    queue, node = finding(), replace(finding(), subject=Subject(kind="node", name="rabbit@one"))
    vhost = replace(finding(), subject=Subject(kind="vhost", name="/"))
    verdict = Verdicts(findings=(queue, node, vhost, queue)).of("shop")
    found = reported(known=state(verdict=verdict))["subjects"]
    lines = {(it["kind"], line["name"]): line["value"] for it in found for line in it["lines"]}

    assert [("queue", "/", "orders"), ("node", None, "rabbit@one")] == [
        (it["kind"], it["vhost"], it["name"]) for it in found
    ]
    assert (9, 4.0, 1120) == (lines["queue", "ready"], lines["queue", "ack"], lines["node", "mem_used"])
    assert ("node", "disk_free") not in lines


def test_before_the_first_reading_there_are_no_signs():
    """Absent is not zero."""
    entry = reported(known=ClusterState(window=Window.empty("shop")))

    assert (None, [], []) == (entry["age_seconds"], entry["signs"], entry["subjects"])


def test_queues_of_findings_have_a_trend():
    """Also those of consequences; messages at the oldest and the newest reading of the last five minutes."""
    about = Subject(kind="queue", vhost="/", name="orders")
    cause = finding(subject=Subject(kind="node", name="rabbit@one"), consequences=(finding(subject=about),))
    window = state().window
    levels = {0: 40, 120: 700}
    snapshots = tuple(
        replace(
            it,
            queues=Part(value=(replace(QUEUE, messages=levels.get(int(it.taken.mono - at(0).mono), 1)),), at=it.taken),
        )
        for it in window.snapshots
    )
    known = ClusterState(window=replace(window, snapshots=snapshots), verdict=Verdicts(findings=(cause,)).of("shop"))

    assert [{"vhost": "/", "name": "orders", "before": 40, "now": 700, "seconds": 120.0}] == reported(known=known)[
        "trends"
    ]
    assert [] == reported(known=state(verdict=Verdicts(findings=(cause,)).of("shop")))["trends"]


@pytest.mark.parametrize(
    ("kind", "name", "names"),
    [
        ("queue", "orders", ["ready", "unacked", "consumers", "publish", "deliver", "ack", "redeliver"]),
        ("queue", "other", []),
        ("node", "rabbit@one", ["mem_used"]),
        ("cluster", "shop", ["publish", "confirm", "deliver", "ack", "redeliver", "ready", "unacked"]),
        ("vhost", "/", []),
    ],
)
def test_series_of_one_subject(kind, name, names):
    """Unknown subjects and other kinds have none."""
    assert names == [line["name"] for line in subject_series(state().window, NOW, kind, "/", name)]
