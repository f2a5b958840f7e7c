import pytest

from ackscope.measures import measure, quantity
from ackscope.ranking import (
    MANY_QUEUES,
    WAVE_GAP_SECONDS,
    ChangedObject,
    ChangePoint,
    FindingEpisode,
    describe_change,
    describe_parts,
    rank_changes,
    repeat_suffix,
)

MOMENT = 1_000_000.0


def shift(seconds: float, name: str, score: float = 10.0, measure: str = "ready", **changes) -> ChangePoint:
    """Return a shift of a queue this many seconds after the given time."""
    row = {"kind": "queue", "vhost": "/", "before": 1.0, "after": 9.0, "minutes": 60}
    return ChangePoint(**{**row, **changes}, at=MOMENT + seconds, name=name, measure=measure, score=score)


def episode(after: float, name: str, severity: str = "critical", **changes) -> FindingEpisode:
    """Return a finding about a queue that began this many seconds after the given time."""
    row = {"ended": None, "rule": "no-consumer", "kind": "queue", "vhost": "/"}
    return FindingEpisode(**{**row, **changes}, began=MOMENT + after, name=name, severity=severity)


def names(moved: tuple[ChangedObject, ...]) -> list[str]:
    """The objects, best first."""
    return [it.name for it in moved]


def test_a_cause_comes_before_its_consequences() -> None:
    """The size of the consequences does not matter."""
    shifts = [shift(600, "downstream", 500.0), shift(0, "cause", 6.0), shift(300, "next", 90.0)]

    assert ["cause", "next", "downstream"] == names(rank_changes(shifts, [], MOMENT))


def test_nobody_can_say_who_moved_first_within_two_minutes() -> None:
    """The larger shift comes first."""
    shifts = [shift(0, "small", 5.0), shift(60, "large", 80.0)]

    assert ["large", "small"] == names(rank_changes(shifts, [], MOMENT))


def test_a_lone_move_does_not_hide_the_wave() -> None:
    """One queue that moved earlier and alone is not related."""
    shifts = [shift(-WAVE_GAP_SECONDS - 1200, "alone", 8.0), shift(0, "cause", 8.0), shift(240, "next", 20.0)]
    moved = rank_changes(shifts, [], MOMENT)

    assert ["cause", "next", "alone"] == names(moved)
    assert [0, 0, 1] == [it.wave for it in moved]


def test_the_measures_of_one_object_are_one_entry() -> None:
    """In the order in which they moved."""
    shifts = [shift(120, "q", measure="ready"), shift(0, "q", measure="acked")]
    moved = rank_changes(shifts, [episode(180, "q")], MOMENT)

    assert 1 == len(moved)
    assert ["acked", "ready"] == [it.measure for it in moved[0].shifts]
    assert ["no-consumer"] == [it.rule for it in moved[0].findings]
    assert MOMENT == moved[0].at


def test_a_finding_that_comes_and_goes_is_reported_once_with_its_number() -> None:
    """By rule and severity, at its first moment."""
    again = [episode(60.0 * number, "q") for number in range(30)]
    (moved,) = rank_changes([shift(0, "q")], [*again, episode(30, "q", "warning")], MOMENT)

    assert [("critical", MOMENT, 30), ("warning", MOMENT + 30, 1)] == [
        (first.severity, first.began, times) for first, times in moved.first_findings()
    ]
    assert ("", ", 30 times") == (repeat_suffix(1), repeat_suffix(30))


def test_what_many_share_comes_first_among_those_that_moved_together() -> None:
    """Ten queues that slow down in the same minute as their node's disk did not slow each other."""
    queues = [shift(30, f"q{number}", 50.0) for number in range(2 * MANY_QUEUES)]
    probe = shift(60, "confirm/quorum/a", 5.0, "confirm_p99", kind="probe", vhost="")

    assert "confirm/quorum/a" == names(rank_changes([*queues, probe], [], MOMENT))[0]
    assert "q0" == names(rank_changes([queues[0], probe], [], MOMENT))[0]


def test_a_queue_comes_before_its_channels() -> None:
    """Channels move with their queue, equally strongly; many channels of one queue do not share a node."""
    channels = [shift(30, f"c{number}", 90.0, "acked", kind="channel") for number in range(2 * MANY_QUEUES)]
    probe = shift(0, "confirm/quorum/a", 5.0, "confirm_p99", kind="probe", vhost="")

    assert "q" == names(rank_changes([*channels, shift(60, "q", 50.0), probe], [], MOMENT))[0]


