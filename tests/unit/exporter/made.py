"""Handmade values: a small cluster, records of probes, a clock that tests set."""

import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ackscope.clock import Instant
from ackscope.findings import DiagnosisResult, Evidence, Finding, Inconclusive, Severity, Subject, Unit, source
from ackscope.records import AckBurst, MessageRecord, Outcome, ProbeOutcome, ProbeState, Quantiles, StepRecord
from ackscope.reports import EvidenceReport, FindingReport, Step
from ackscope.snapshot import (
    Channel,
    Connection,
    Consumer,
    HealthCheck,
    MessageStats,
    Node,
    Overview,
    Part,
    Queue,
    Snapshot,
)
from diagnosis.text import DiagnosisReport

WALL = 1_700_000_000.0
NOW = Instant(wall=WALL, mono=1000.0)


@dataclass
class SetClock:
    """A clock that tests set.

    Attributes:
        jumped: by how many seconds its wall clock was set forward.
    """

    mono: float = NOW.mono
    jumped: float = 0.0

    def now(self) -> Instant:
        """The set moment."""
        return Instant(wall=WALL + self.jumped + self.mono - NOW.mono, mono=self.mono)


def part(value: Any, **chunks: Any) -> Part[Any]:
    """A reading that was complete at `NOW`."""
    return Part(value=value, at=NOW, seconds=0.01, **chunks)


def small(cluster: str = "shop", **parts: Part[Any]) -> Snapshot:
    """One node, two queues, one consumer, with a field or two missing here and there."""
    whole = {
        "overview": part(
            Overview(
                cluster_name="rabbit@shop",
                rabbitmq_version="4.3.6",
                erlang_version="27.3",
                connections=2,
                channels=2,
                queues=2,
                consumers=1,
                messages=7,
                messages_ready=4,
                messages_unacked=3,
                stats=MessageStats(publish=10, confirm=9),
                churn={"connection_created": 5, "channel_closed": 1},
            )
        ),
        "nodes": part((Node(name="rabbit@one", running=True, mem_used=1000, mem_alarm=False, uptime_seconds=1.5),)),
        "queues": part(
            (
                Queue(
                    vhost="/",
                    name="orders",
                    type="classic",
                    state="running",
                    node="rabbit@one",
                    messages=7,
                    messages_ready=4,
                    messages_unacked=3,
                    consumers=1,
                    stats=MessageStats(publish=10, ack=2),
                ),
                Queue(vhost="a\\b", name='new "one"\n', type="quorum", leader="rabbit@one", members=("rabbit@one",)),
            )
        ),
        "channels": part(
            (
                Channel(name="c1", confirm=True, transactional=False, messages_unacked=3, global_prefetch_count=0),
                Channel(name="c2", confirm=False, transactional=False, messages_unacked=None),
            )
        ),
        "consumers": part(
            (Consumer(tag="t", vhost="/", queue="orders", channel_name="c1", ack_required=True, prefetch_count=10),)
        ),
        "connections": part((Connection(name="k1", state="running", channels=2, send_pend=0),)),
        "health": part((HealthCheck(name="alarms", ok=True), HealthCheck(name="virtual-hosts", ok=None))),
    }
    return Snapshot(cluster=cluster, taken=NOW, **{**whole, **parts})


def message(**changes: Any) -> MessageRecord:
    """A message that was acked after 2 ms."""
    values: dict[str, Any] = {
        "probe": "confirm",
        "stream": "quorum",
        "queue_type": "quorum",
        "vhost": "/",
        "node": "rabbit@one",
        "run_id": "r1",
        "epoch": 1,
        "seq": 1,
        "delivery_mode": 2,
        "payload_bytes": 64,
        "intended_at": WALL,
        "send_delay": 0.00015,
        "outcome": Outcome.ACKED,
        "confirm": 0.0018,
        "response": 0.00195,
        "multiple": False,
        "group": 1,
    }
    return MessageRecord(**{**values, **changes})


def burst(**changes: Any) -> AckBurst:
    """Two frames that settled five messages."""
    values: dict[str, Any] = {
        "probe": "confirm",
        "stream": "quorum",
        "queue_type": "quorum",
        "vhost": "/",
        "node": "rabbit@one",
        "run_id": "r1",
        "at": WALL,
        "frames": 2,
        "multiple_frames": 1,
        "messages": 5,
        "interval": 0.2,
        "span": 0.0001,
    }
    return AckBurst(**{**values, **changes})


def step(**changes: Any) -> StepRecord:
    """A round trip on a channel that took 300 microseconds."""
    values: dict[str, Any] = {
        "probe": "rtt",
        "stream": "rtt",
        "vhost": "/",
        "node": "rabbit@one",
        "run_id": "r1",
        "at": WALL,
        "step": "declare",
        "seconds": 0.0003,
        "ok": True,
    }
    return StepRecord(**{**values, **changes})


def outcome(**changes: Any) -> ProbeOutcome:
    """Return a healthy stream of the delivery probe."""
    values: dict[str, Any] = {
        "probe": "delivery",
        "stream": "classic",
        "queue_type": "classic",
        "vhost": "/",
        "queue": "ackscope.probe.delivery.classic",
        "node": "",
        "at": WALL,
        "state": ProbeState.RUNNING,
        "success": True,
        "payload_bytes": 64,
        "loop_lag": Quantiles(count=10, p50=0.0001, p90=0.0002, p99=0.0003, max=0.0004),
        "redeliveries": 0,
        "duplicates": 0,
        "out_of_order": 0,
        "missing": 0,
    }
    return ProbeOutcome(**{**values, **changes})


