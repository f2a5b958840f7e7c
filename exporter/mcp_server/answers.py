"""Answers of the tools, from documents of the API. Pure."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

Document = dict[str, Any]

SEVERITIES = ("critical", "warning", "info")


def listed(clusters: Iterable[Mapping[str, Any]], severity: str | None) -> Document:
    """The findings of all clusters, worst first, with what `explain` needs to identify each."""
    entries = [
        {
            "cluster": cluster["cluster"],
            "rule": it["rule"],
            "severity": it["severity"],
            "subject": identity(it["subject"]),
            "summary": it["summary"],
            "since": it["since"],
            "do_first": it["next_steps"][0] if it["next_steps"] else None,
            "explains_others": len(it["consequences"]),
            **({"muted_until": it["triage"]["muted_until"]} if (it.get("triage") or {}).get("muted") else {}),
            **({"if_it_lasts": it["if_it_lasts"]} if it.get("if_it_lasts") else {}),
        }
        for cluster in clusters
        for it in cluster["findings"]
        if severity is None or it["severity"] == severity
    ]
    entries.sort(key=lambda it: ("muted_until" in it, SEVERITIES.index(it["severity"])))
    return {
        "counts": {name: sum(it["severity"] == name for it in entries) for name in SEVERITIES},
        "findings": entries,
        "clusters": [health(it) for it in clusters],
    }


def health(cluster: Mapping[str, Any]) -> Document:
    """Whether the diagnosis of a cluster can be relied on."""
    return {
        "cluster": cluster["cluster"],
        "broker": cluster["broker"],
        "data_age_seconds": _rounded(cluster["age_seconds"]),
        "rules_checked": len(cluster["checked"]),
        "inconclusive": [
            f"{it['rule']}: {it['because']} {it['needs']}" for it in cluster["cannot_tell"] if not it["permanent"]
        ],
    }


def explained(cluster: str, finding: Mapping[str, Any], runbook: str) -> Document:
    """One finding in full: cause, evidence, steps."""
    return {
        "cluster": cluster,
        "rule": finding["rule"],
        "severity": finding["severity"],
        "certainty": finding["certainty"],
        "impact": finding["impact"],
        "subject": identity(finding["subject"]),
        "since": finding["since"],
        "summary": finding["summary"],
        "cause": finding["cause"],
        "steps": [
            {"do": it["text"], **({"command": it["command"]} if it["command"] else {})} for it in finding["steps"]
        ],
        "evidence": [
            {"what": it["what"], "value": it["value"], "expected": it["expected"], "source": it["source"]}
            for it in finding["evidence"]
        ],
        "also_explains": [f"{it['rule']}: {it['summary']}" for it in finding["consequences"]],
        "involved": {kind: names for kind, names in finding["involved"].items() if names},
        "triage": finding.get("triage"),
        "runbook": runbook,
    }


def select(
    clusters: Sequence[Mapping[str, Any]], rule: str | None, name: str | None, vhost: str | None, kind: str | None
) -> list[tuple[str, Mapping[str, Any]]]:
    """The findings that match, worst first, (cluster, finding); consequences too if something is given."""
    found = [(it["cluster"], finding) for it in clusters for finding in it["findings"]]
    if rule is None and name is None:
        return sorted(found, key=lambda it: SEVERITIES.index(it[1]["severity"]))
    every = [(cluster, each) for cluster, finding in found for each in _flat(finding)]
    return [
        (cluster, it)
        for cluster, it in every
        if rule in {None, it["rule"]}
        and name in {None, it["subject"]["name"]}
        and vhost in {None, it["subject"]["vhost"]}
        and kind in {None, it["subject"]["kind"]}
    ]


def about(clusters: Iterable[Mapping[str, Any]], matches: Callable[[Mapping[str, Any]], bool]) -> list[Document]:
    """One line for each finding that involves an object."""
    return [
        {"cluster": it["cluster"], "rule": each["rule"], "severity": each["severity"], "summary": each["summary"]}
        for it in clusters
        for finding in it["findings"]
        for each in _flat(finding)
        if matches(each)
    ]


def of_queue(vhost: str, name: str) -> Callable[[Mapping[str, Any]], bool]:
    """Whether a finding is about a queue or involves it."""

    def matches(finding: Mapping[str, Any]) -> bool:
        subject = finding["subject"]
        queues = {(it["vhost"], it["name"]) for it in finding["involved"]["queues"]}
        return (vhost, name) in queues or ("queue", vhost, name) == (subject["kind"], subject["vhost"], subject["name"])

    return matches


def of_client(text: str) -> Callable[[Mapping[str, Any]], bool]:
    """Whether a finding involves a client, connection or channel whose name contains a text."""

    def matches(finding: Mapping[str, Any]) -> bool:
        involved = finding["involved"]
        names = [*involved["clients"], *involved["connections"], *involved["channels"], finding["subject"]["name"]]
        return any(text.lower() in str(name).lower() for name in names)

    return matches


def lines(found: Iterable[Mapping[str, Any]]) -> Document:
    """Series of the API as first, highest and latest value, and the seconds between the first and the latest."""
    shown = {}
    for series in found:
        points = [point for point in series["line"] if point[1] is not None]
        if points:
            values = [point[1] for point in points]
            shown[series["name"]] = {
                "first": _rounded(values[0]),
                "highest": _rounded(max(values)),
                "latest": _rounded(values[-1]),
                "over_seconds": round(points[-1][0] - points[0][0]),
            }
    return shown


def rows(document: Mapping[str, Any]) -> list[Document]:
    """A list of the API (`/api/v1/columns`) as one object each, without what is unknown."""
    columns = document["columns"]
    number = document["rows"] or 0
    return [
        {name: _rounded(values[row]) for name, values in columns.items() if values[row] not in (None, "", [])}
        for row in range(number)
    ]


def identity(subject: Mapping[str, Any]) -> Document:
    """A subject without what it lacks."""
    return {key: value for key, value in subject.items() if value is not None}


def _flat(finding: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [finding, *(each for it in finding["consequences"] for each in _flat(it))]


def _rounded(value: Any) -> Any:
    return round(value, 3) if isinstance(value, float) else value
