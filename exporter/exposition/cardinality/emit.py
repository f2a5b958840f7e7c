"""Emits samples for selected objects and for the remainder."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Generic, NamedTuple, TypeVar

from exporter.exposition.cardinality.selection import SelectedObjects
from exporter.exposition.specs import MetricFamilies, MetricReader, Spec

T = TypeVar("T")


class FieldMetric(NamedTuple):
    """A metric and the path of its value in the object. The remainder has it too if it can be summed."""

    spec: Spec
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelScheme(Generic[T]):
    """Labels of the objects of one kind and cluster.

    Attributes:
        key: identifies an object, as in `SelectedObjects.counted_in_remainder`.
        labels: new label set of an object, shared by all its samples.
        other: label set of the remainder.
    """

    key: Callable[[T], Hashable]
    labels: Callable[[T], dict[str, str]]
    other: dict[str, str]


def emit(
    families: MetricFamilies,
    selected: SelectedObjects[T],
    naming: LabelScheme[T],
    field_metrics: Sequence[FieldMetric],
    readers: Sequence[MetricReader[T]] = (),
) -> None:
    """Add a sample per object and metric, and one for the remainder per metric that can be summed.

    Args:
        families: receives the samples.
        selected: selected objects and remainder.
        naming: keys and labels.
        field_metrics: metrics that the remainder has too, if they can be summed.
        readers: metrics of single objects only.
    """
    plain: list[tuple[Spec, Callable[[T], Any]]] = [(it.spec, attrgetter(it.path)) for it in field_metrics]
    for it in selected.shown:
        labels = naming.labels(it)
        key = naming.key(it) if selected.counted_in_remainder else None
        if key in selected.counted_in_remainder:
            for spec, path in field_metrics:
                families.add(spec, labels, selected.count(it, key, path))
        else:
            for spec, read in plain:
                families.add(spec, labels, read(it))
        for spec, read in readers:
            families.add(spec, labels, read(it))
    for spec, path in field_metrics:
        families.add(spec, naming.other, selected.remainder.get(path))
