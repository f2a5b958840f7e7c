from dataclasses import replace

from ackscope.counters import MessageStats
from ackscope.snapshot import Queue
from exporter.broker.sharing import MOST, Common


def queue(name="q", **told):
    """A queue whose values are objects of their own."""
    usual = {
        "arguments": {"x-max-length": int("1000")},
        "members": tuple(f"{node}@host" for node in "ab"),
        "rates": {"publish": float("0.5")},
        "memory": int("13936"),
        "consumer_capacity": float("0.25"),
        "stats": MessageStats(),
    }
    return Queue(**{"vhost": "/", "name": name, **usual, **told})


def test_equal_values_of_two_queues_are_one_object():
    """And the queues are what they were."""
    common = Common()
    one, other = common.settle(queue("one")), common.settle(queue("other"))

    assert (queue("one"), queue("other")) == (one, other)
    for attribute in ("arguments", "members", "rates", "memory", "consumer_capacity", "stats"):
        assert getattr(one, attribute) is getattr(other, attribute)


def test_what_merely_looks_equal_stays_what_it_is():
    """1, 1.0 and true are equal in Python and not in a policy."""
    common = Common()
    told = [{"x": 1}, {"x": 1.0}, {"x": True}, {"x": [1]}, {"x": [True]}]
    settled = [common.settle(queue(arguments=each)).arguments for each in told]
    before = queue(arguments={"x": 1}, memory=1)
    after = common.settle(replace(queue(arguments={"x": True}), memory=True), before)

    assert [repr(each) for each in told] == [repr(each) for each in settled]
    assert ("{'x': True}", "True") == (repr(after.arguments), repr(after.memory))


def test_a_later_reading_holds_what_the_earlier_one_held():
    """Its name, its counters, its numbers: whatever is as it was."""
    common = Common()
    before = common.settle(queue(str(b"orders", "ascii"), reductions=int("99999"), stats=MessageStats(publish=7000)))
    after = common.settle(
        queue("orders", reductions=int("99999"), stats=MessageStats(publish=7000), messages=5), before
    )

    assert before != after
    for attribute in ("name", "reductions", "stats", "arguments"):
        assert getattr(before, attribute) is getattr(after, attribute)


def test_so_many_different_values_are_remembered_and_no_more():
    """Thousands of arguments that differ are let go again."""
    common = Common()
    first = common.settle(queue(arguments={"n": -1})).arguments
    for number in range(MOST + 2):
        common.settle(queue(arguments={"n": number}))

    assert first is not common.settle(queue(arguments={"n": -1})).arguments


def test_what_is_no_json_stays_as_it_is():
    """A number beyond 64 bits."""
    huge = {"x": 1 << 80}

    assert huge is Common().settle(queue(arguments=huge)).arguments
