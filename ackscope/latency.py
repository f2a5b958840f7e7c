"""Latency histograms that merge by addition: 48 log-spaced buckets, the same for writer, Spark and dashboard.

Fixed buckets have advantages over a sketch: they are plain columns, merge with SUM in every engine, map to a Prometheus
histogram, and bound the error of the *value*: one bucket is a factor of 1.36 wide.
"""

import math
from collections.abc import Sequence
from itertools import pairwise

BOUNDS_VERSION = "log48-v1"
_LOWEST, _HIGHEST, BUCKETS = 50e-6, 60.0, 48

EDGES: tuple[float, ...] = tuple(
    _LOWEST * (_HIGHEST / _LOWEST) ** (step / (BUCKETS - 2)) for step in range(BUCKETS - 1)
)
"""Upper edges in seconds (inclusive) of all buckets except the last, which counts everything above 60 s."""

COLUMNS: tuple[str, ...] = tuple(f"b{index:02d}" for index in range(BUCKETS))
"""Column names of the buckets, in order."""


def bucket(seconds: float) -> int:
    """The index of the bucket of a duration."""
    low, high = 0, BUCKETS - 1
    while low < high:
        middle = (low + high) // 2
        if seconds <= EDGES[middle]:
            high = middle
        else:
            low = middle + 1
    return low


def quantile(counts: Sequence[int], maximum: float | None, q: float) -> float | None:
    """Estimate a quantile from bucket counts, in seconds.

    Interpolates logarithmically within the bucket (linearly below 50 microseconds). The result never exceeds the exact
    maximum.

    Args:
        counts: one count per bucket, in the order of `COLUMNS`.
        maximum: the exact maximum; None if unknown.
        q: 0..1.

    Returns:
        The quantile in seconds; None for an empty histogram.
    """
    total = sum(counts)
    if total == 0:
        return None
    rank, seen = q * total, 0
    ceiling = math.inf if maximum is None else maximum
    edges = (0.0, *EDGES, max(_HIGHEST, ceiling if math.isfinite(ceiling) else _HIGHEST))
    for count, (low, high) in zip(counts, pairwise(edges), strict=True):
        if count and seen + count >= rank:
            share = min(1.0, max(0.0, (rank - seen) / count))
            inside = low + (high - low) * share if low == 0.0 else low * (high / low) ** share
            return min(inside, ceiling)
        seen += count
    return ceiling if math.isfinite(ceiling) else _HIGHEST