def confirming(stream: str, p50: float, **changes: Any) -> ProbeOutcome:
    """A stream of the confirm probe whose median confirm takes `p50` seconds."""
    queue_type = {"unroutable": "none", "quorum": "quorum", "stream": "stream"}.get(stream, "classic")
    values: dict[str, Any] = {
        "probe": "confirm",
        "stream": stream,
        "queue_type": queue_type,
        "queue": "" if stream == "unroutable" else f"ackscope.probe.confirm.{stream}",
        "confirm": Quantiles(count=300, p50=p50, p90=2 * p50, p99=3 * p50, max=4 * p50),
        "redeliveries": None,
        "duplicates": None,
        "out_of_order": None,
        "missing": None,
    }
    return outcome(**{**values, **changes})


ORDERS = Subject(kind="queue", vhost="/", name="orders")
NO_CONSUMER_FACTS: dict[str, Any] = {
    "queue": {"vhost": "/", "name": "orders", "type": "classic", "node": "rabbit@one", "policy": None},
    "ready": 5,
    "published": 3,
    "grows": True,
    "had_consumer": True,
    "was_consumed": True,
    "may_be_delay": False,
    "expires_after_seconds": None,
    "publishers": [],
    "shovel_moves": [],
    "dead_letter_sources": [],
    "passed_on": None,
    "filled_by_consumers": None,
    "rises": True,
    "restarted": None,
    "may_be_needed": False,
    "idle_elsewhere": [],
    "similar_queue": None,
    "similar_differs": [],
    "similar_vhost": None,
    "similar_gone": False,
    "similar_received": False,
    "left_for_seconds": None,
    "similar_clients": [],
    "similar_connections": [],
    "without_consumer_seconds": 90.0,
    "piled_up_seconds": None,
    "only_polled": False,
    "hash_exchange": None,
    "queue_form": None,
    "consumed_of_form": 0,
    "deleted_unused_after_seconds": None,
    "idle_connections": [],
    "cancelled": [],
    "logins_refused": False,
    "cancelled_seen": False,
    "cancelled_by_broker": False,
    "gone_shovels": [],
    "gone_consumers": [],
    "watched_seconds": 90.0,
    "other_session_count": 0,
    "warning_after_seconds": 60.0,
}


def finding(**changes: Any) -> Finding:
    """A queue without consumer, as data."""
    values: dict[str, Any] = {
        "rule": "no-consumer",
        "severity": Severity.WARNING,
        "subject": ORDERS,
        "since": "2023-11-14T22:13:20Z",
        "facts": NO_CONSUMER_FACTS,
        "evidence": (
            Evidence(key="ready", value=5, unit=Unit.MESSAGES, source=source("/api/queues", "messages_ready")),
        ),
    }
    return Finding(**{**values, **changes})


def finding_report(**changes: Any) -> FindingReport:
    """A queue without consumer, as text."""
    values: dict[str, Any] = {
        "rule": "no-consumer",
        "severity": Severity.WARNING,
        "subject": ORDERS,
        "since": "2023-11-14T22:13:20Z",
        "summary": "Queue 'orders' has messages and no consumer",
        "cause": "No consumer is registered.",
        "evidence": (
            EvidenceReport(what="consumers", value="0", expected="1 or more", source="/api/queues consumers"),
        ),
        "steps": (
            Step(text="Start the consumer"),
            Step(
                text="Check whether it consumes now",
                command="rabbitmqctl list_consumers -p / | grep -F -- orders-with-a-very-long-name",
            ),
        ),
        "next_steps": (),
        "runbook": "diagnosis/catalogue/no-consumer.md",
    }
    return FindingReport(**{**values, **changes})


def diagnosis_report(**changes: Any) -> DiagnosisReport:
    """The result of a diagnosis, as text; nothing was found."""
    values: dict[str, Any] = {
        "cluster": "shop",
        "at": NOW.iso(),
        "findings": (),
        "inconclusive": (),
        "suppressed": (),
        "checked": ("no-consumer", "stuck-consumer"),
    }
    return DiagnosisReport(**{**values, **changes})


@dataclass
class Verdicts:
    """Returns diagnoses with these parts."""

    findings: tuple[Finding, ...] = ()
    inconclusive: tuple[Inconclusive, ...] = ()
    checked: tuple[str, ...] = field(default=("no-consumer", "stuck-consumer"))

    def of(self, cluster: str) -> DiagnosisResult:
        """Return the diagnosis of a cluster."""
        return DiagnosisResult(
            cluster=cluster,
            at=NOW.iso(),
            findings=self.findings,
            inconclusive=self.inconclusive,
            checked=self.checked,
        )


def eventually(holds: Callable[[], bool], seconds: float = 20.0) -> None:
    """Return when something holds; fail after some seconds."""
    until = time.monotonic() + seconds
    pause = threading.Event()
    while not holds():
        assert time.monotonic() < until, f"not seen within {seconds:g} s"
        pause.wait(0.01)


def promtool(text: str) -> str:
    """Return the complaints of `promtool check metrics` about an exposition; "" if there are none."""
    program = shutil.which("promtool")
    assert program is not None, "promtool is missing: run `make setup`"
    done = subprocess.run([program, "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr
