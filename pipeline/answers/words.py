"""An answer as text for people, in 80 columns."""

import textwrap
from collections.abc import Iterator

from pipeline.answers.answer import Answer, Span
from pipeline.answers.moments import long

WIDTH = 80

_SHOWN = 20


def report(answer: Answer) -> str:
    """Sentences, then from when to when there was data."""
    return "\n".join(_lines(answer))


def _lines(answer: Answer) -> Iterator[str]:
    if answer.because is not None:
        yield from _wrap("cannot tell: ", answer.because)
    for number, sentence in enumerate(answer.told[:_SHOWN], start=1):
        yield from _wrap(f"{number:2}. " if len(answer.told) > 1 else "", sentence)
    if len(answer.told) > _SHOWN:
        yield f"    {len(answer.told) - _SHOWN} more; --json has them"
    yield ""
    yield from _wrap("data: ", data(answer.data))


def data(known: Span) -> str:
    """From when to when there was data, and what is lacking between."""
    asked = f"asked about {_minute(known.asked_from)} to {_minute(known.asked_to)} UTC"
    if known.first is None or known.last is None:
        return f"none; {asked}"
    held = f"{_minute(known.first)} to {_minute(known.last)} UTC, {long(known.minutes * 60)} of it; {asked}"
    if known.gap_minutes == 0:
        return f"{held}; no gaps"
    gaps = ", ".join(f"{_minute(first)} to {_minute(last)}" for first, last in known.gaps[-3:])
    named = f": {gaps}" if gaps and len(known.gaps) <= 3 else f", the latest: {gaps}" if gaps else ""
    return f"{held}; gaps of {long(known.gap_minutes * 60)} together{named}"


def _minute(text: str) -> str:
    return text[:16].replace("T", " ")


def _wrap(head: str, text: str) -> list[str]:
    return textwrap.wrap(
        f"{head}{text}", WIDTH, subsequent_indent=" " * len(head), break_on_hyphens=False, drop_whitespace=True
    )
