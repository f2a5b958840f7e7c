from ackscope.clock import Instant
from ackscope.snapshot import Part, Queue, Snapshot
from diagnosis.window import Window
from exporter.runtime.window_limits import limit_window


def at(number):
    """The moment of a reading."""
    return Instant(wall=1.7e9 + 5 * number, mono=5.0 * number)


def snapshot(number, queues, **parts):
    """One reading of queues."""
    return Snapshot(cluster="shop", taken=at(number), queues=Part(value=tuple(queues), at=at(number)), **parts)


def window(*readings):
    """As the exporter fills one."""
    made = Window.empty("shop")
    for number, queues in enumerate(readings):
        made = made.add(snapshot(number, queues))
    return made


def queue(name, messages):
    """One reading of one queue."""
    return Queue(vhost="/", name=name, messages=messages)


def names(made):
    """The names in every reading, oldest first."""
    return ["".join(sorted(it.name for it in each.queues.value)) for each in made.snapshots]


def busy(reading):
    """Four queues that change at every reading, the last ones with most messages, and one that never does."""
    return [*(queue(name, 10 * place + reading + 1) for place, name in enumerate("abcd")), IDLE]


IDLE = queue("z", 0)


def test_what_fits_is_left_alone():
    """The result is the same window object."""
    made = window(*map(busy, range(6)))

    assert (made, 0) == limit_window(made, 16)
    assert limit_window(made, 16)[0] is made


def test_too_much_past_is_let_go_but_for_those_with_most_messages():
    """The latest two readings stay complete; unchanged objects stay too, because they take no memory."""
    made, dropped = limit_window(window(*map(busy, range(6))), 8)

    assert ["cdz"] * 4 + ["abcdz"] * 2 == names(made)
    assert dropped == 8


def test_what_is_left_of_a_past_has_no_gap():
    """A queue that changed lately and stood still before: its readings before the change go, all of them."""
    quiet = queue("e", 1)
    readings = [[*busy(number), quiet if number < 3 else queue("e", 2)] for number in range(4)]
    readings += [[*busy(number), readings[-1][-1]] for number in (4, 5)]
    made, _ = limit_window(window(*readings), 8)

    assert ["cdz", "cdz", "cdz", "cdez", "abcdez", "abcdez"] == names(made)


def test_again_and_again_it_stays_within():
    """This holds even if all queues keep changing."""
    made, dropped = Window.empty("shop"), 0
    for number in range(40):
        made, more = limit_window(made.add(snapshot(number, busy(number))), 8)
        dropped += more
        objects = {id(it) for each in made.snapshots for it in each.queues.value}

        assert len(objects) <= 2 * 5 + 8
    assert dropped > 50


def test_what_else_snapshots_hold_is_not_touched():
    """Nor are readings that several snapshots have in common made into several."""
    first, *rest = (snapshot(number, busy(number)) for number in range(6))
    reported = Snapshot(
        cluster="shop",
        taken=at(0.5),
        queues=first.queues,
        channels=Part(value=(), at=at(0.5)),
        overview=Part(error="x"),
    )
    made, _ = limit_window(Window("shop", (first, reported, *rest)), 8)

    assert made.snapshots[0].queues.value is made.snapshots[1].queues.value
    assert (reported.channels, reported.overview, reported.taken) == (
        made.snapshots[1].channels, made.snapshots[1].overview, made.snapshots[1].taken)  # fmt: skip
    assert (at(0), at(5)) == (made.snapshots[0].queues.at, made.snapshots[-1].queues.at)


def test_where_queues_come_and_go_no_more_is_counted_than_there_is():
    """Readings of other lengths are compared by what they hold, not by place."""
    unchanged = [queue(str(number), 0) for number in range(50)]
    made = window(unchanged, unchanged[1:], unchanged[2:], unchanged[3:], unchanged[4:], unchanged[5:])

    assert limit_window(made, 10)[0] is made


def test_a_cluster_that_was_never_read_has_no_past():
    """There is nothing to remove."""
    empty = Window.empty("shop")

    assert (empty, 0) == limit_window(empty, 0)
