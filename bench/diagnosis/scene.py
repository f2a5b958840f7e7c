"""A broker with the sample workload and an exporter, into which faults are injected."""

import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import orjson
import requests

from ackscope.errors import BrokerError
from ackscope.reports import is_over
from bench.diagnosis.peers import Peers, peers
from bench.diagnosis.record import ClientNamed
from bench.exporting import Exporter, end_process, exporting_cluster, wait_for
from diagnosis.pages import pages
from diagnosis.preconditions import CLIENT_LISTS, QUEUE_COUNTERS_SINCE, WHOLE_RULE
from diagnosis.process_view import PROCESS_LISTS
from diagnosis.rules.queues.messages_discarded import NAME as BY_TOTALS
from lab.cluster import Lab, start_lab
from lab.faults.fault import FaultSpec
from lab.node import NOTHING, Extra

_IN_EFFECT = 150.0
"""Seconds until a fault must be in effect; some depend on a time limit of the broker."""
_UNDONE = 60.0
_SETTLED = 25.0
"""Seconds until the exporter has read everything; some families are read every 30 s."""

_ROUTABLE = ["transient", "classic", "classic-large", "quorum", "stream"]

FindingDocument = dict[str, Any]
"""A finding as the API returns it."""


Source = Literal["all", "statistics-off", "prometheus"]
"""What the exporter has: everything; a broker without statistics and its Prometheus endpoints; only these endpoints."""

SOURCES: tuple[Source, ...] = get_args(Source)

_REASONS = {
    "ttl-expiry-loss": "expired",
    "maxlen-drop-head": "over_length",
    "reject-loss": "rejected",
    "poison-drop": "over_limit",
    "pub-nacked-overflow": "refused",
    "unexplained-loss": "expired",
}
"""Rule -> the reason that `messages-discarded` gives for the same loss, where no settings are read.

The fault of `unexplained-loss` is messages that expire.
"""

_METRICS_FAMILIES = frozenset({"overview", "queues", "nodes"})
"""Families whose figures the Prometheus endpoints have. Of `health` they have the alarms only."""

WITHOUT_STATISTICS = "management_agent.disable_metrics_collector = true\n"


@dataclass(frozen=True, slots=True)
class Held:
    """A fault in effect.

    Attributes:
        subject: expected subject of the finding: kind, vhost, name; the name "" matches any.
        since: when it took effect, monotonic clock.
        peers: addresses of the AMQP 1.0 clients that cause it, `host:port`.
        clients_listed: whether the source lists clients. Where it does not, a finding about one names the cluster.
    """

    spec: FaultSpec
    subject: dict[str, str | None]
    since: float
    peers: tuple[str, ...] = ()
    clients_listed: bool = True

    def is_reported_by(self, finding: FindingDocument) -> bool:
        """Return whether a finding is about this fault, with the right rule and subject."""
        subject, of_rule = finding["subject"], self._is_of_rule(finding)
        if not self.clients_listed and (self.subject["kind"], subject["kind"]) == ("connection", "cluster"):
            return of_rule
        return (
            of_rule
            and subject["kind"] == self.subject["kind"]
            and self.subject["name"] in {"", subject["name"]}
            and (subject["vhost"] is None or self.subject["vhost"] in {None, subject["vhost"]})
        )

    def _is_of_rule(self, finding: FindingDocument) -> bool:
        """Return whether a finding is of the rule of this fault, or gives the same reason by totals of the cluster."""
        if finding["rule"] == BY_TOTALS:
            reasons = {each["reason"] for each in finding["facts"]["reasons"]}
            return _REASONS.get(self.spec.rule) in reasons
        return bool(finding["rule"] == self.spec.rule)

    def is_named_by(self, finding: FindingDocument) -> bool:
        """Return whether a finding names this fault, with the right rule, subject and client.

        Where the broker lists no clients, a finding that says so names it without one, or by a process.
        """
        facts = finding.get("facts", {})
        known = not self.spec.client or self.spec.client in finding["involved"]["clients"]
        unknown = facts.get("clients_unknown") is True or "processes" in facts
        return (known or unknown) and self.is_reported_by(finding)

    def is_left_open_by(self, unsure: FindingDocument) -> bool:
        """Return whether the rule of this fault says that it cannot tell, and names its subject or its client.

        A rule that cannot run at all names neither. Where no link is reported, no client is either (4.0), so the reason
        lists their connections.
        """
        said = f"{unsure['because']} {unsure.get('facts')}"
        names = {self.subject["name"] or f"fault-{self.spec.name}", f"fault-{self.spec.name}"}
        named = unsure["reason"] in WHOLE_RULE | {"links_not_reported"} or any(name in said for name in names)
        return unsure["rule"] == self.spec.rule and named

    def client_in(
        self, clients: Sequence[str], connections: Sequence[str] = (), one_of: Sequence[str] = ()
    ) -> ClientNamed:
        """Return whether these are, or contain, the client of this fault; it is named after the fault.

        Where the broker tells no names of AMQP 1.0 clients, their connections count.

        Args:
            clients: those that a finding involves.
            connections: the same.
            one_of: connections that may be the client, as it says.
        """
        own = self.spec.client or f"fault-{self.spec.name}"
        if any(each.startswith(own) for each in clients) or self._in(connections):
            return "right"
        if self._in(one_of):
            return "among"
        return "other" if clients or one_of or (connections and self.peers) else ""

    def _in(self, connections: Sequence[str]) -> bool:
        return any(name.startswith(f"{peer} ->") for name in connections for peer in self.peers)


