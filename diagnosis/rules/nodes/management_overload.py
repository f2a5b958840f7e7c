"""management-overload (D12): the management API answers late or not at all, while the broker itself works.

Its statistics are gathered for whoever asks: many objects, or eager monitoring, and each answer takes longer.
Source: https://www.rabbitmq.com/docs/management#statistics
"""

from collections.abc import Iterator

from ackscope.findings import Severity
from ackscope.reports import EvidenceReport, FindingReport, runbook
from diagnosis.contract import RuleResult, View
from diagnosis.rules.nodes.seen import of_cluster
from diagnosis.rules.nodes.silence import errors, is_mute, is_silent, is_unanswered, is_well, of_api
from diagnosis.words import amount, lasting, some

NAME = "management-overload"
_LISTS = ("overview", "nodes", "queues", "channels", "consumers", "connections")
_SURE = 15.0
"""Seconds of silence after which a probe of a hung node would have told."""
_ONE_PAGE = 500
"""Queues from which on their list is read page by page, and takes long without being slow."""


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge the API by how long its answers take, and by those that never came."""
    failed = {name: error for name, error in errors(view, _LISTS).items() if is_mute(error)}
    slow = {} if failed else _slow(view)
    if not failed and not slow:
        return
    if failed and not _is_the_api(view, failed):
        return
    yield _finding(view, failed, slow)


def _is_the_api(view: View, failed: dict[str, str]) -> bool:
    """Whether it is the API that hangs, and not the node, nor another node of its cluster."""
    if is_silent(view):
        # With nothing read at all only a client that is served proves that the node lives.
        long = (view.age("health") or 0.0) >= _SURE
        return long and any(map(is_well, view.outcomes)) and not any(map(is_unanswered, view.outcomes))
    latest = view.window.latest
    several = latest is not None and len(latest.nodes.value or ()) > 1
    # A hung peer holds up what asks all nodes: the overview and the nodes; health checks answer at once.
    return not (several and "nodes" in failed)


def _slow(view: View) -> dict[str, list[float]]:
    """Parts whose last readings all took too long: seconds of each, oldest first."""
    limits, found = view.thresholds.nodes, {}
    for name in _LISTS:
        if name == "queues" and len(view.all_queues) > _ONE_PAGE:
            continue
        seconds: dict[float, float] = {}
        for snapshot in view.window.snapshots:
            part = snapshot.parts[name]
            if part.at is not None and part.seconds is not None:
                seconds[part.at.mono] = part.seconds
        lately = list(seconds.values())[-limits.overload_readings :]
        if lately and view.fresh(name) and min(lately[-2:]) > limits.overload_seconds:
            found[name] = lately
    return found


def _finding(view: View, failed: dict[str, str], slow: dict[str, list[float]]) -> FindingReport:
    limits = view.thresholds.nodes
    enough = any(
        min(each) > limits.overload_seconds and len(each) >= limits.overload_readings for each in slow.values()
    )
    late = max((age for name in failed if (age := view.age(name)) is not None), default=0.0)
    lasted = enough or late >= limits.overload_readings * limits.overload_seconds
    what = (
        f"gives no answer about {some(sorted(failed), 4)}"
        if failed
        else f"takes {lasting(max(max(each) for each in slow.values()))} for an answer about {some(sorted(slow), 4)}"
    )
    served = [outcome for outcome in view.outcomes if is_well(outcome)]
    evidence = [*of_api(view, sorted(failed))][:3]
    evidence += [
        EvidenceReport(
            what=f"reading {name} took",
            value=", ".join(f"{each:.1f} s" for each in seconds),
            expected=f"below {lasting(limits.overload_seconds)}",
            source="management API",
        )
        for name, seconds in sorted(slow.items())
    ]
    checks = view.age("health")
    if checks is not None and not view.error("health"):
        evidence.append(
            EvidenceReport(what="health checks", value=f"answered {lasting(checks)} ago", source="/api/health/checks")
        )
    evidence += _state(view)
    if served:
        value = f"{amount(len(served), 'stream')} of messages and questions served"
        evidence.append(EvidenceReport(what="probes over AMQP", value=value, source="probes"))
    since = view.window.readings(min(failed)) if failed else ()
    return FindingReport(
        rule=NAME,
        severity=Severity.WARNING if lasted else Severity.INFO,
        subject=of_cluster(view),
        since=since[-1].at.iso() if since else None,
        summary=f"The management API {what}; " + ("clients are served" if served else "the node itself answers"),
        cause=(
            "The processes that gather statistics do not keep up with those who ask: too many objects, too many "
            "dashboards and exporters, or a list that is asked for whole. What is shown may be old."
        ),
        evidence=tuple(evidence),
        next_steps=(
            "find who asks: the management listener's access log (management.http_log_dir), or ss -tn 'sport = :15672'",
            "stop or slow down the eager ones; ask lists page by page, with columns=",
            "gather less often: collect_statistics_interval = 30000 in rabbitmq.conf; management.rates_mode = none",
            "start its statistics anew: curl -u USER -X DELETE http://MANAGEMENT_HOST:15672/api/reset",
            "later: fewer queues and connections; the Prometheus endpoint (port 15692) for dashboards",
        ),
        runbook=runbook(NAME),
    )


def _state(view: View) -> list[EvidenceReport]:
    """How much there is to tell of, and what the statistics take."""
    overview = view.overview
    counts = [
        amount(number, noun)
        for number, noun in (
            (overview.queues if overview else None, "queue"),
            (overview.connections if overview else None, "connection"),
            (overview.channels if overview else None, "channel"),
        )
        if number is not None
    ]
    evidence = (
        [EvidenceReport(what="to tell of", value=", ".join(counts), source="/api/overview object_totals")]
        if counts
        else []
    )
    backlog = sum(node.backlog or 0 for node in view.nodes)
    if backlog:
        value = f"{amount(backlog, 'object')} to forget"
        evidence.append(EvidenceReport(what="backlog", value=value, source="/api/nodes metrics_gc_queue_length"))
    return evidence
