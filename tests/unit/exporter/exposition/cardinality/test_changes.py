"""Detection of objects that came, changed or went."""

from dataclasses import dataclass

from exporter.exposition.cardinality.changes import ObjectIndex


@dataclass(frozen=True)
class Thing:
    """Something with a name."""

    name: str
    size: int = 0


class Requests:
    """A key function that counts how often it is asked."""

    def __init__(self):
        self.times = 0

    def __call__(self, thing):
        """Its name."""
        self.times += 1
        return thing.name


def test_objects_come_change_and_go():
    """Each change is reported once; identical objects are not reported."""
    same, before, after, removed, added = Thing("a"), Thing("b", 1), Thing("b", 2), Thing("c"), Thing("d")
    ledger = ObjectIndex(lambda it: it.name)
    included = ledger.update((same, before, removed))
    second = ledger.update((added, same, after))

    assert ([same, before, removed], [], []) == (included.added, included.changed, included.removed)
    assert ([added], [(before, after)], [removed]) == (second.added, second.changed, second.removed)
    assert {"a": same, "b": after, "d": added} == ledger.objects


def test_what_did_not_change_is_not_looked_at():
    """100,000 idle queues are compared by identity; not even their names are read."""
    things, requested = [Thing(str(number)) for number in range(1000)], Requests()
    ledger = ObjectIndex(requested)
    ledger.update(tuple(things))
    requested.times = 0
    ledger.update(tuple(things))
    things[7] = Thing("7", 1)
    changes = ledger.update(tuple(things))

    assert 1 == len(changes.changed)
    assert requested.times <= 3


def test_of_two_with_the_same_key_the_first_one_counts():
    """Pages that shift during a reading may contain a queue twice."""
    included, second = Thing("a", 1), Thing("a", 2)
    ledger = ObjectIndex(lambda it: it.name)
    both = ledger.update((included, second))
    again = ledger.update((included, second))
    alone = ledger.update((second,))

    assert [included] == both.added
    assert ([], [], []) == (again.added, again.changed, again.removed)
    assert ([(included, second)], []) == (alone.changed, alone.removed)
    assert {"a": second} == ledger.objects
