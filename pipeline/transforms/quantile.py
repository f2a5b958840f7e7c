"""Quantiles of the latency histograms, in Spark: `ackscope.latency.quantile` as SQL."""

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark text uses

from ackscope import latency

_LAST_EDGE = 60.0
"""Seconds: where the last bucket begins, and what is said where no `max` tells how far it reaches."""


def quantile(q: float) -> Column:
    """An estimate of a quantile, in seconds, from the columns `b00` to `b47` and `max`; null where nothing is counted.

    The same rule as in the kernel: interpolated in the logarithm within the bucket, and never more than `max`. To tell
    it of several rows, add their buckets and take the greatest `max` first.

    Args:
        q: 0..1.
    """
    # One walk over an array: 48 sums of up to 48 columns would be too much code for Spark to compile.
    counts = ", ".join(latency.COLUMNS)
    rank = f"({' + '.join(latency.COLUMNS)}) * {q!r}D"
    begin = f"named_struct('rank', {rank}, 'seen', 0L, 'count', 0L, 'index', 0, 'found', false)"
    step = (
        "if(it.found, it, named_struct('rank', it.rank, 'seen', it.seen + it.count, 'count', count,"
        " 'index', it.index + 1, 'found', count > 0 AND it.seen + it.count + count >= it.rank))"
    )
    return F.expr(f"aggregate(array({counts}), {begin}, (it, count) -> {step}, it -> {_inside()})")


def _inside() -> str:
    """Where in its bucket the rank lies. `index` counts from 1, as `element_at`; `seen` is what lies below."""
    edges = ", ".join(f"{edge!r}D" for edge in (0.0, *latency.EDGES))
    low = f"element_at(array({edges}), it.index)"
    high = f"if(it.index = {latency.BUCKETS}, greatest({_LAST_EDGE!r}D, max), element_at(array({edges}), it.index + 1))"
    share = "least(1.0D, greatest(0.0D, (it.rank - it.seen) / it.count))"
    value = f"if(it.index = 1, {high} * {share}, {low} * power({high} / {low}, {share}))"
    nothing = "it.seen + it.count = 0"
    return (
        f"CASE WHEN it.found THEN least({value}, max) WHEN {nothing} THEN NULL ELSE coalesce(max, {_LAST_EDGE!r}D) END"
    )
