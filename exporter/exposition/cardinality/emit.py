"""How objects that were chosen become series, and the remainder with them."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Generic, NamedTuple, TypeVar

from exporter.exposition.cardinality.selection import Selected
from exporter.exposition.specs import MetricFamilies, MetricReader, Spec

T = TypeVar("T")


class FieldMetric(NamedTuple):
    """A metric, and the path of its value in the object; the remainder has it, too, where it adds up."""

    spec: Spec
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelScheme(Generic[T]):
    """What the objects of one kind and cluster are called.

    Attributes:
        key: as in `Chosen.missed`.
        labels: the label set of one object, made anew, that all its samples share.
        other: the label set of the remainder.
    """

    key: Callable[[T], Hashable]
    labels: Callable[[T], dict[str, str]]
    other: dict[str, str]


def emit(
    families: MetricFamilies,
    chosen: Selected[T],
    naming: LabelScheme[T],
    quantities: Sequence[FieldMetric],
    readings: Sequence[MetricReader[T]] = (),
) -> None:
    """Add a sample for each object and metric, and one of the remainder for each metric that has one.

    Args:
        families: where to.
        chosen: what to show.
        naming: keys and labels.
        quantities: what the remainder has, too, where it adds up.
        readings: what only single objects have.
    """
    plain: list[tuple[Spec, Callable[[T], Any]]] = [(it.spec, attrgetter(it.path)) for it in quantities]
    for it in chosen.shown:
        labels = naming.labels(it)
        key = naming.key(it) if chosen.counted_in_remainder else None
        if key in chosen.counted_in_remainder:
            for spec, path in quantities:
                families.add(spec, labels, chosen.count(it, key, path))
        else:
            for spec, read in plain:
                families.add(spec, labels, read(it))
        for spec, read in readings:
            families.add(spec, labels, read(it))
    for spec, path in quantities:
        families.add(spec, naming.other, chosen.remainder.get(path))
