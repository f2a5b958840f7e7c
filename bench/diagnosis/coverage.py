"""Make docs/coverage.md: `python -m bench.diagnosis.coverage > docs/coverage.md`.

Its source is `bench/diagnosis/results`, which `python -m bench.diagnosis.faults --record` writes.
"""

import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import fill

from bench.diagnosis.faults import WITHIN
from bench.diagnosis.record import RESULTS, FaultResult, read_results, results_file
from bench.diagnosis.scene import SOURCES, Source, never_read
from bench.tables import median
from diagnosis.pages import GROUPS, pages
from lab.brokers import SUITES
from lab.faults import FAULTS
from lab.faults.fault import PROTOCOLS, FaultSpec, Protocol

NO_FAULT, NOT_PLAYED, NOT_APPLICABLE = "-", "not played", "not applicable"
NAMED, NAMED_ALONE, SILENT = "named", "named, no client", "**silent**"

_WIDTH = 120

_HEADS: Mapping[Source, tuple[str, str]] = {
    "all": ("", "management API with statistics"),
    "statistics-off": (" no statistics", "management API without statistics, and port 15692"),
    "prometheus": (" only 15692", "port 15692 only, no probes"),
}
"""Source -> addition to the head of its column, and what it is."""

_HEADER = """\
# Coverage: which faults were played, and what ackscope said

The lab puts faults into real brokers, with a sample workload and an exporter with its defaults next to them. This page
shows for each rule what it said about its faults, by version of the broker, source of the data and protocol of the
clients. It is generated from the results of these runs, which are in `bench/diagnosis/results`, and is not edited.
"""

_WORDS = (
    (
        "named",
        f"the rule reported the fault, about the right object, while it was held ({WITHIN:.0f} s or a little longer)",
    ),
    ("named, no client", "the same, but the finding does not name the client of the fault, which it should"),
    ("inconclusive", "the rule reported that it cannot judge, and why: see [Reasons](#reasons)"),
    ("**silent**", "the fault was played, and the rule reported nothing: see [Silent](#silent)"),
    ("not applicable", "the rule needs data that this source never has (`needs` on its page); not played"),
    ("not played", "no run is recorded"),
    ("-", "the lab has no such fault: none for this rule, these clients or this version"),
)

_COLUMNS = (
    ("4.3", "management API with full statistics, and probes"),
    (
        "4.3 no statistics",
        "management API without statistics (`disable_metrics_collector`), Prometheus endpoint (port 15692), and probes",
    ),
    ("4.3 only 15692", "Prometheus endpoint only"),
)

_NOTES = """\
A number before a word counts faults. Columns without any recorded run are left out, except in the summary. Clients are
those of the fault. Faults of nodes, clusters and settings have no client of their own; they count as AMQP 0-9-1, which
the sample workload uses. In the summary, *faults* are those that the lab has for the version.
"""

_FOOTER = """\
## How to add a run

    python -m bench.diagnosis.faults --broker 4.3 --source all --fault stuck-consumer --record
    python -m bench.diagnosis.coverage > docs/coverage.md

Without `--fault`, all faults that fit are played. A run replaces the results of the faults that it played, and no
others. A fault that could not be injected is not recorded.
"""


@dataclass(frozen=True, slots=True)
class CoverageColumn:
    """A version of the broker and a source, with the recorded results by fault."""

    version: str
    source: Source
    results: Mapping[str, FaultResult] = field(default_factory=dict)

    @property
    def head(self) -> str:
        """Its head in the tables."""
        return self.version + _HEADS[self.source][0]

    def faults(self) -> list[FaultSpec]:
        """Return the faults that can be played."""
        return [spec for spec in FAULTS.values() if self.version in spec.versions]

    def result(self, spec: FaultSpec) -> FaultResult | None:
        """Return the result of a fault; None if it was not played with this rule."""
        found = self.results.get(spec.name)
        return found if found is not None and found.rule == spec.rule and self.version in spec.versions else None

    def word(self, spec: FaultSpec) -> str:
        """Return what the tables say about a fault."""
        if self.version not in spec.versions:
            return NO_FAULT
        found = self.result(spec)
        if found is None:
            return NOT_APPLICABLE if never_read(spec.rule, self.version, self.source) else NOT_PLAYED
        if found.outcome == "inconclusive":
            return f"[inconclusive][{found.reason}]"
        if found.outcome == "silent":
            return SILENT
        expects_client = spec.client or spec.protocol != "AMQP 0-9-1"
        return NAMED_ALONE if expects_client and found.client not in {"right", "among"} else NAMED


