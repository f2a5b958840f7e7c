"""An answer as text in 80 columns."""

import textwrap
from collections.abc import Iterator

from pipeline.answers.answer import DataCoverage, HistoryAnswer
from pipeline.answers.moments import format_duration

WIDTH = 80

_MAX_SENTENCES = 20


def render(answer: HistoryAnswer) -> str:
    """Sentences, then the data coverage."""
    return "\n".join(_lines(answer))


def _lines(answer: HistoryAnswer) -> Iterator[str]:
    if answer.because is not None:
        yield from _wrap("no answer: ", answer.because)
    for number, sentence in enumerate(answer.sentences[:_MAX_SENTENCES], start=1):
        yield from _wrap(f"{number:2}. " if len(answer.sentences) > 1 else "", sentence)
    if len(answer.sentences) > _MAX_SENTENCES:
        yield f"    {len(answer.sentences) - _MAX_SENTENCES} more, see --json"
    yield ""
    yield from _wrap("data: ", describe_coverage(answer.data))


def describe_coverage(known: DataCoverage) -> str:
    """The data coverage as text, with its gaps."""
    requested = f"requested {_minute(known.requested_from)} to {_minute(known.requested_to)} UTC"
    if known.first is None or known.last is None:
        return f"none; {requested}"
    held = (
        f"{_minute(known.first)} to {_minute(known.last)} UTC, {format_duration(known.minutes * 60)} of it; {requested}"
    )
    if known.gap_minutes == 0:
        return f"{held}; no gaps"
    gaps = ", ".join(f"{_minute(first)} to {_minute(last)}" for first, last in known.gaps[-3:])
    named = f": {gaps}" if gaps and len(known.gaps) <= 3 else f", the latest: {gaps}" if gaps else ""
    return f"{held}; gaps of {format_duration(known.gap_minutes * 60)} together{named}"


def _minute(text: str) -> str:
    return text[:16].replace("T", " ")


def _wrap(head: str, text: str) -> list[str]:
    return textwrap.wrap(
        f"{head}{text}", WIDTH, subsequent_indent=" " * len(head), break_on_hyphens=False, drop_whitespace=True
    )
