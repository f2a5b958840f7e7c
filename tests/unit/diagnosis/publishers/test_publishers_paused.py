from dataclasses import replace

import pytest

from ackscope.past import ClusterPast, NodePast
from ackscope.snapshot import Alarm, HealthCheck, Node, Overview, Part
from tests.unit.diagnosis.cluster.scenes import finding_of
from tests.unit.diagnosis.pictures import NODE, WALL, channel, connection, consumer, film, look, stats, text
from tests.unit.diagnosis.publishers.films import of

RULE = "publishers-paused"
STEADY = [200] * 20
"""Messages published in each 5 s."""
PAUSE = [130, 0, 20]
"""An alarm of 11.25 s, as samples show it."""


def past(increases, *, delivered=None, nodes=(), before=0, until=10.0):
    """Samples of a counter with these increases; the last one is at this second of the film."""
    counts = [before + sum(increases[:place]) for place in range(len(increases) + 1)]
    sent = [sum(delivered[:place]) for place in range(len(counts))] if delivered else counts
    begin = WALL + until - 5 * len(increases)
    return ClusterPast(begin=begin, step=5.0, published=tuple(counts), delivered=tuple(sent), nodes=nodes)


CLIENTS = ("till", "web")


def load(
    increases, *, clients=CLIENTS, opened=-10_000.0, before=1_000_000, sampled=(), consumes=(), more=None, **parts
):
    """A film of clients that publish 20/s each over connections opened at this second."""

    def frame(t):
        names = [(f"10.0.0.{number}:5000 -> 10.0.0.99:5672", name) for number, name in enumerate(clients)]
        history = past(increases, **(more or {}), nodes=sampled) if t == 10 else None
        return {
            "overview": Overview(rabbitmq_version="4.3.6", statistics=True, rates_mode="basic", past=history),
            "connections": tuple(
                connection(each, client_name=name, connected_at=WALL + opened) for each, name in names
            ),
            "channels": tuple(
                channel(f"{each} (1)", consumer_count=0, stats=stats(publish=int(before + 20 * t))) for each, _ in names
            ),
            "consumers": tuple(consumer(connection_name=each) for each, name in names if name in consumes),
            **{name: part(t) if callable(part) else part for name, part in parts.items()},
        }

    return film(frame, until=10)


def test_one_pause_of_a_steady_load_is_information_and_two_are_a_warning():
    """The time is exact to a second or so: the samples beside the pause contain a part of it."""
    once = finding_of(look(load([*STEADY, *PAUSE, *STEADY])), RULE)
    twice = finding_of(look(load([*STEADY, *PAUSE, *STEADY, *PAUSE, *STEADY[:4]])), RULE)

    assert ("info", "warning", "cluster") == (once.severity.value, twice.severity.value, twice.subject.kind)
    assert (1, 2) == (once.facts["times"], twice.facts["times"])
    assert (11.25, 40.0) == (once.facts["longest_seconds"], once.facts["usual_rate"])
    assert ["till", "web"] == once.facts["clients"]
    assert once.since == once.facts["first_at"] == once.facts["last_at"]


@pytest.mark.parametrize(
    "increases",
    [
        [*STEADY, 200, 0, 400, *STEADY],
        [*STEADY, 105, 0, 295, *STEADY],
        [*STEADY, *PAUSE[:2], 0, 0],
        [0] * 30 + STEADY,
        [*STEADY[:2], *PAUSE, *STEADY[:2]],
        [200, 0, 0, 0, 0, 0] * 8,
        [200, 900, 20, 0, 0, 5, 600, 90] * 6,
        [1, 0, 0, 1, 1, 0, 0, 1, 1, 1] * 5,
        STEADY,
        [],
        [0] * 30,
    ],
    ids=[
        "statistics late", "statistics late by half", "still paused", "a load that begins", "too short a time",
        "a load in batches", "an unsteady load", "few messages", "no pause", "no samples", "nothing published",
    ],
)  # fmt: skip
def test_other_curves_are_no_pause(increases):
    """Each of them is healthy, or is seen by other rules."""
    assert [] == of(look(load(increases)), RULE)


PAUSED = [*STEADY, *PAUSE, *STEADY]


