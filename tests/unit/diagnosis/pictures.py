"""Snapshots of a made-up cluster, and films: windows of such snapshots at several seconds."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ackscope.baselines import Baselines
from ackscope.clock import Instant
from ackscope.counters import MessageStats
from ackscope.findings import DiagnosisResult, Finding, flat
from ackscope.reports import FindingReport, InconclusiveReport, SuppressedReport
from ackscope.snapshot import (
    FAMILIES,
    Alarm,
    Channel,
    Connection,
    Consumer,
    HealthCheck,
    Node,
    Overview,
    Part,
    Queue,
    Snapshot,
)
from ackscope.streams import StreamClients
from ackscope.topology import Bindings
from diagnosis.contract import Rule
from diagnosis.engine import diagnose
from diagnosis.rules import RULES
from diagnosis.text import render, render_inconclusive, render_suppressed
from diagnosis.thresholds import Thresholds
from diagnosis.window import Window

WALL = 1_800_000_000.0
NODE = "rabbit@one"
PEER = "10.0.0.7:50001 -> 10.0.0.1:5672"
CHANNEL = f"{PEER} (1)"
REGISTERED = {rule.name for rule in RULES}
OK = HealthCheck(name="alarms", ok=True)
ALARM = HealthCheck(name="alarms", ok=False, reason="alarms in effect", alarms=(Alarm(node=NODE, resource="memory"),))


def moment(seconds: float) -> Instant:
    """Return the time at this second of the film."""
    return Instant(wall=WALL + seconds, mono=1000.0 + seconds)


def stats(**counters: int) -> MessageStats:
    """Return counters; those not named had no event."""
    return MessageStats(**counters)


def queue(name: str = "orders", **fields: Any) -> Queue:
    """Return a classic queue in use whose messages are all consumed, unless fields say otherwise."""
    defaults = {
        "vhost": "/",
        "type": "classic",
        "state": "running",
        "node": NODE,
        "durable": True,
        "messages_ready": 0,
        "messages_unacked": 0,
        "consumers": 1,
    }
    merged = {**defaults, **fields}
    if merged["messages_ready"] is not None:
        merged.setdefault("messages", merged["messages_ready"] + (merged["messages_unacked"] or 0))
    return Queue(name=name, **merged)


def consumer(of: str = "orders", **fields: Any) -> Consumer:
    """A consumer with manual acknowledgement and prefetch 10."""
    defaults = {
        "tag": "ctag1",
        "vhost": "/",
        "channel_name": CHANNEL,
        "connection_name": PEER,
        "prefetch_count": 10,
        "ack_required": True,
        "active": True,
        "peer_host": "10.0.0.7",
        "peer_port": 50001,
    }
    return Consumer(queue=of, **{**defaults, **fields})


def channel(name: str = CHANNEL, **fields: Any) -> Channel:
    """A channel that consumes."""
    defaults = {
        "vhost": "/",
        "connection_name": name.rsplit(" (", 1)[0],
        "state": "running",
        "confirm": False,
        "transactional": False,
        "consumer_count": 1,
        "messages_unacked": 0,
        "messages_unconfirmed": 0,
        "acks_uncommitted": 0,
    }
    return Channel(name=name, **{**defaults, **fields})


def connection(name: str = PEER, **fields: Any) -> Connection:
    """A connection of the application `billing`."""
    defaults = {"vhost": "/", "state": "running", "client_name": "billing", "channels": 1, "send_pend": 0}
    return Connection(name=name, **{**defaults, **fields})


WORKED = 60.0
"""Seconds for which the consumer works before its handler hangs."""


def _acked(t):
    """Return the acknowledgements of a consumer until second t: 5 per second until it hangs."""
    return int(100 + 5 * min(t, WORKED))


def stuck(t, *, prefetch=10, ready=None, idle=True, of=None, on=None, through=None):
    """Return a film of a consumer that hangs from second 60 on, while 5 messages per second are published."""
    acked, late = _acked(t), t > WORKED
    held = prefetch if late else min(2, prefetch)
    waiting = (int(5 * (t - WORKED)) if late else 0) if ready is None else ready
    counters = stats(publish=acked + held + waiting, deliver=acked + held, ack=acked, deliver_get=acked + held)
    mine = stats(deliver=acked + held, ack=acked, deliver_get=acked + held)
    since = WALL + WORKED + 1 if late and idle else None
    return {
        "queues": (queue(messages_ready=waiting, messages_unacked=held, stats=counters, **(of or {})),),
        "consumers": (consumer(**{"prefetch_count": prefetch, **(on or {})}),),
        "channels": (channel(messages_unacked=held, prefetch_count=prefetch, idle_since=since, stats=mine),),
        "connections": (connection(**(through or {})),),
    }


def snapshot(seconds: float, *, version: str = "4.3.6", **parts: Any) -> Snapshot:
    """Return the snapshot at this second of the film; parts not named were read and are empty."""
    overview = parts.pop(
        "overview",
        Overview(
            rabbitmq_version=version,
            statistics=True,
            rates_mode="basic",
            stats=stats(publish=round(1000 + 10 * seconds)),
        ),
    )
    node = Node(name=NODE, running=True, mem_used=200, mem_limit=1000, mem_alarm=False)
    values: dict[str, Any] = dict.fromkeys(FAMILIES, ())
    values |= {"overview": overview, "nodes": (node,), "health": (OK,), "bindings": Bindings(listed=())}
    values |= {"streams": StreamClients()}
    hidden = parts.pop("hidden_queues", 0)
    values |= parts
    read = {
        family: value if isinstance(value, Part) else Part(value=value, at=moment(seconds), seconds=0.1)
        for family, value in values.items()
    }
    return Snapshot(cluster="shop", taken=moment(seconds), hidden_queues=hidden, **read)


def film(frame: Callable[[float], dict[str, Any]], until: float, every: float = 5.0, start: float = 0.0) -> Window:
    """Return a window with a snapshot every few seconds, like those of a poller."""
    window = Window.empty("shop")
    for number in range(int((until - start) / every) + 1):
        seconds = start + number * every
        window = window.add(snapshot(seconds, **frame(seconds)))
    return window


def look(
    window: Window,
    *,
    later: float = 0.0,
    thresholds: Thresholds | None = None,
    outcomes: Any = (),
    rules: Sequence[Rule] = RULES,
    baselines: Baselines | None = None,
) -> DiagnosisResult:
    """Return the diagnosis of a window `later` seconds after its last snapshot; check that it renders as text."""
    taken = window.latest.taken if window.latest else moment(0)
    now = replace(taken, wall=taken.wall + later, mono=taken.mono + later)
    result = diagnose(window, outcomes, now, thresholds or Thresholds(), rules=rules, baselines=baselines)
    for each in (*flat(result.findings), *result.inconclusive, *result.suppressed):
        if each.rule in REGISTERED:
            text(each)
    return result


def found(verdict: DiagnosisResult) -> list[tuple[str, str, str]]:
    """Return rule, severity and name of each finding, in order."""
    return [(finding.rule, finding.severity.value, finding.subject.name) for finding in verdict.findings]


def only(verdict: DiagnosisResult) -> Finding:
    """Return the only finding; fail if there is not exactly one."""
    (finding,) = verdict.findings
    return finding


def text(item):
    """Render a finding, inconclusive or suppressed result; a missing fact that its page uses is an error."""
    if isinstance(item, FindingReport | InconclusiveReport | SuppressedReport):
        return item
    renderers = {"Finding": render, "Inconclusive": render_inconclusive, "Suppressed": render_suppressed}
    return renderers[type(item).__name__](item)


def evidence(finding: Finding, key: str) -> Any:
    """Return the only evidence of a finding with this key."""
    (item,) = [each for each in finding.evidence if each.key == key]
    return item


def full_text(finding: Finding) -> str:
    """Return the whole report of a finding as one text."""
    report = text(finding)
    items = [f"{item.what} {item.value} {item.expected} {item.source}" for item in report.evidence]
    return "\n".join([report.summary, report.cause, *items, *report.next_steps])