def columns(folder: Path = RESULTS) -> list[CoverageColumn]:
    """Return all versions and sources, with what is recorded."""
    return [
        CoverageColumn(
            version, source, {each.fault: each for each in read_results(results_file(version, source, folder))}
        )
        for source in SOURCES
        for version in SUITES
    ]


def page(found: Sequence[CoverageColumn]) -> str:
    """Return the whole page."""
    shown = [column for column in found if any(column.result(spec) for spec in column.faults())]
    parts = [
        _HEADER,
        *_table(("word", "meaning"), _WORDS),
        "",
        *_table(("column", "source of the data"), _COLUMNS),
        "",
        _NOTES,
        *_summary(found),
        *_by_protocol(shown),
        *_rules(shown),
        *_silent(shown),
        *_reasons(shown),
        *_faults(shown),
        _FOOTER,
        *_references(shown),
    ]
    return "\n".join(parts)


def _summary(found: Iterable[CoverageColumn]) -> Iterator[str]:
    """One row per version and source."""
    yield "## Summary\n"
    heads = (
        "broker", "source", "faults", "played", "named", "median s", "inconclusive", "silent", NOT_APPLICABLE,
        NOT_PLAYED, "runs of",
    )  # fmt: skip
    rows = []
    for column in found:
        specs = column.faults()
        results = [result for spec in specs if (result := column.result(spec))]
        outcomes = Counter(result.outcome for result in results)
        words = Counter(column.word(spec) for spec in specs)
        dates = sorted({result.date for result in results})
        brokers = sorted({result.broker for result in results}) or [column.version]
        seconds = median([result.seconds for result in results])
        numbers = (
            len(specs), len(results), outcomes["named"], "-" if seconds is None else f"{seconds:.0f}",
            outcomes["inconclusive"], outcomes["silent"], words[NOT_APPLICABLE], words[NOT_PLAYED],
        )  # fmt: skip
        span = " to ".join(dict.fromkeys((dates[0], dates[-1]))) if dates else "-"
        rows.append([", ".join(brokers), _HEADS[column.source][1], *map(str, numbers), span])
    yield from _table(heads, rows)
    yield ""


def _by_protocol(shown: Sequence[CoverageColumn]) -> Iterator[str]:
    """One row per protocol of the clients."""
    yield "Named, of the faults that were played, by the protocol of their clients:\n"
    rows = [
        [
            protocol,
            *(_share([spec for spec in column.faults() if spec.protocol == protocol], column) for column in shown),
        ]
        for protocol in PROTOCOLS
    ]
    yield from _table(("clients", *(column.head for column in shown)), rows)
    yield ""


def _share(specs: Sequence[FaultSpec], column: CoverageColumn) -> str:
    outcomes = Counter(found.outcome for spec in specs if (found := column.result(spec)))
    if not outcomes:
        return NOT_PLAYED if specs else NO_FAULT
    alone = sum(column.word(spec) == NAMED_ALONE for spec in specs)
    counts = {"without client": alone, **{word: outcomes[word] for word in ("inconclusive", "silent")}}
    rest = (f", {number} {word}" for word, number in counts.items() if number)
    return f"{outcomes['named']} of {outcomes.total()}{''.join(rest)}"


def _rules(shown: Sequence[CoverageColumn]) -> Iterator[str]:
    """One table per group, one row per rule and protocol of the clients."""
    specs: dict[tuple[str, Protocol], list[FaultSpec]] = defaultdict(list)
    for spec in FAULTS.values():
        specs[spec.rule, spec.protocol].append(spec)
    for group in GROUPS:
        rows = []
        for rule in (name for name, found in pages().items() if found.group == group):
            played = [protocol for protocol in PROTOCOLS if (rule, protocol) in specs] or [PROTOCOLS[0]]
            for protocol in played:
                cells = (_counted(column.word(spec) for spec in specs[rule, protocol]) for column in shown)
                client = protocol if (rule, protocol) in specs else NO_FAULT
                rows.append([f"[{rule}]", client, *cells])
        yield f"## Rules: {group}\n"
        yield from _table(("rule", "clients", *(column.head for column in shown)), rows)
        yield ""


