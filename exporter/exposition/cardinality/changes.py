"""Finds objects added, changed and removed between two lists, by identity.

An unchanged object is the same Python object in both lists (`exporter.polling` ensures that), so 100,000 idle queues
cost two passes over their ids.
"""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ObjectChanges(Generic[T]):
    """Difference between two lists.

    Attributes:
        added: objects with new keys.
        changed: (before, now) of objects whose key was there before.
        removed: objects whose key is no longer there.
    """

    added: list[T] = field(default_factory=list)
    changed: list[tuple[T, T]] = field(default_factory=list)
    removed: list[T] = field(default_factory=list)


class ObjectIndex(Generic[T]):
    """Objects of one kind by key.

    Args:
        key: identifies an object. Of duplicates only the first counts.
    """

    def __init__(self, key: Callable[[T], Hashable]) -> None:
        self.key = key
        self.objects: dict[Hashable, T] = {}
        self._ids: dict[int, T] = {}  # keeps the objects alive, so that their ids are not reused
        self._listed: Iterable[T] | None = None

    def update(self, listed: Iterable[T]) -> ObjectChanges[T]:
        """Switch to a new list and return the difference."""
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
        for number in doubles:  # check duplicates again with the next list, in case the first one is removed
            del now[number]
        self._ids, self._listed = now, listed
        return changes