@dataclass(frozen=True, slots=True)
class Scene:
    """The running broker, exporter and peers.

    Attributes:
        source: where the exporter gets what it knows of the broker.
    """

    lab: Lab
    exporter: Exporter
    peers: Peers | None = None
    source: "Source" = "all"

    def findings(self) -> list[FindingDocument]:
        """Return the current findings without losses that are over; none if the exporter does not answer."""
        return [each for each in self._diagnosis().get("findings", ()) if not is_over(each)]

    def unsure(self) -> list[FindingDocument]:
        """Return what rules cannot tell now, and why; nothing if the exporter does not answer."""
        return list(self._diagnosis().get("cannot_tell", ()))

    def queues(self) -> tuple[float, dict[str, str]]:
        """Return when the queues were read last, and the counters of each queue by its name."""
        try:
            document = self.exporter.get("/api/v1/snapshot?families=queues").json()
            part = document["clusters"][0]["queues"]
        except (requests.RequestException, ValueError, LookupError):
            return 0.0, {}
        # Rates go on to change after the last message.
        counters = {
            row["name"]: orjson.dumps([row["stats"], row["messages_ready"], row["messages_unacked"]]).decode()
            for row in part["value"] or ()
        }
        return part["at"]["mono"], counters

    def _diagnosis(self) -> FindingDocument:
        try:
            clusters: list[FindingDocument] = self.exporter.get("/api/v1/findings").json()["clusters"]
        except (requests.RequestException, ValueError):
            return {}
        return clusters[0]

    def once(self) -> list[FindingDocument]:
        """Return the findings of `ackscope diagnose` with probes."""
        node, endpoints = self.lab.nodes[0], [each.prometheus for each in self.lab.nodes]
        words = {
            "all": [
                *("diagnose", "--management", node.management, "--prometheus", *endpoints),
                *("--amqp", node.amqp, "--json"),
            ],
            "statistics-off": [
                *("diagnose", "--management", node.management, "--prometheus", *endpoints),
                *("--amqp", node.amqp, "--json"),
            ],
            "prometheus": ["diagnose", "--prometheus", *endpoints, "--json"],
        }[self.source]
        done = subprocess.run(
            [sys.executable, "-m", "ackscope", *words], capture_output=True, stdin=subprocess.DEVNULL, check=False
        )
        return list(orjson.loads(done.stdout)["clusters"][0]["findings"]) if done.stdout else []

    @contextmanager
    def held(self, spec: FaultSpec) -> Iterator[Held]:
        """Inject a fault, and revert it at the end of the block.

        Raises:
            BrokerError: it did not come into effect.
        """
        node = self.lab.nodes[0]
        words = [spec.name, "--amqp", node.amqp, "--management", node.management, "--lab", str(self.lab.folder)]
        process = subprocess.Popen(
            [sys.executable, "-m", "lab.faults", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        try:
            said = _announced(process, spec.name)
            listed = self.source == "all"
            yield Held(spec, said["subject"], time.monotonic(), tuple(said.get("peers", ())), listed)
        finally:
            end_process(process, _UNDONE)
            for pipe in (process.stdin, process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()


def never_read(rule: str, version: str, source: Source) -> bool:
    """Return whether a rule needs what this source never has on this minor version."""
    page = pages()[rule]
    if source == "all":
        return False
    counts_queues = tuple(map(int, version.split("."))) >= QUEUE_COUNTERS_SINCE
    if page.compares_counters and not counts_queues:
        return True
    needs = frozenset(page.needs) - (PROCESS_LISTS if page.by_process and counts_queues else frozenset())
    return bool(needs & CLIENT_LISTS if source == "statistics-off" else needs - _METRICS_FAMILIES)


def flat(findings: Sequence[FindingDocument]) -> list[tuple[FindingDocument, FindingDocument | None]]:
    """Return every finding with the cause whose consequence it is; None for causes."""
    pairs: list[tuple[FindingDocument, FindingDocument | None]] = []
    for finding in findings:
        pairs.append((finding, None))
        pairs += [(other, finding) for other, _ in flat(finding.get("consequences", []))]
    return pairs


@contextmanager
def scene(
    broker: str, nodes: int = 1, extra: Extra = NOTHING, *, compare: bool = False, source: Source = "all"
) -> Iterator[Scene]:
    """Start all parts, and wait until the exporter has read everything.

    Args:
        broker: version of the broker.
        nodes: number of its nodes.
        extra: additional start options of the broker.
        compare: also run a Prometheus with the rules of others.
        source: where the exporter gets what it knows of the broker.

    Raises:
        BrokerError: a part did not start.
    """
    with ExitStack() as stack:
        if source == "statistics-off":
            extra = replace(extra, config=extra.config + WITHOUT_STATISTICS)
        lab = stack.enter_context(start_lab(broker, nodes, extra=extra))
        words = [sys.executable, "-m", "lab.workload", "--amqp", lab.nodes[0].amqp]
        # The workload ends when its stdin closes.
        workload = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        stack.callback(end_process, workload)
        others = stack.enter_context(peers(lab.nodes)) if compare else None
        amqp: dict[str, Any] = {"url": lab.nodes[0].amqp}
        if nodes > 1:
            amqp["nodes"] = {node.name: node.amqp for node in lab.nodes}
        endpoints = {"urls": [node.prometheus for node in lab.nodes]}
        cluster: dict[str, Any] = {"management": {"url": lab.nodes[0].management}, "amqp": amqp}
        if source in {"all", "statistics-off"}:
            cluster["prometheus"] = endpoints
        elif source == "prometheus":
            cluster = {"prometheus": endpoints}
        # Our unroutable stream would trigger the alerts of others all the time.
        own = {"probes": {"confirm": {"streams": _ROUTABLE}}} if compare else {}
        exporter = stack.enter_context(exporting_cluster(cluster, own))
        wait_for(lambda: exporter.get("/-/ready").ok, "the first poll")
        time.sleep(_SETTLED)
        yield Scene(lab, exporter, others, source)


def _announced(process: subprocess.Popen[bytes], name: str) -> FindingDocument:
    """Wait for the line that a fault prints once it is in effect."""
    deadline, line = time.monotonic() + _IN_EFFECT, b""
    while not line.endswith(b"\n"):
        left = deadline - time.monotonic()
        if process.stdout is None or left <= 0 or not select.select([process.stdout], [], [], left)[0]:
            raise BrokerError(f"{name}: not in effect within {_IN_EFFECT:.0f} s")
        piece = os.read(process.stdout.fileno(), 65536)
        if not piece:
            said = process.stderr.read().decode(errors="replace").strip().splitlines() if process.stderr else []
            raise BrokerError(f"{name}: {said[-1] if said else 'it ended and said nothing'}")
        line += piece
    document: FindingDocument = orjson.loads(line)
    return document
