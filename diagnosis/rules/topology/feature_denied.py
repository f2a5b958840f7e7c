"""feature-denied (G13): clients reconnect in a loop because the broker denies a deprecated feature that they declare.

Seen on 4.3.6: a declare that needs a denied feature is counted, creates no queue, and ends the whole connection with
541 INTERNAL_ERROR "Feature `...` is deprecated". The broker reports since 4.1 which features it denies.

No counter tells why a connection ends, and a declare of a queue that exists creates none either: a health check that
connects, declares and closes in good order leaves the same counts. Every 4.3 broker denies some feature by default. So
such a loop is a possibility only, unless the operator denied the feature, or queues or policies still use it. Beside a
queue that exists without the feature and grows without its consumer, a declare with other properties (406) is more
likely: connection-churn reports that, with the denied feature as another cause. So is a locked queue (405) beside an
exclusive one with a name of its client's.
Source: https://www.rabbitmq.com/docs/deprecated-features
"""

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass

from ackscope.clock import Instant
from ackscope.findings import Certainty, Evidence, Fact, Finding, Inconclusive, Involved, Severity, Subject, source
from ackscope.snapshot import Queue
from ackscope.topology import Feature
from diagnosis.churn import ChurnRate, churn_rate
from diagnosis.churn_loops import ChurnLoop, churn_loops, cluster_cycles
from diagnosis.contract import Relation, RuleResult, View
from diagnosis.memo import per_view
from diagnosis.rules.clients._shared.locked import locked_names
from diagnosis.rules.clients._shared.loops import FEW_MESSAGES, MIN_PER_CYCLE, MOST_CONNECTIONS, subject_key
from diagnosis.rules.clients._shared.queue_limits import queue_limits
from diagnosis.rules.clients._shared.starved import of_one_vhost, starved_queues
from diagnosis.rules.queues._shared.queue import MAX_NAMED, queue_refs

NAME = "feature-denied"

REPORTED_FROM = (4, 1)
_TRANSIENT, _LOCATOR = "transient_nonexcl_queues", "queue_master_locator"
REFUSES_DECLARES = (_TRANSIENT, _LOCATOR)
"""Features whose denial ends the connection that declares a queue with them."""
_DENIED_BY_DEFAULT = "denied_by_default"


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedClients:
    """Clients whose connections end after a declare that creates no queue.

    Attributes:
        loops: listed clients.
        unlisted: such connections that are too brief to be listed; None if there are none.
    """

    loops: tuple[ChurnLoop, ...]
    unlisted: ChurnRate | None

    @property
    def all(self) -> tuple[ChurnLoop | ChurnRate, ...]:
        """Listed clients, and the others as one."""
        return (*self.loops, self.unlisted) if self.unlisted is not None else self.loops

    @property
    def began(self) -> Instant:
        """The moment at which the first of them began."""
        return min((each.since for each in self.all), key=lambda at: at.mono)

    @property
    def rate(self) -> float:
        """Connections per second of all of them."""
        return sum(each.rate for each in self.all)


def evaluate(view: View) -> Iterator[RuleResult]:
    """Compare the denied features with the clients that declare in vain, and whose connections end."""
    denied = [each for each in view.features if each.deprecated and each.name in REFUSES_DECLARES]
    if denied and all(each.state is None for each in denied):
        yield Inconclusive(rule=NAME, reason="state_not_reported", permanent=True)
        return
    denied = sorted((each for each in denied if each.state == "denied"), key=lambda each: each.name)
    clients = per_view(view, _refused)
    if denied and clients.all:
        known = _is_known(view, denied)
        if known or not (_starved(view, clients) or _locked(view, clients)):
            yield _finding(view, denied, clients, known=known)


def _refused(view: View) -> RefusedClients:
    cycles = cluster_cycles(view)
    nobody = RefusedClients(loops=(), unlisted=None)
    if cycles is None or cycles.channels is None or cycles.channels < MIN_PER_CYCLE:
        return nobody
    if cycles.connection_declares < MOST_CONNECTIONS or cycles.messages >= FEW_MESSAGES:
        return nobody
    early, limits = view.thresholds.early, queue_limits(view)
    reconnecting = [loop for loop in churn_loops(view) if loop.whole]
    loops = [loop for loop in reconnecting if loop.lasts >= early and not any(loop in use.loops for use in limits)]
    unlisted = None if reconnecting or any(use.unlisted for use in limits) else churn_rate(view, "connection")
    if unlisted is not None and unlisted.lasts < early:
        unlisted = None
    return RefusedClients(loops=tuple(sorted(loops, key=lambda loop: loop.client)), unlisted=unlisted)


