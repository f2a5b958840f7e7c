from dataclasses import replace

from ackscope.counters import MessageStats
from ackscope.snapshot import Queue
from exporter.broker.interning import MAX_VALUES, Interner


def queue(name="q", **values):
    """A queue whose values are separate objects."""
    usual = {
        "arguments": {"x-max-length": int("1000")},
        "members": tuple(f"{node}@host" for node in "ab"),
        "rates": {"publish": float("0.5")},
        "memory": int("13936"),
        "consumer_capacity": float("0.25"),
        "stats": MessageStats(),
    }
    return Queue(**{"vhost": "/", "name": name, **usual, **values})


def test_equal_values_of_two_queues_are_one_object():
    """And the queues stay equal to what they were."""
    interner = Interner()
    one, other = interner.intern(queue("one")), interner.intern(queue("other"))

    assert (queue("one"), queue("other")) == (one, other)
    for attribute in ("arguments", "members", "rates", "memory", "consumer_capacity", "stats"):
        assert getattr(one, attribute) is getattr(other, attribute)


def test_equal_values_of_different_types_stay_different():
    """1, 1.0 and true are equal in Python but not in a policy."""
    interner = Interner()
    values = [{"x": 1}, {"x": 1.0}, {"x": True}, {"x": [1]}, {"x": [True]}]
    interned = [interner.intern(queue(arguments=each)).arguments for each in values]
    before = queue(arguments={"x": 1}, memory=1)
    after = interner.intern(replace(queue(arguments={"x": True}), memory=True), before)

    assert [repr(each) for each in values] == [repr(each) for each in interned]
    assert ("{'x': True}", "True") == (repr(after.arguments), repr(after.memory))


def test_a_later_reading_reuses_the_values_of_the_earlier_one():
    """Its name, counters and numbers if unchanged."""
    interner = Interner()
    before = interner.intern(queue(str(b"orders", "ascii"), reductions=int("99999"), stats=MessageStats(publish=7000)))
    after = interner.intern(
        queue("orders", reductions=int("99999"), stats=MessageStats(publish=7000), messages=5), before
    )

    assert before != after
    for attribute in ("name", "reductions", "stats", "arguments"):
        assert getattr(before, attribute) is getattr(after, attribute)


def test_the_number_of_remembered_values_is_bounded():
    """Thousands of different arguments are forgotten again."""
    interner = Interner()
    first = interner.intern(queue(arguments={"n": -1})).arguments
    for number in range(MAX_VALUES + 2):
        interner.intern(queue(arguments={"n": number}))

    assert first is not interner.intern(queue(arguments={"n": -1})).arguments


def test_a_value_that_is_not_json_is_unchanged():
    """A number beyond 64 bits."""
    huge = {"x": 1 << 80}

    assert huge is Interner().intern(queue(arguments=huge)).arguments
