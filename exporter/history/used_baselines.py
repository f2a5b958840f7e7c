"""Records which baselines a diagnosis uses: of 60,000 it uses a few dozen, so a bundle holds only those."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from ackscope.baselines import Band, Baselines, NoBand, NotYet, Subject


class _Recorder(Mapping[Subject, Band | NotYet]):
    """A mapping of bands that records lookups."""

    def __init__(self, bands: Mapping[Subject, Band | NotYet]) -> None:
        self._bands = bands
        self.found: dict[Subject, Band | NotYet] = {}

    def __getitem__(self, subject: Subject) -> Band | NotYet:
        band = self.found[subject] = self._bands[subject]
        return band

    def __iter__(self) -> Iterator[Subject]:
        return iter(self._bands)

    def __len__(self) -> int:
        return len(self._bands)


def record_lookups(baselines: Baselines | None, judge: Callable[[Baselines], object]) -> Baselines | None:
    """Reduce baselines to those that a diagnosis looks up.

    Args:
        baselines: all baselines; None stays None.
        judge: runs the diagnosis with the given baselines.
    """
    if baselines is None:
        return None
    recorder = _Recorder(baselines.bands)
    judge(replace(baselines, bands=recorder))
    return replace(baselines, bands=recorder.found)


def to_json(baselines: Baselines | None) -> dict[str, Any] | None:
    """Convert to JSON. Bands become a list, because JSON has no tuple keys."""
    if baselines is None:
        return None
    return {
        "hour_of_week": baselines.hour_of_week,
        "made_at": baselines.made_at,
        "bands": [[*subject, *_row(band)] for subject, band in sorted(baselines.bands.items())],
    }


def from_json(document: dict[str, Any] | None) -> Baselines | None:
    """Inverse of `to_json`. None stays None: bundles of older versions have no baselines.

    Raises:
        KeyError, TypeError, ValueError: malformed document.
    """
    if document is None:
        return None
    bands: dict[Subject, Band | NotYet] = {}
    for kind, vhost, name, measure, *row in document["bands"]:
        bands[kind, vhost, name, measure] = _not_yet(*row) if len(row) < 5 else Band(*row)
    return Baselines(hour_of_week=document["hour_of_week"], made_at=document["made_at"], bands=bands)


def _not_yet(reason: str, days: int = 0) -> NotYet:
    """Decode the reason why a bundle has no band. Older versions of ackscope wrote a sentence: it becomes UNKNOWN."""
    known = reason in list(NoBand)
    return NotYet(NoBand(reason) if known else NoBand.UNKNOWN, days)


def _row(band: Band | NotYet) -> tuple[Any, ...]:
    if isinstance(band, NotYet):
        return (band.reason, band.days)
    return (band.low, band.middle, band.high, band.scope, band.values)
