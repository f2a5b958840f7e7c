"""connection-churn (X01): an application connects, disconnects and connects again in a loop.

Each cycle costs a TCP and perhaps a TLS handshake, a login, processes and file handles on the broker. A ratio to the
number of open connections would miss the most common case, in which only two or three are open at any time.

A loop in which nothing is published, delivered or acknowledged is urgent sooner, and at a lower rate, if a queue of its
virtual host grows without a consumer: the application probably gets an error each time before it can consume. A
deployment does not come so many times in a row. Clients of MQTT consume from no such queue, and no counter has what
they move. The logins show the protocol of a loop whose connections are never listed.

A broker without statistics lists none, so the loop is always judged like one whose connections are too brief.

Two devices with one client id of MQTT look like this: each connection ends the other one. The API lists the id with the
connection only, or in the name of its queue where it subscribes (consumer-flapping). The log names it.
Source: https://www.rabbitmq.com/docs/connections#high-connection-churn
"""

from collections.abc import Iterator
from dataclasses import replace

from ackscope.clock import Instant
from ackscope.findings import Certainty, Evidence, Fact, Finding, Involved, Severity, Subject, Unit, source
from ackscope.snapshot import Connection, Queue
from diagnosis.churn import ChurnRate, churn_rate
from diagnosis.churn_loops import ChurnLoop, churn_loops, cluster_cycles, identity
from diagnosis.contract import RuleResult, View
from diagnosis.preconditions import unread
from diagnosis.rules.clients._shared.connections import age_seconds
from diagnosis.rules.clients._shared.locked import locked_facts, locked_names
from diagnosis.rules.clients._shared.loop_logins import MQTT, LoopLogins, loop_logins, shares_queues
from diagnosis.rules.clients._shared.loops import (
    FEW_MESSAGES,
    MIN_PER_CYCLE,
    MOST_CONNECTIONS,
    loop_evidence,
    loop_facts,
    loop_involved,
)
from diagnosis.rules.clients._shared.starved import of_one_vhost, starved_queues
from diagnosis.rules.cluster._shared.link_flow import link_client
from diagnosis.rules.consumers._shared.comings import seen_connections
from diagnosis.rules.queues._shared.queue import MAX_NAMED, queue_refs
from diagnosis.rules.topology.feature_denied import REFUSES_DECLARES

NAME = "connection-churn"

