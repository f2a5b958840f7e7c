"""A document of a backtest as text in 80 columns. Pure."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

from ackscope.format import join, plural, share
from pipeline.answers.moments import format_duration
from pipeline.answers.render import WIDTH
from pipeline.backtest.document import APPROXIMATE, EXACT, NOT_REPLAYABLE

Document = Mapping[str, Any]

_NAME = 32
_MOST_RULES, _MOST_PROPOSALS, _MOST_LACKS = 12, 10, 6


def render(document: Document) -> str:
    """Return the whole report."""
    return "\n".join(lines(document))


def lines(document: Document) -> Iterator[str]:
    """Yield its lines."""
    yield from _wrap(_asked(document))
    yield from _wrap(_data(document["data"]))
    yield ""
    yield from _table(document["settings"])
    yield ""
    yield from _wrap(explanation(document))
    yield ""
    yield from _proposals(document)
    yield ""
    yield from _rules(document["rules"])


def _asked(document: Document) -> str:
    asked, data = document["asked"], document["data"]
    between = f"{_minute(data['first'])} to {_minute(data['last'])} UTC"
    return f"backtest of {join(asked['rules'])} in {document['cluster']}, {between}"


def _data(data: Document) -> str:
    parts = [
        f"{data['landing_hours']} h of landing rows, every change",
        f"{data['minute_hours']} h of minutes, one reading a minute",
        f"{data['missing_hours']} h without either",
    ]
    shown = [
        text for text, key in zip(parts, ("landing_hours", "minute_hours", "missing_hours"), strict=True) if data[key]
    ]
    followed = [
        f"{share(data[f'{name}_recorded'])} of the {name} were recorded"
        for name in ("channels", "consumers")
        if data[f"{name}_recorded"] is not None and data[f"{name}_recorded"] < 0.995
    ]
    return "; ".join((f"data: {', '.join(shown)}", *followed))


def explanation(document: Document) -> str:
    """Return what the columns of the table mean."""
    asked, truths = document["asked"], document["data"]["truths"]
    of = "incidents" if asked["truth"] != "recorded episodes" else "recorded episodes"
    brief = f" of at least {format_duration(asked['brief_seconds'])}" if asked["brief_seconds"] else ""
    least = "finding" if asked["severity"] == "info" else f"{asked['severity']} or worse"
    return (
        f"begins: a {least} began. false: where none of the {plural(truths, of.removesuffix('s'))}{brief} is; per week "
        "and cluster. found, lost: of these. after: from their beginning to the first begin, median. again: begins "
        "within 1 h after the same finding ended."
    )


def _table(settings: Sequence[Document]) -> Iterator[str]:
    yield f"{'setting':<{_NAME}}begins  false  /week  found  lost   after  again"
    for it in settings:
        name = short(it["setting"])
        if len(name) >= _NAME:
            yield name
            name = ""
        yield (
            f"{name:<{_NAME}}{it['begins']:>6} {it['false']:>6} {it['false_a_week']:>6.1f} {it['found']:>6} "
            f"{it['lost']:>5} {after(it):>7} {it['again']:>6}"
        )


def after(score: Document) -> str:
    """Return the time from the beginning of a thing to its first report, as text."""
    earlier = score["earlier_seconds"]
    if earlier is None:
        return "-"
    return format_duration(-earlier) if earlier <= 0 else f"-{format_duration(earlier)}"


def short(name: str) -> str:
    """Return the name of a setting without the groups of its thresholds."""
    return ", ".join(
        each.partition("=")[0].rpartition(".")[2] + each[each.find("=") :] if "=" in each else each
        for each in name.split(", ")
    )


def _proposals(document: Document) -> Iterator[str]:
    proposals = document["proposals"]
    if not proposals:
        if len(document["settings"]) > 1:
            yield from _wrap("no proposal: no setting reports less for nothing without losing anything")
        else:
            yield from _wrap("compare thresholds with --set, such as --set slow_for=120,300")
        return
    yield from _wrap("proposed, in the configuration of the exporter, under `diagnosis:`; the row above is its replay")
    yield ""
    yield from (f"    {line}" for line in _yaml(proposals[:_MOST_PROPOSALS]))
    yield ""
    for it in proposals[:_MOST_PROPOSALS]:
        yield from _wrap(_cost(it))
    if len(proposals) > _MOST_PROPOSALS:
        yield f"{len(proposals) - _MOST_PROPOSALS} more, see --json"


def with_text(document: Document) -> dict[str, Any]:
    """Return the document with the parts that a page shows as they are: sentences, and the proposal as YAML."""
    sentences = [_cost(it) for it in document["proposals"]] + [rule_line(it) for it in document["rules"]]
    text = "\n".join(_yaml(document["proposals"])) if document["proposals"] else None
    return {**document, "told": sentences, "meaning": explanation(document), "configuration": text}


def _yaml(proposals: Sequence[Document]) -> Iterator[str]:
    everywhere = [it["values"] for it in proposals if not it["queues"]]
    overrides = [{"queues": it["queues"], "values": it["values"]} for it in proposals if it["queues"]]
    found: dict[str, Any] = {}
    for values in everywhere:
        for group, named in values.items():
            if group:
                found.setdefault(group, {}).update(named)
            else:
                found.update(named)
    if overrides:
        found["overrides"] = overrides
    text = yaml.safe_dump({"diagnosis": found}, sort_keys=False, default_flow_style=None, width=WIDTH - 4)
    yield from text.splitlines()


def _cost(it: Document) -> str:
    best = it["best"]
    where = f"queues {it['queues']}" if it["queues"] else "all objects"
    later = best["later_seconds"]
    costs = [f"{best['false']} false instead of {it['false_now']}", f"{best['lost']} lost"]
    costs.append("no incident of these" if later is None else f"{format_duration(later)} later")
    cheaper = [each for each in it["others"] if each["false"] < best["false"]]
    text = f"{where}: {', '.join(costs)}"
    if cheaper:
        least = min(cheaper, key=lambda each: (each["lost"], each["false"]))
        text += f"; {short(least['setting'])}: {least['false']} false, but {least['lost']} lost"
    return text


def _rules(rules: Sequence[Document]) -> Iterator[str]:
    for kind in (EXACT, APPROXIMATE, NOT_REPLAYABLE):
        mine = [it for it in rules if it["replay"] == kind]
        for it in mine[:_MOST_RULES]:
            yield from _wrap(rule_line(it))
        if len(mine) > _MOST_RULES:
            yield from _wrap(f"{len(mine) - _MOST_RULES} more rules are {kind}, see --json")


def rule_line(it: Document) -> str:
    """Return whether a rule can be replayed, and how well the replay agrees with what was recorded."""
    lacks = join(it["lacks"], _MOST_LACKS)
    if it["replay"] == NOT_REPLAYABLE:
        return f"{it['rule']}: not replayable: needs {lacks}"
    if it["recorded"]:
        others = f" and {it['unrecorded']} that were not recorded" if it["unrecorded"] else ""
        agrees = f"the replay has {it['agreed']} of {plural(it['recorded'], 'recorded episode')}{others}"
    else:
        agrees = f"no episode was recorded, the replay has {it['unrecorded']} (of any severity)"
    without = f"; approximate, without {lacks}" if it["replay"] == APPROXIMATE else ""
    return f"{it['rule']}: {agrees}{without}"


def _minute(text: str | None) -> str:
    return "?" if text is None else text[:16].replace("T", " ")


def _wrap(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False)
