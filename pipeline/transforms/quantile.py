"""Quantiles of the latency histograms: `ackscope.latency.quantile` as SQL."""

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark text uses

from ackscope import latency

# Lower edge of the last bucket, seconds; the result if no `max` limits that bucket.
_LAST_EDGE = 60.0


def quantile(q: float) -> Column:
    """An estimate of a quantile, in seconds, from the columns `b00` to `b47` and `max`; null for an empty histogram.

    The same rule as in the kernel: logarithmic interpolation within the bucket, never more than `max`. For several
    rows, add their buckets and take the greatest `max` first.

    Args:
        q: 0..1.
    """
    # One pass over an array: 48 sums of up to 48 columns would be too much code for Spark to compile.
    counts = ", ".join(latency.COLUMNS)
    rank = f"({' + '.join(latency.COLUMNS)}) * {q!r}D"
    begin = f"named_struct('rank', {rank}, 'seen', 0L, 'count', 0L, 'index', 0, 'found', false)"
    step = (
        "if(it.found, it, named_struct('rank', it.rank, 'seen', it.seen + it.count, 'count', count,"
        " 'index', it.index + 1, 'found', count > 0 AND it.seen + it.count + count >= it.rank))"
    )
    return F.expr(f"aggregate(array({counts}), {begin}, (it, count) -> {step}, it -> {_inside()})")


def _inside() -> str:
    """The position of the rank in its bucket. `index` counts from 1, as in `element_at`; `seen` is the count below."""
    edges = ", ".join(f"{edge!r}D" for edge in (0.0, *latency.EDGES))
    low = f"element_at(array({edges}), it.index)"
    high = f"if(it.index = {latency.BUCKETS}, greatest({_LAST_EDGE!r}D, max), element_at(array({edges}), it.index + 1))"
    share = "least(1.0D, greatest(0.0D, (it.rank - it.seen) / it.count))"
    value = f"if(it.index = 1, {high} * {share}, {low} * power({high} / {low}, {share}))"
    nothing = "it.seen + it.count = 0"
    return (
        f"CASE WHEN it.found THEN least({value}, max) WHEN {nothing} THEN NULL ELSE coalesce(max, {_LAST_EDGE!r}D) END"
    )