def _is_known(view: View, denied: list[Feature]) -> bool:
    """Return whether more than the loop points to a feature: the operator denied it, or queues and policies use it."""
    if any(each.stage != _DENIED_BY_DEFAULT for each in denied):
        return True
    return any("x-queue-master-locator" in queue.arguments for queue in view.all_queues) or any(
        "queue-master-locator" in policy.definition for policy in view.policies
    )


def _starved(view: View, clients: RefusedClients) -> tuple[Queue, ...]:
    """Return the queues in their virtual hosts that grow and had no consumer since the loop began."""
    return _theirs(clients, starved_queues(view, None, clients.began))


def _locked(view: View, clients: RefusedClients) -> tuple[Queue, ...]:
    """Return the exclusive queues in their virtual hosts that they may ask for in vain, if connection-churn says so."""
    reported = clients.rate >= view.thresholds.clients.connection_churn_slow
    return _theirs(clients, locked_names(view, None, clients.began)) if reported else ()


def _theirs(clients: RefusedClients, queues: tuple[Queue, ...]) -> tuple[Queue, ...]:
    vhosts = {loop.connection.vhost for loop in clients.loops}
    return tuple(queue for queue in queues if clients.unlisted is not None or queue.vhost in vhosts)


def _finding(view: View, denied: list[Feature], clients: RefusedClients, *, known: bool) -> Finding:
    starved = _starved(view, clients) if known else ()
    listed: list[Fact] = [
        {"client": loop.client, "peer": loop.peer, "user": loop.connection.user, "cycle_rate": loop.rate}
        for loop in clients.loops[:MAX_NAMED]
    ]
    return Finding(
        rule=NAME,
        severity=Severity.WARNING if known else Severity.INFO,
        subject=Subject(kind="cluster", name=view.window.cluster),
        since=clients.began.iso(),
        facts={
            "features": [each.name for each in denied],
            "denies_transient": any(each.name == _TRANSIENT for each in denied),
            "denies_locator": any(each.name == _LOCATOR for each in denied),
            "clients": listed,
            "client_count": len(clients.loops),
            "cycle_rate": clients.rate,
            "known": known,
            "starved": sorted(queue.name for queue in starved)[:MAX_NAMED],
        },
        certainty=Certainty.LIKELY,
        seen_seconds=max(each.lasts for each in clients.all),
        evidence=(
            *(
                Evidence(
                    key="denied",
                    value=each.name,
                    source=source("/api/deprecated-features", "state"),
                    facts={"stage": each.stage},
                )
                for each in denied
            ),
            Evidence(
                key="vain",
                source=source(
                    "/api/overview",
                    "churn_rates.connection_closed",
                    "churn_rates.queue_declared",
                    "churn_rates.queue_created",
                ),
            ),
        ),
        involved=Involved(
            queues=queue_refs(of_one_vhost(starved)),
            clients=tuple(
                sorted({each.connection.client_name for each in clients.loops if each.connection.client_name})
            ),
        ),
    )


def _loops_of(view: View, finding: Finding) -> Iterable[Hashable]:
    clients = per_view(view, _refused)
    subjects = [loop.subject for loop in clients.loops]
    if clients.unlisted is not None:
        subjects.append(Subject(kind="cluster", name=view.window.cluster))
    # A cause is as urgent as its consequences: a mere possibility must not become a warning by a fast loop.
    yield from ((*subject_key(each), False) for each in subjects)
    if finding.facts["known"]:
        yield from ((*subject_key(each), True) for each in subjects)


def _subject_of(_view: View, finding: Finding) -> Iterable[Hashable]:
    # With queues it explains findings about these, which may be urgent.
    urgent = finding.severity is not Severity.INFO or bool(finding.involved.queues)
    return ((*subject_key(finding.subject), urgent),)


LOOPS_REFUSED_HERE = Relation(_loops_of, _subject_of)
"""The cause is a denied feature; the consequence is about a client that reconnects because of it."""