_IN_VAIN, _IN_VAIN_SECONDS = 10, 30.0
"""Cycles in a row without a message, and seconds, after which no deployment looks the same."""
_STAYS, _STAYS_CYCLES = 30.0, 3.0
"""Seconds, and cycles, for which a connection must last to be none of those that come and go."""
_SETTLED = 8.0
"""Seconds after which the broker has counted the channels of a connection: it refreshes its statistics every 5 s."""


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every application whose connections come and go; the cluster where none of them is ever listed."""
    lacking = tuple(unread(NAME, view, ("connections", "channels")))
    yield from lacking
    if lacking and not view.lists_no_clients:
        return
    limits = view.thresholds.clients
    known = [closing for closing in churn_loops(view) if closing.whole]
    cycles = cluster_cycles(view)
    idle = cycles is not None and cycles.messages < FEW_MESSAGES
    for closing in known:
        if closing.lasts >= view.thresholds.early and closing.rate >= limits.connection_churn_slow:
            waits = idle and shares_queues(view, closing.connection) and not link_client(closing.connection)
            starved = starved_queues(view, closing.connection.vhost, closing.since) if waits else ()
            yield _client_finding(view, closing, starved)
    total = churn_rate(view, "connection")
    if known or total is None:
        return
    logins = loop_logins(view, total)
    waits = idle and logins.consuming >= limits.vain_rate
    starved = starved_queues(view, None, total.since) if waits else ()
    slowest = limits.vain_rate if starved or logins.protocol == MQTT else limits.connection_churn_fast
    locked = _locked(view, None, total.since)
    if locked:
        slowest = limits.connection_churn_slow
    if total.lasts >= view.thresholds.early and total.rate >= slowest:
        yield _cluster_finding(view, total, logins, starved, locked)


def _locked(view: View, vhost: str | None, since: Instant) -> tuple[Queue, ...]:
    """Return the exclusive queues that a loop may ask for in vain: it declares, creates none, and moves no message."""
    cycles = cluster_cycles(view)
    if cycles is None or cycles.connection_declares < MOST_CONNECTIONS or cycles.messages >= FEW_MESSAGES:
        return ()
    return locked_names(view, vhost, since)


def _fails(view: View, rate: float, starved: tuple[Queue, ...]) -> bool:
    """Return whether the loop is that of an application that should consume, and does not get that far."""
    return bool(starved) and rate >= view.thresholds.clients.vain_rate


def _warning_rate(view: View) -> float:
    """Return the connections per second from which on a loop is a warning if it lasts; more where many are open."""
    limits = view.thresholds.clients
    connections = max((view.overview.connections if view.overview else None) or 1, 1)
    return max(limits.connection_churn_fast, limits.connection_churn_share * connections)


def _warning_after(view: View, rate: float, starved: tuple[Queue, ...]) -> float | None:
    """Return after how many seconds the loop is a warning; None if it never is."""
    if _fails(view, rate, starved):
        return min(view.thresholds.publishers.closing_after, max(_IN_VAIN_SECONDS, _IN_VAIN / rate))
    return view.thresholds.clients.connection_churn_for if rate >= _warning_rate(view) else None


def _severity(seconds: float, after: float | None) -> Severity:
    return Severity.WARNING if after is not None and seconds >= after else Severity.INFO


def _certainty(seconds: float, after: float | None) -> Certainty:
    return Certainty.EARLY if after is not None and seconds < after else Certainty.LIKELY


def _denies_global_prefetch(view: View, starved: tuple[Queue, ...]) -> bool:
    """Return whether the broker refuses a prefetch for a whole channel of a client that asks for such a queue.

    A quorum queue does. A broker that denies the feature accepts the request, and applies it to each consumer.
    """
    cycles, feature = cluster_cycles(view), next((each for each in view.features if each.name == "global_qos"), None)
    if cycles is None or (cycles.channels or 0.0) < MIN_PER_CYCLE:
        return False
    denied = feature.state == "denied" if feature and feature.state else view.version is None or view.version >= (4, 3)
    return not denied and any(queue.type == "quorum" for queue in starved)


def _limit_facts(view: View, rate: float, seconds: float, starved: tuple[Queue, ...]) -> dict[str, Fact]:
    cycles = cluster_cycles(view)
    denied = sorted(each.name for each in view.features if each.deprecated and each.state == "denied")
    return {
        "warning_after_seconds": _warning_after(view, rate, starved),
        "warning_rate": _warning_rate(view),
        "log_node": next((node.name for node in view.nodes if node.running), None),
        "in_vain": round(seconds * rate) if starved else 0,
        "starved": sorted(queue.name for queue in starved)[:MAX_NAMED],
        "declares": cycles is not None and cycles.connection_declares >= MOST_CONNECTIONS,
        "denies_global_prefetch": _denies_global_prefetch(view, starved),
        "denied_declares": [name for name in denied if name in REFUSES_DECLARES],
    }


def _locked_facts(view: View, locked: tuple[Queue, ...]) -> dict[str, Fact]:
    return {"locked": [locked_facts(view, queue) for queue in locked[:MAX_NAMED]], "locked_count": len(locked)}


def _client_finding(view: View, closing: ChurnLoop, starved: tuple[Queue, ...]) -> Finding:
    after = _warning_after(view, closing.rate, starved)
    return Finding(
        rule=NAME,
        severity=_severity(closing.lasts, after),
        subject=closing.subject,
        since=closing.since.iso(),
        facts={
            **loop_facts(closing),
            "mqtt": closing.connection.client_id is not None,
            "protocol": None,
            "seen_ids": [],
            "no_lists": False,
            "left_open": len(_left_open(view, closing)),
            "stay_open": len(_stay_open(view, closing)),
            **_limit_facts(view, closing.rate, closing.lasts, starved),
            **_locked_facts(view, _locked(view, closing.connection.vhost, closing.since)),
        },
        evidence=tuple(loop_evidence(closing, "connection")),
        involved=replace(loop_involved(closing), queues=queue_refs(starved)),
        certainty=_certainty(closing.lasts, after),
        seen_seconds=closing.lasts,
    )


def _left_open(view: View, closing: ChurnLoop) -> list[Connection]:
    """Return the connections of a loop that stay open without a channel: the broker closes channels at an error."""
    cycles = cluster_cycles(view)
    if cycles is None or (cycles.channels or 0.0) < MIN_PER_CYCLE:
        return []
    mine = (each for each in view.connections if identity(each) == identity(closing.connection))
    return [each for each in mine if each.channels == 0 and age_seconds(view, each) > _SETTLED]


def _stay_open(view: View, closing: ChurnLoop) -> list[Connection]:
    """Return the connections of a client that last for several of its cycles."""
    mine = (each for each in view.connections if identity(each) == identity(closing.connection))
    return [each for each in mine if age_seconds(view, each) > max(_STAYS, _STAYS_CYCLES / closing.rate)]


def _gone_ids(view: View) -> list[str]:
    """Return the client ids of MQTT connections that were listed and are gone."""
    present = {each.name for each in view.connections}
    seen = seen_connections(view).values()
    return sorted({each.client_id for each in seen if each.client_id and each.name not in present})


def _cluster_finding(
    view: View, total: ChurnRate, logins: LoopLogins, starved: tuple[Queue, ...], locked: tuple[Queue, ...]
) -> Finding:
    rate = logins.consuming if starved else total.rate
    after = _warning_after(view, rate, starved)
    mqtt = logins.protocol == MQTT
    return Finding(
        rule=NAME,
        severity=_severity(total.lasts, after),
        subject=Subject(kind="cluster", name=view.window.cluster),
        since=total.since.iso(),
        facts={
            "client": None,
            "cycle_rate": total.rate,
            "activities": [],
            "mqtt": mqtt,
            "protocol": logins.protocol,
            "seen_ids": list[Fact](_gone_ids(view)[:MAX_NAMED]) if mqtt else [],
            "user": None,
            "no_lists": view.lists_no_clients,
            "left_open": 0,
            "stay_open": 0,
            **_limit_facts(view, rate, total.lasts, starved),
            **_locked_facts(view, locked),
        },
        evidence=(
            Evidence(
                key="loop_rate",
                value=total.rate,
                unit=Unit.PER_SECOND,
                source=source("/api/overview", "churn_rates.connection_created", "churn_rates.connection_closed"),
                facts={"what": "connection", "seen_seconds": total.lasts},
            ),
            Evidence(
                key="open",
                value=view.overview.connections if view.overview else None,
                source=source("/api/overview", "object_totals.connections"),
            ),
            *(
                Evidence(
                    key="logins",
                    value=each,
                    unit=Unit.PER_SECOND,
                    source=source("/api/auth/attempts/<node>", "auth_attempts_succeeded"),
                    facts={"protocol": name},
                )
                for name, each in sorted((logins.rates or {}).items(), key=lambda pair: -pair[1])
            ),
        ),
        involved=Involved(queues=queue_refs(of_one_vhost(starved))),
        certainty=_certainty(total.lasts, after),
        seen_seconds=total.lasts,
    )
