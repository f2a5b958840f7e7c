"""What came, changed and went."""

from dataclasses import dataclass

from exporter.exposition.cardinality.changes import Ledger


@dataclass(frozen=True)
class Thing:
    """Something with a name."""

    name: str
    size: int = 0


class Asked:
    """A key function that counts how often it is asked."""

    def __init__(self):
        self.times = 0

    def __call__(self, thing):
        """Its name."""
        self.times += 1
        return thing.name


def test_objects_come_change_and_go():
    """Each of the three is told once; what is the same object is not told."""
    same, before, after, gone, came = Thing("a"), Thing("b", 1), Thing("b", 2), Thing("c"), Thing("d")
    ledger = Ledger(lambda it: it.name)
    first = ledger.take((same, before, gone))
    second = ledger.take((came, same, after))

    assert ([same, before, gone], [], []) == (first.came, first.changed, first.gone)
    assert ([came], [(before, after)], [gone]) == (second.came, second.changed, second.gone)
    assert {"a": same, "b": after, "d": came} == ledger.objects


def test_what_did_not_change_is_not_looked_at():
    """A hundred thousand idle queues are told apart by identity: not even their names are read."""
    things, asked = [Thing(str(number)) for number in range(1000)], Asked()
    ledger = Ledger(asked)
    ledger.take(tuple(things))
    asked.times = 0
    ledger.take(tuple(things))
    things[7] = Thing("7", 1)
    changes = ledger.take(tuple(things))

    assert 1 == len(changes.changed)
    assert asked.times <= 3


def test_of_two_with_the_same_key_the_first_one_counts():
    """Pages that shift while they are read may tell a queue twice."""
    first, second = Thing("a", 1), Thing("a", 2)
    ledger = Ledger(lambda it: it.name)
    both = ledger.take((first, second))
    again = ledger.take((first, second))
    alone = ledger.take((second,))

    assert [first] == both.came
    assert ([], [], []) == (again.came, again.changed, again.gone)
    assert ([(first, second)], []) == (alone.changed, alone.gone)
    assert {"a": second} == ledger.objects
