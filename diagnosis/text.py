"""Renders findings as text, from the catalogue. The only place where data becomes sentences.

Templates are Jinja2, sandboxed. They see the facts of the finding by name, and `subject`, `severity`, `certainty`,
`seen_seconds`, `version` (of the broker, `(4, 3)`; None if unknown), `management` (its URL), the filters
below, and the macros of `catalogue/shared/*.jinja`. A fact that is not there is an error, not an empty text.
"""

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Self
from urllib.parse import quote

from jinja2 import StrictUndefined, Template
from jinja2.sandbox import ImmutableSandboxedEnvironment

from ackscope import format as fmt
from ackscope.baselines import NotYet
from ackscope.findings import (
    DiagnosisResult,
    Evidence,
    Finding,
    Impact,
    Inconclusive,
    Source,
    Suppressed,
    Unit,
)
from ackscope.measures import band_range
from ackscope.reports import EvidenceReport, FindingReport, InconclusiveReport, Step, SuppressedReport, runbook
from ackscope.snapshot import Snapshot
from diagnosis.pages import EvidenceTemplate, Page, StepTemplate, Variant, Variants, macros, pages, shared
from diagnosis.purpose import mqtt_clients
from diagnosis.usual import band_facts

MANAGEMENT = "http://MANAGEMENT_HOST:15672"
"""Placeholder for the management URL in commands if the URL is unknown."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """Facts of the cluster that commands use besides those of the finding.

    Attributes:
        version: major and minor version of the broker; None if unknown.
        management: management URL without credentials and without a trailing slash.
        has_management: False if only the Prometheus endpoints can be reached, so that a step that asks the management
            API cannot be followed.
    """

    version: tuple[int, int] | None = None
    management: str = MANAGEMENT
    has_management: bool = True

    @classmethod
    def of(cls, snapshot: Snapshot | None, management: str) -> Self:
        """Return the facts of the cluster of a snapshot, whose management API has this URL."""
        metrics = snapshot.prometheus.value if snapshot is not None else None
        return cls(
            version=snapshot.version if snapshot is not None else None,
            management=management,
            has_management=metrics is None or not metrics.alone,
        )


_UNITS: Mapping[Unit, Callable[[float], str]] = {
    Unit.NONE: fmt.number,
    Unit.SECONDS: fmt.duration,
    Unit.BYTES: fmt.size,
    Unit.MESSAGES: lambda value: fmt.plural(value, "message"),
    Unit.PER_SECOND: fmt.rate,
    Unit.SHARE: fmt.share,
}


_OVER = "{{ over(since) }}"
"""What is added to the summary of what has ended."""

_LOSES = "{{ loses(summary, more) }}"
"""What is added to the summary of a cause by which messages are lost: that of the loss, and how many more there are."""

_PROCESSES = "{{ known_by_process(processes) }}"
"""What is added to the summary where the broker lists no clients, so that channels are known by their process."""

_FIND_CLIENT = StepTemplate(text="{{ find_client_text(processes) }}", command="{{ find_client_command(processes) }}")
"""The first step then."""


def render(finding: Finding, cluster: Cluster = Cluster()) -> FindingReport:
    """Render a finding and its consequences as text."""
    page, facts = pages()[finding.rule], _facts(finding, cluster)
    steps = tuple(_steps(page, facts, management=cluster.has_management))
    consequences = tuple(render(each, cluster) for each in finding.consequences)
    return FindingReport(
        rule=finding.rule,
        severity=finding.severity,
        subject=finding.subject,
        since=finding.since,
        summary=_with_loss(_summary(page, finding, facts), page.impact, consequences),
        cause=_all(page.cause, facts),
        evidence=tuple(_evidence(page, each, facts) for each in finding.evidence),
        next_steps=tuple(str(step) for step in steps),
        runbook=runbook(finding.rule),
        last_seen=finding.last_seen,
        over_since=finding.over_since,
        consequences=consequences,
        steps=steps,
        facts=finding.facts,
        involved=finding.involved,
        impact=finding.impact,
        certainty=finding.certainty,
        seen_seconds=finding.seen_seconds,
        if_it_lasts=finding.if_it_lasts,
    )


def render_summary(finding: Finding) -> str:
    """Render only the summary of a finding, for places that show one line."""
    return _summary(pages()[finding.rule], finding, _facts(finding, Cluster()))


def _summary(page: Page, finding: Finding, facts: Mapping[str, Any]) -> str:
    text = _first(page.summary, facts)
    if "processes" in facts:
        text = f"{text} {_text(_PROCESSES, facts)}"
    return f"{text} {_text(_OVER, {'since': finding.over_since})}" if finding.is_over else text


def _with_loss(summary: str, impact: Impact, consequences: Sequence[FindingReport]) -> str:
    """Return the summary of a cause with that of the first loss that it explains: a loss is no detail."""
    losses = [each.summary for each in consequences if each.impact is Impact.LOSS]
    if impact is Impact.LOSS or not losses:
        return summary
    return f"{summary} {_text(_LOSES, {'summary': losses[0], 'more': len(losses) - 1})}"


def render_inconclusive(each: Inconclusive) -> InconclusiveReport:
    """Render as text why a rule is inconclusive."""
    text = pages()[each.rule].inconclusive.get(each.reason) or shared().inconclusive[each.reason]
    return InconclusiveReport(
        rule=each.rule,
        because=_first(text.because, each.facts),
        needs=_first(text.fix, each.facts),
        permanent=each.permanent,
        reason=each.reason,
        facts=each.facts,
    )


def render_suppressed(each: Suppressed) -> SuppressedReport:
    """Render as text why a finding is suppressed."""
    text = pages()[each.rule].suppressed.get(each.reason) or shared().suppressed[each.reason]
    because = _first(text, {**each.facts, "subject": each.subject})
    return SuppressedReport(rule=each.rule, subject=each.subject, because=because, reason=each.reason, facts=each.facts)


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosisReport:
    """The result of a diagnosis as text (see `ackscope.findings.DiagnosisResult`)."""

    cluster: str
    at: str
    findings: tuple[FindingReport, ...]
    inconclusive: tuple[InconclusiveReport, ...]
    suppressed: tuple[SuppressedReport, ...]
    checked: tuple[str, ...]


def render_result(result: DiagnosisResult, cluster: Cluster = Cluster()) -> DiagnosisReport:
    """Render a whole result as text."""
    return DiagnosisReport(
        cluster=result.cluster,
        at=result.at,
        findings=tuple(render(each, cluster) for each in result.findings),
        inconclusive=tuple(map(render_inconclusive, result.inconclusive)),
        suppressed=tuple(map(render_suppressed, result.suppressed)),
        checked=result.checked,
    )


def no_band_text(found: NotYet) -> str:
    """Render as text why there is no baseline."""
    macro: Any = _environment().globals["no_band"]
    return " ".join(str(macro(band_facts(found, ""))).split())


def source_text(source: Source) -> str:
    """Return where a value was read, such as `/api/queues messages_ready, message_stats.ack; probe rtt declare`."""
    paths: dict[str, list[str]] = {}
    for each in source:
        paths.setdefault(each.path, []).extend([each.field] if each.field else [])
    return "; ".join(f"{path} {', '.join(names)}".rstrip() for path, names in paths.items())


def _facts(finding: Finding, cluster: Cluster) -> dict[str, Any]:
    """Return everything that templates of a finding may name."""
    return {
        **finding.facts,
        "subject": finding.subject,
        "severity": finding.severity.value,
        "certainty": finding.certainty.value,
        "seen_seconds": finding.seen_seconds,
        "version": cluster.version,
        "management": cluster.management,
    }


def _evidence(page: Page, item: Evidence, facts: Mapping[str, Any]) -> EvidenceReport:
    template: EvidenceTemplate = page.evidence.get(item.key) or shared().evidence[item.key]
    known = {**facts, **item.facts, "value": item.value}
    amount = item.value if isinstance(item.value, int | float) and not isinstance(item.value, bool) else None
    if template.value is not None:
        value = _first(template.value, known)
    elif amount is not None:
        value = _UNITS[item.unit](amount)
    else:
        value = fmt.ABSENT if item.value is None else str(item.value)
    return EvidenceReport(
        what=_first(template.label, known),
        value=value,
        source=source_text(item.source),
        expected=_first(template.expected, known),
        key=item.key,
        amount=None if amount is None else float(amount),
        unit=item.unit,
        fields=item.source,
    )


def _steps(page: Page, facts: Mapping[str, Any], *, management: bool) -> Iterable[Step]:
    steps = (_FIND_CLIENT, *page.steps) if "processes" in facts else page.steps
    for each in steps:
        step = StepTemplate(text=each) if isinstance(each, str) else each
        if not management and step.command and "management" in step.command:
            continue
        if _applies(step.when, facts):
            command = _command(step.command, facts) if step.command else None
            yield Step(text=_text(step.text, facts), command=command)


def _variants(variants: Variants) -> tuple[Variant, ...]:
    several = (variants,) if isinstance(variants, str) else variants
    return tuple(Variant(text=each) if isinstance(each, str) else each for each in several)


def _first(variants: Variants, facts: Mapping[str, Any]) -> str:
    if isinstance(variants, str):
        return _text(variants, facts)
    return next((_text(each.text, facts) for each in _variants(variants) if _applies(each.when, facts)), "")


def _all(variants: Variants, facts: Mapping[str, Any]) -> str:
    return " ".join(_text(each.text, facts) for each in _variants(variants) if _applies(each.when, facts))


def _applies(condition: str | None, facts: Mapping[str, Any]) -> bool:
    return condition is None or bool(_condition(condition)(**facts))


def _text(template: str, facts: Mapping[str, Any]) -> str:
    """Render a template to one line; YAML and macros may contain line breaks anywhere."""
    if "{" not in template:
        return template
    return " ".join(_template(template).render(facts).split())


def _command(template: str, facts: Mapping[str, Any]) -> str:
    return _template(template).render(facts).strip()


# ---------------------------------------------------------------- templates


@cache
def _environment() -> ImmutableSandboxedEnvironment:
    environment = ImmutableSandboxedEnvironment(
        undefined=StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "duration": fmt.duration,
        "size": fmt.size,
        "number": fmt.number,
        "rate": fmt.rate,
        "share": fmt.share,
        "count": fmt.plural,
        "between": _between,
        "some": fmt.join,
        "quoted": repr,
        "all_quoted": lambda items: [repr(item) for item in items],
        "mqtt_clients": mqtt_clients,
        "sh": lambda value: _sh(str(value)),
        "url": lambda value: quote(str(value), safe=""),
        "regex": _regex,
    }
    module = environment.from_string(macros()).module
    environment.globals |= {name: macro for name, macro in vars(module).items() if not name.startswith("_")}
    return environment


def _between(band: Mapping[str, Any]) -> str:
    """Return the edges of a band (`diagnosis.usual.band_facts`) with their unit."""
    return band_range(band["low"], band["high"], band["unit"])


def _regex(text: str) -> str:
    """Return a regular expression, in the syntax of policies, that matches exactly this text."""
    return "^" + "".join(f"\\{char}" if char in r"\.^$|?*+()[]{}" else char for char in str(text)) + "$"


def _sh(text: str) -> str:
    """Return an argument of a shell command that can be copied, also where a reader does not see all of its characters.

    `$'...'` with the bytes of these characters as octal numbers means the same in bash, ksh, zsh and busybox, whatever
    the locale is.
    """
    if text.isprintable():
        return shlex.quote(text)
    return "$'" + "".join(map(_in_dollar_quotes, text)) + "'"


def _in_dollar_quotes(character: str) -> str:
    if character in "\\'":
        return f"\\{character}"
    return character if character.isprintable() else "".join(f"\\{byte:03o}" for byte in character.encode())


@cache
def _template(source: str) -> Template:
    template = _environment().from_string(source)
    # Each rendering copies the globals; Jinja2 gives them as a ChainMap, whose copy takes longer than the rendering.
    template.globals = dict(template.globals)
    return template


@cache
def _condition(source: str) -> Callable[..., Any]:
    return _environment().compile_expression(source, undefined_to_none=False)
