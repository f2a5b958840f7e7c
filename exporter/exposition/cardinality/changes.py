"""What came, changed and went between two lists of objects, found by identity.

An object that did not change is the same Python object in both lists (`exporter.polling` sees to that), so 100,000
idle queues cost two passes over their ids and nothing else.
"""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ObjectChanges(Generic[T]):
    """What is different.

    Attributes:
        came: objects with keys that were not there.
        changed: before and now, of keys that were there.
        gone: objects with keys that are there no more.
    """

    added: list[T] = field(default_factory=list)
    changed: list[tuple[T, T]] = field(default_factory=list)
    removed: list[T] = field(default_factory=list)


class ObjectIndex(Generic[T]):
    """The objects of one kind by their key.

    Args:
        key: what tells two objects of a list apart; of two with the same key the first one counts.
    """

    def __init__(self, key: Callable[[T], Hashable]) -> None:
        self.key = key
        self.objects: dict[Hashable, T] = {}
        self._ids: dict[int, T] = {}  # holds the objects, so that no id is given twice
        self._listed: Iterable[T] | None = None

    def update(self, listed: Iterable[T]) -> ObjectChanges[T]:
        """Go on to this list."""
        changes: ObjectChanges[T] = ObjectChanges()
        if listed is self._listed:
            return changes
        now = {id(it): it for it in listed}
        before = self._ids
        doubles = []
        for fresh in [it for number, it in now.items() if number not in before]:
            key = self.key(fresh)
            old = self.objects.get(key)
            if old is None:
                changes.added.append(fresh)
            elif id(old) in now:
                doubles.append(id(fresh))
                continue
            else:
                changes.changed.append((old, fresh))
            self.objects[key] = fresh
        for stale in [it for number, it in before.items() if number not in now]:
            key = self.key(stale)
            if self.objects.get(key) is stale:
                changes.removed.append(self.objects.pop(key))
        for number in doubles:  # looked at again with the next list, when the first one may be gone
            del now[number]
        self._ids, self._listed = now, listed
        return changes