@pytest.mark.parametrize(
    "changes",
    [
        {"clients": ("till",)},
        {"clients": tuple(f"till-{number}" for number in range(8))},
        {"opened": -60.0},
        {"before": 500},
        {"consumes": ("web",)},
    ],
    ids=["one publisher", "one application", "connected again", "published nothing before", "fed by the other"],
)
def test_publishers_that_are_not_known_to_be_independent_prove_nothing(changes):
    """One application pauses as it likes, and who came back was away."""
    assert [] == of(look(load(PAUSED, **changes)), RULE)


def test_a_counter_that_began_again_is_used_from_there():
    """A restart of a node in the past is no pause."""
    counts = past([*STEADY, *PAUSE, *STEADY])
    again = replace(counts, published=(*range(10_000, 16_000, 200), *counts.published))

    assert 1 == finding_of(look(load([], more={}, overview=overview(again))), RULE).facts["times"]


def overview(history):
    """An overview that holds these samples."""
    return Overview(rabbitmq_version="4.3.6", statistics=True, rates_mode="basic", past=history)


def test_an_alarm_that_was_seen_is_the_cause():
    """The exporter reads the checks all the time; once is enough for a warning."""
    alarm = HealthCheck(name="alarms", ok=False, reason="alarms", alarms=(Alarm(node=NODE, resource="disk"),))

    over = HealthCheck(name="alarms", ok=True)
    finding = finding_of(look(load(PAUSED, health=lambda t: (over if t else alarm,))), RULE)

    assert ("warning", "certain") == (finding.severity.value, finding.certainty.value)
    assert [f"disk on {NODE}"] == finding.facts["alarms_seen"]


@pytest.mark.parametrize(
    ("extremes", "expected"),
    [
        ({"mem_used": 999, "disk_free": 51}, []),
        ({"mem_used": 1000, "disk_free": 51}, ["memory"]),
        ({"mem_used": 999, "disk_free": 50}, ["disk"]),
        ({}, []),
    ],
)
def test_memory_and_disk_of_the_nodes_are_compared_with_their_limits(extremes, expected):
    """A limit that was reached fits an alarm; one that was not rules it out, unless it was changed."""
    here = (Node(name=NODE, running=True, mem_limit=1000, disk_free_limit=50),)
    samples = (NodePast(name=NODE, **extremes), NodePast(name="rabbit@gone", mem_used=5000))
    found = finding_of(look(load(PAUSED, sampled=samples, nodes=here)), RULE)

    assert expected == [each["resource"] for each in found.facts["reached"]]
    assert bool(extremes) == found.facts["limits_known"]
    assert ("warning" if expected else "info") == found.severity.value


@pytest.mark.parametrize(("delivered", "expected"), [([200] * 43, 200), ([*[200] * 20, 200, 3, *[200] * 21], 0)])
def test_consumers_that_went_on_are_told(delivered, expected):
    """Then the broker and the network were alive. The last messages of before prove nothing."""
    assert expected == finding_of(look(load(PAUSED, more={"delivered": delivered})), RULE).facts["delivered"]


def test_old_samples_are_not_used():
    """They are read once a minute."""
    assert [] == of(look(load(PAUSED), later=200.0), RULE)


def test_during_an_alarm_it_is_a_consequence():
    """The alarm says what to do."""
    alarm = HealthCheck(name="alarms", ok=False, reason="alarms", alarms=(Alarm(node=NODE, resource="disk"),))
    result = look(load(PAUSED, health=(alarm,)))

    assert ["disk-alarm"] == [each.rule for each in result.findings]
    assert "publishers-paused" in [each.rule for each in result.findings[0].consequences]


def test_the_text_says_what_is_ruled_out():
    """No look can say more, so the log has to."""
    shown = text(finding_of(look(load(PAUSED)), RULE))

    assert "'till', 'web'" in shown.cause
    assert "alarm (set|cleared)" in shown.next_steps[0]


def test_a_part_that_was_not_read_is_no_reason_to_fail():
    """A user without the tag for monitoring sees no connections."""
    assert [] == of(look(load(PAUSED, connections=Part(error="refused"))), RULE)