def _counted(words: Iterable[str]) -> str:
    counts = Counter(words)
    if len(counts) > 1:
        del counts[NO_FAULT]
    if counts.total() <= 1:
        return next(iter(counts), NO_FAULT)
    if set(counts) <= {NO_FAULT, NOT_APPLICABLE, NOT_PLAYED}:
        return ", ".join(counts)
    return ", ".join(f"{number} {word}" for word, number in counts.items())


def _silent(shown: Iterable[CoverageColumn]) -> Iterator[str]:
    yield "## Silent\n"
    found = [(column, result) for column, spec, result in _results(shown) if result.outcome == "silent"]
    for column, result in found:
        instead = ", ".join(result.also_said) or "nothing"
        text = f"- {column.head}: `{result.fault}` ([{result.rule}]). Unexpected findings during this time: {instead}."
        yield fill(text, _WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    if not found:
        yield "None."
    yield ""


def _reasons(shown: Sequence[CoverageColumn]) -> Iterator[str]:
    """One section per reason: who gave it, and in which words."""
    yield "## Reasons\n"
    yield "Each with the text of one run, and the rules that gave it.\n"
    for reason, found in sorted(_by_reason(shown).items()):
        rules = ", ".join(f"[{rule}]" for rule in sorted({result.rule for result in found}))
        yield f"### {reason}\n"
        because = min((result.because for result in found), key=len)
        yield fill(because, _WIDTH, break_long_words=False, break_on_hyphens=False) + "\n"
        yield fill(f"Rules: {rules}.", _WIDTH, break_long_words=False, break_on_hyphens=False) + "\n"


def _faults(shown: Sequence[CoverageColumn]) -> Iterator[str]:
    """One row per fault."""
    yield "## Fault by fault\n"
    yield "Seconds begin with the fault in effect. *client*: the finding names the client of the fault.\n"
    rows = [
        [name, f"[{spec.rule}]", spec.protocol, str(spec.nodes), *(_cell(column, spec) for column in shown)]
        for name, spec in sorted(FAULTS.items())
    ]
    yield from _table(("fault", "rule", "clients", "nodes", *(column.head for column in shown)), rows)
    yield ""


_CLIENTS = {"right": ", client", "among": ", one of several clients"}


def _cell(column: CoverageColumn, spec: FaultSpec) -> str:
    found = column.result(spec)
    if found is None or found.outcome != "named":
        return column.word(spec)
    return f"{NAMED}, {found.seconds} s{_CLIENTS.get(found.client, '')}"


def _references(shown: Sequence[CoverageColumn]) -> Iterator[str]:
    """Targets of the links, apart from the tables, so that these can be read as text."""
    yield from (f"[{rule}]: ../diagnosis/catalogue/{rule}.md" for rule in pages())
    yield from (f"[{reason}]: #{reason}" for reason in sorted(_by_reason(shown)))
    yield ""


def _by_reason(shown: Iterable[CoverageColumn]) -> Mapping[str, list[FaultResult]]:
    found: dict[str, list[FaultResult]] = defaultdict(list)
    for _, _, result in _results(shown):
        if result.reason:
            found[result.reason].append(result)
    return found


def _results(shown: Iterable[CoverageColumn]) -> Iterator[tuple[CoverageColumn, FaultSpec, FaultResult]]:
    for column in shown:
        for spec in FAULTS.values():
            result = column.result(spec)
            if result is not None:
                yield column, spec, result


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield a Markdown table whose columns are aligned as text."""
    widths = [max(len(row[at]) for row in (heads, *rows)) for at in range(len(heads))]
    for row in (heads, ["-" * width for width in widths], *rows):
        yield "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"


if __name__ == "__main__":
    sys.stdout.write(page(columns()))
