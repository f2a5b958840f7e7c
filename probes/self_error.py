"""Decides whether the error of the probe itself makes a measurement doubtful."""

from collections.abc import Sequence

from ackscope.format import plural
from ackscope.records import Quantiles

LEAST_MESSAGES = 20
"""Minimum number of messages. With fewer, even the p90 stands on one or two of them."""

_LEAST_OF_P99 = 100
"""Minimum number of values of a p99. With fewer it is the largest value, and one late message would make a minute of a
slow stream doubtful; their p90 is compared instead.
"""

SHARE = 0.10
FLOOR = 0.001
"""The delay of the probe itself is too large if it is above 10 % (`SHARE`) of the median and above 1 ms (`FLOOR`)."""


def doubt_of_messages(*, confirm: Quantiles, send_delay: Quantiles, loop_lag: Quantiles) -> str | None:
    """Return why the measurement is doubtful, as a sentence with its values; None if it is good."""
    if confirm.count < LEAST_MESSAGES or confirm.p50 is None:
        return f"only {plural(confirm.count, 'message')} settled; at least {LEAST_MESSAGES} are needed"
    bearable = max(FLOOR, SHARE * confirm.p50)
    for what, own in (("sent late by", send_delay), ("timer loop late by", loop_lag)):
        name, late = ("p99", own.p99) if own.count >= _LEAST_OF_P99 else ("p90", own.p90)
        if late is not None and late > bearable:
            return (
                f"the probe itself was slow ({what} {name} {duration(late)}, "
                f"limit for a median confirm of {duration(confirm.p50)}: {duration(bearable)})"
            )
    return None


def doubt_of_steps(*, steps: Sequence[Quantiles], loop_lag: Quantiles) -> str | None:
    """Like `doubt_of_messages`, for a stream of timed steps."""
    medians = [step.p50 for step in steps if step.p50 is not None]
    if not medians:
        return "no step completed"
    bearable = max(FLOOR, SHARE * min(medians))
    if loop_lag.p99 is not None and loop_lag.p99 > bearable:
        return (
            f"the probe itself was slow (timer loop late by p99 {duration(loop_lag.p99)}, "
            f"limit for a median step of {duration(min(medians))}: {duration(bearable)})"
        )
    return None


def duration(seconds: float | None) -> str:
    """Format a duration with three digits and a suitable unit."""
    if seconds is None:
        return "-"
    for scale, unit in ((1e-6, "us"), (1e-3, "ms"), (1.0, "s")):
        value = seconds / scale
        if value < 999.5 or unit == "s":
            digits = 0 if value >= 99.95 or unit == "us" else 1 if value >= 9.995 else 2
            return f"{value:.{digits}f} {unit}"
    raise AssertionError  # the last unit fits every value
