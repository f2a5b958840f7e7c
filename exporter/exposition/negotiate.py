"""What a client takes: the format of a metrics page from its Accept header, gzip from its Accept-Encoding."""

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from exporter.exposition.encode import Format

_OFFERED = (
    # On a tie the first wins: the text format is what everybody reads.
    (Format.TEXT, "text/plain", "0.0.4"),
    (Format.OPENMETRICS, "application/openmetrics-text", "1.0.0"),
)


class _Item(NamedTuple):
    """One item of a list with weights: its value, its parameters, its weight from 0 to 1."""

    value: str
    parameters: Mapping[str, str]
    weight: float


@lru_cache(maxsize=64)
def format_for(accept: str) -> Format:
    """The format that an Accept header wants most.

    The most specific range that fits a format gives its weight (RFC 9110, 12.5.1); a range without a version takes
    ours. Who wants neither gets the text format: better than none.
    """
    items = _items(accept)
    best, most = Format.TEXT, 0.0
    for form, kind, version in _OFFERED:
        fits = [(rank, item.weight) for item in items if (rank := _rank(item, kind, version))]
        weight = max(fits)[1] if fits else 0.0
        if weight > most:
            best, most = form, weight
    return best


@lru_cache(maxsize=64)
def accepts_gzip(header: str) -> bool:
    """Whether an Accept-Encoding header takes gzip, and would not rather have it plain."""
    weights = {item.value: item.weight for item in _items(header)}
    gzip = weights.get("gzip", weights.get("x-gzip", weights.get("*", 0.0)))
    return gzip > 0 and gzip >= weights.get("identity", 0.0)


def _rank(item: _Item, kind: str, version: str) -> int:
    """How specific a range is that fits; 0 where it does not."""
    if item.value == kind:
        return 4 if item.parameters.get("version") == version else 3 * ("version" not in item.parameters)
    if item.value == f"{kind.partition('/')[0]}/*":
        return 2
    return int(item.value == "*/*")


def _items(header: str) -> list[_Item]:
    items = []
    for written in header.lower().split(","):
        value, *rest = (word.strip() for word in written.split(";"))
        parameters = {name.strip(): text.strip().strip('"') for name, _, text in (word.partition("=") for word in rest)}
        items.append(_Item(value, parameters, _weight(parameters.get("q", "1"))))
    return items


def _weight(text: str) -> float:
    """A weight; 0 for what is none: who writes it wrong gets what others get by default."""
    try:
        weight = float(text)
    except ValueError:
        return 0.0
    return weight if 0 <= weight <= 1 else 0.0