def test_a_queue_shows_of_its_channels_and_consumers() -> None:
    """One entry, with what moved of each; the first of them says when it began."""
    parts = [shift(-60 + number, f"c{number}", 9.0, "unacked", kind="channel", queue="q") for number in range(4)]
    consumer = shift(30, "q/tag", 9.0, "prefetch", kind="consumer", queue="q")
    (moved,) = rank_changes([shift(0, "q"), *parts, consumer], [], MOMENT)

    assert ("queue", "q", MOMENT - 60) == (moved.kind, moved.name, moved.at)
    assert ["ready"] == [it.measure for it in moved.shifts]
    assert [*parts, consumer] == list(moved.parts)
    assert [
        (MOMENT - 60, "its channel 'c0': messages unacked rose from 1 to 9"),
        (MOMENT - 59, "its channel 'c1': messages unacked rose from 1 to 9"),
        (MOMENT - 58, "and 3 more of its channels and consumers"),
    ] == describe_parts(moved)


def test_a_channel_whose_queue_did_not_move_is_reported_by_itself() -> None:
    """A channel that moved in another wave does not belong to the queue either; its findings stay with it."""
    channel = shift(0, "c", 9.0, "unacked", kind="channel", queue="q")
    later = shift(2 * WAVE_GAP_SECONDS, "q", 5.0)

    assert ["c"] == names(rank_changes([channel], [], MOMENT))
    assert ["c", "q"] == sorted(names(rank_changes([channel, later], [], MOMENT)))
    both = rank_changes([channel, shift(0, "q")], [episode(0, "c", kind="channel")], MOMENT)
    assert {"q": 0, "c": 1} == {it.name: len(it.findings) for it in both}


def test_a_node_that_stopped_is_first_of_those_that_moved_together() -> None:
    """A stopped node is not a consequence of a queue."""
    down = shift(60, "rabbit@a", 2.0, "down", kind="node", vhost="")

    assert ["rabbit@a", "q"] == names(rank_changes([shift(0, "q", 90.0), down], [], MOMENT))


def test_only_what_lies_around_the_moment_is_reported() -> None:
    """Findings present at the exporter's first diagnosis are left out, because their start is unknown."""
    shifts = [shift(3601, "late"), shift(-3600, "early")]

    assert ["early"] == names(rank_changes(shifts, [episode(0, "q", found=True)], MOMENT))
    assert () == rank_changes(shifts, [], MOMENT, around=60.0)


def test_scores_that_are_no_numbers_do_no_harm() -> None:
    """A series that never varied has an infinite score."""
    moved = rank_changes([shift(0, "a", float("inf")), shift(0, "b", float("nan")), shift(0, "c", 3.0)], [], MOMENT)

    assert ["a", "c", "b"] == names(moved)


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("published", 120.0, "120/s"),
        ("published", 0.0421, "0.0421/s"),
        ("confirm_p99", 0.0041, "4.1 ms"),
        ("confirm_p99", 2.5, "2.5 s"),
        ("failed", 0.004, "0.4 %"),
        ("ready", 1.0, "1 message"),
        ("ready", 12845.0, "12,845 messages"),
        ("mem_used", 1536.0 * 1024**2, "1.5 GiB"),
        ("mem_used", 5 * 1024.0**5, "5,120 TiB"),
        ("something_new", 7.0, "7"),
        ("ready", None, "\N{EN DASH}"),
    ],
)
def test_values_have_their_unit(name: str, value: float | None, text: str) -> None:
    """Values have three significant digits; absent values are a dash."""
    assert text == quantity(value, measure(name).unit)


def test_a_shift_is_a_sentence() -> None:
    """With before, after and unit; what a new measure is called, its name says."""
    assert "publish rate fell from 120/s to 0/s" == describe_change(
        shift(0, "q", measure="published", before=120.0, after=0.0)
    )
    assert "p99 confirm latency rose from 4 ms to 1.2 s" == describe_change(
        shift(0, "q", measure="confirm_p99", before=0.004, after=1.2)
    )
    assert "tcp steps that failed rose from 1 % to 9 %" == describe_change(
        shift(0, "q", measure="tcp_failed", before=0.01, after=0.09)
    )
