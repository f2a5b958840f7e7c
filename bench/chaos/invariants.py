"""Invariants that hold whatever breaks, checked at every scrape and, for the landed messages, at the end."""

import math
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self

import requests
from prometheus_client.parser import text_string_to_metric_families

from bench.chaos.jumping_clock import JumpingClock
from bench.chaos.scene import CLUSTER, PARTS, POLL_SECONDS, ROTATE_SECONDS, ChaosScene

Labels = tuple[tuple[str, str], ...]
Key = tuple[str, Labels]

_EVERY = 1.0
_TIMEOUT = 10.0
_CLOCK_ERROR = 1.0
"""Largest difference in seconds between the clocks of two processes, and the time that a change takes."""

_ROUNDED = 1e-6
"""Rounding error of a sum of seconds."""

_REPORT_SECONDS = 5.0
"""Longest time from the confirm of a message to its count in /metrics."""

_LONGEST_LATENCY = 60.0
"""Seconds. What probes time is given up earlier, and the smallest jump of a clock is longer."""

_RECENT_SECONDS = 120.0
"""Time for which what an earlier disturbance justified may appear again."""

_OWN = (
    "ackscope_confirm",
    "ackscope_connection_block",
    "ackscope_delivery_",
    "ackscope_landing_",
    "ackscope_poll_",
    "ackscope_probe_",
)
"""Counters of what the exporter did and measured; all others come from the broker."""

NEVER = frozenset({
    "auto-ack-consumer", "connection-leak", "channel-leak", "consumer-leak", "queue-leak", "binding-leak",
    "maxlen-drop-head", "queue-deleted", "queue-purged", "reject-loss", "republish-loop", "requeue-loop",
    "ttl-expiry-loss", "unexplained-loss", "stuck-consumer", "unacked-grows", "probe-message-lost", "link-down",
})  # fmt: skip
"""Rules that nothing here justifies, except `probe-message-lost` while a node is down: it loses transient messages."""

_OF_CLOCKS = frozenset({"clock-skew", "probe-instrument-doubtful"})
"""Rules that a jump of the clock justifies, or that say that this machine is too busy; new findings of others are not
justified.
"""


@dataclass(slots=True)
class Violation:
    """One violation.

    Attributes:
        invariant: its name.
        at: seconds since 1970.
        during: the disturbance.
    """

    invariant: str
    at: float
    during: str
    detail: str


@dataclass(slots=True)
class Scrape:
    """What one scrape returned.

    Attributes:
        at: time when it was requested, seconds since 1970.
        seconds: until it was complete.
        samples: by name and labels.
        counters: names of those that only grow.
    """

    at: float
    seconds: float
    samples: dict[Key, float]
    counters: set[str]

    def value(self, name: str, **labels: str) -> list[float]:
        """Return the values of samples with these labels, and any others."""
        wanted = set(labels.items())
        return [value for (each, own), value in self.samples.items() if each == name and wanted <= set(own)]


def parsed(text: str, at: float, seconds: float) -> Scrape:
    """Parse the text format."""
    samples: dict[Key, float] = {}
    counters: set[str] = set()
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            grows = family.type == "counter" or (family.type == "histogram" and not sample.name.endswith("_sum"))
            if grows and not sample.name.endswith("_created"):
                counters.add(sample.name)
            samples[sample.name, tuple(sorted(sample.labels.items()))] = sample.value
    return Scrape(at, seconds, samples, counters)


def backward(before: Scrape, now: Scrape) -> list[str]:
    """Return the counters of the exporter itself that decreased; those of the broker restart with each of its nodes."""
    return [
        f"{name}{dict(labels)}: {before.samples[name, labels]:g} -> {value:g}"
        for (name, labels), value in now.samples.items()
        if name in now.counters and name.startswith(_OWN) and value < before.samples.get((name, labels), value)
    ]


def too_fresh(scrape: Scrape, hidden_since: float) -> list[str]:
    """Return the families whose age says that they were read while their source was hidden."""
    least = scrape.at - hidden_since - _CLOCK_ERROR
    found = []
    for (name, labels), age in scrape.samples.items():
        if name == "ackscope_poll_age_seconds" and age < least:
            found.append(f"{dict(labels).get('family')} is {age:.1f} s old, its source is hidden for {least:.1f} s")
    return found


def wrong_ages(scrape: Scrape, longest: float) -> list[str]:
    """Return the ages that are negative, or longer than anything has lasted."""
    return [
        f"{name}{dict(labels)}: {value:.1f} s"
        for (name, labels), value in scrape.samples.items()
        if name.endswith(("_age_seconds", "_lag_seconds")) and not 0 <= value <= longest + _CLOCK_ERROR
    ]


def wrong_latencies(before: Scrape, now: Scrape) -> list[str]:
    """Return what was timed between two scrapes with a negative mean, or one that nothing has."""
    found = []
    for (name, labels), total in now.samples.items():
        of = name.removesuffix("_seconds_sum")
        if of != name and f"{of}_seconds_count" in now.counters and name.startswith(_OWN):
            seconds = total - before.samples.get((name, labels), 0.0)
            count = now.samples[f"{of}_seconds_count", labels] - before.samples.get(
                (f"{of}_seconds_count", labels), 0.0
            )
            if not -_ROUNDED <= seconds <= count * _LONGEST_LATENCY + _ROUNDED:
                found.append(f"{of}{dict(labels)}: {seconds:.3f} s in {count:g}")
    return found


def wrong_beginnings(document: Mapping[str, Any], earliest: float, latest: float) -> list[str]:
    """Return the findings of a document that say that they began before anything was there, or in the future."""
    found = []
    for cluster in document.get("clusters", []):
        for each in cluster.get("findings", []):
            since = datetime.fromisoformat(each["since"]).timestamp() if each.get("since") else earliest
            if not earliest - _CLOCK_ERROR <= since <= latest + _CLOCK_ERROR:
                found.append(f"{each['rule']} since {each['since']}")
    return found


def settled(scrape: Scrape) -> float:
    """Return how many messages were acked, over all streams."""
    return sum(scrape.value("ackscope_confirms_total", outcome="acked"))


@dataclass(slots=True)
class LandedMessages:
    """The acked messages of the probes in the landing files.

    Attributes:
        by_life: number of a life of the exporter -> stream -> when each was settled, seconds since 1970.
        ambiguous: by stream, how many may be of several lives: after a jump of its clock, their time was there twice.
        timeless: how many have a time that the clock never showed.
    """

    by_life: dict[int, dict[str, list[float]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))
    ambiguous: Counter[str] = field(default_factory=Counter)
    timeless: int = 0


def landed_messages(
    rows: Iterable[Mapping[str, Any]], lives: Sequence[Sequence[float]], clock: JumpingClock
) -> LandedMessages:
    """Return the acked messages of rows of `probe_messages`, times in seconds by the clock of the exporter."""
    found = LandedMessages()
    for row in rows:
        if row["outcome"] != "acked":
            continue
        stream = f"{row['probe']}.{row['stream']}"
        moments = clock.moments(row["intended_at"] + row["send_delay"] + (row["confirm"] or 0.0))
        numbers = {
            number for number, life in enumerate(lives) for at in moments if life[0] <= at < (*life[1:], math.inf)[0]
        }
        if len(numbers) == 1:
            # Of several times, the last one: it counts only if it must have been counted.
            found.by_life[numbers.pop()][stream].append(moments[-1])
        elif numbers:
            found.ambiguous[stream] += 1
        else:
            found.timeless += 1
    return found


def acked(scrape: Scrape) -> Counter[str]:
    """Return how many messages were acked, by stream."""
    counts: Counter[str] = Counter()
    for (name, labels), value in scrape.samples.items():
        own = dict(labels)
        if name == "ackscope_confirms_total" and own["outcome"] == "acked":
            counts[f"{own['probe']}.{own['stream']}"] += int(value)
    return counts


def uncounted(scrape: Scrape, landed: Mapping[str, Sequence[float]]) -> list[str]:
    """Return the streams with fewer messages in the counters of a scrape than in the landing files.

    Args:
        scrape: any one of a life of the exporter.
        landed: stream -> when each of its messages of the same life was settled.
    """
    counts, found = acked(scrape), []
    for stream, moments in landed.items():
        least = sum(moment < scrape.at - _REPORT_SECONDS for moment in moments)
        if counts[stream] < least:
            found.append(f"{stream}: {counts[stream]} counted, {least} landed")
    return found


def unlanded(scrape: Scrape, landed: LandedMessages, life: int) -> list[str]:
    """Return the streams with more messages in the counters of a scrape than in the landing files.

    Empty if the exporter dropped rows.

    Args:
        scrape: of a life of the exporter that was not killed.
        landed: everything that landed until long after the scrape.
        life: number of that life.
    """
    if sum(scrape.value("ackscope_landing_dropped_rows_total")):
        return []
    found = []
    for stream, count in acked(scrape).items():
        most = len(landed.by_life[life][stream]) + landed.ambiguous[stream]
        if most < count:
            found.append(f"{stream}: {most} landed, {count} counted")
    return found


@dataclass(slots=True)
class Watch:
    """Scrapes every second and checks.

    Attributes:
        during: the present disturbance; "" for none.
        hidden: sources that cannot be read -> since when.
        latest: the last scrape of each life of the exporter, by its number in `ChaosScene.lives`.
        scrapes, failed: how many were answered, and how many were not.
        seen: rules of warnings and critical findings, by disturbance.
    """

    scene: ChaosScene
    during: str = ""
    hidden: dict[str, float] = field(default_factory=dict)
    violations: list[Violation] = field(default_factory=list)
    latest: dict[int, Scrape] = field(default_factory=dict)
    scrapes: int = 0
    seen: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    failed: int = 0
    slowest: float = 0.0
    _known: dict[tuple[str, str], float] = field(default_factory=dict)
    _over: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join(2 * _TIMEOUT)

    def _run(self) -> None:
        while not self._over.wait(_EVERY):
            self._look()

    def _look(self) -> None:
        life, hidden, during = len(self.scene.lives) - 1, dict(self.hidden), self.during
        at = time.time()
        try:
            answer = requests.get(f"http://{self.scene.exporter}/metrics", timeout=_TIMEOUT)
            found = requests.get(f"http://{self.scene.exporter}/api/v1/findings", timeout=_TIMEOUT).json()
        except (requests.RequestException, ValueError):
            self.failed += 1
            if not during.startswith("exporter"):
                self._violated("a scrape is answered", at, during, "no answer")
            return
        if life != len(self.scene.lives) - 1 or not answer.ok:
            # It was restarted in between.
            return
        scrape = parsed(answer.text, at, answer.elapsed.total_seconds())
        self.slowest = max(self.slowest, scrape.seconds)
        before = self.latest.get(life)
        for detail in backward(before, scrape) if before else ():
            self._violated("no counter goes backwards", at, during, detail)
        for detail in wrong_ages(scrape, at - self.scene.began):
            self._violated("no age is negative or too long", at, during, detail)
        for detail in wrong_latencies(before, scrape) if before else ():
            self._violated("no latency is negative or of minutes", at, during, detail)
        clock = self.scene.clock
        if clock.steady_since < at - 2 * POLL_SECONDS:
            for detail in wrong_beginnings(found, self.scene.began + clock.ahead, time.time() + clock.ahead):
                self._violated("no finding begins too early or in the future", at, during, detail)
        if "management" in hidden and hidden == self.hidden:
            for detail in too_fresh(scrape, hidden["management"]):
                self._violated("no stale value is served as fresh", at, during, detail)
        if before and "amqp" in hidden and before.at > hidden["amqp"] + _REPORT_SECONDS:
            more = settled(scrape) - settled(before)
            if more:
                self._violated("nothing is acked through a hidden link", at, during, f"{more:g} messages")
        self.latest[life] = scrape
        self.scrapes += 1
        self._judge(found, at, during)

    def _judge(self, document: Mapping[str, Any], at: float, during: str) -> None:
        for cluster in document.get("clusters", []):
            for each in cluster.get("findings", []):
                if each["severity"] == "info":
                    continue
                self.seen[during][each["rule"]] += 1
                key = each["rule"], each["subject"]["name"]
                is_new = self._known.get(key, -math.inf) < at - _RECENT_SECONDS
                alone = "clock" in during and "silent" not in during
                unjustified = alone and is_new and each["rule"] not in _OF_CLOCKS
                allowed = each["rule"] == "probe-message-lost" and "node" in during
                if unjustified or (each["rule"] in NEVER and not allowed and each.get("certainty") != "early"):
                    what = f"{each['rule']} {each['subject']['name']}"
                    self._violated("no healthy object is accused", at, during, what)
                elif not alone or not is_new:
                    self._known[key] = at

    def _violated(self, invariant: str, at: float, during: str, detail: str) -> None:
        self.violations.append(Violation(invariant, at, during, detail))

    def faulty(self, since: float = 0.0) -> list[str]:
        """Return what does not work by a scrape after `since` (seconds since 1970): parts, polls, probes, sending."""
        found = [name for name in PARTS if not self.scene.answers(name)]
        scrape = self.latest.get(len(self.scene.lives) - 1)
        if scrape is None or scrape.at < since or time.time() - scrape.at > 3 * _EVERY:
            return [*found, "no scrape"]
        polls = scrape.value("ackscope_poll_success", cluster=CLUSTER)
        probes = scrape.value("ackscope_probe_running", cluster=CLUSTER)
        ages = scrape.value("ackscope_poll_age_seconds", cluster=CLUSTER, family="overview")
        found += ["polls"] * (not polls or not all(polls))
        found += ["probes"] * (not probes or not all(probes))
        found += ["age of the overview"] * (not ages or max(ages) > 3 * POLL_SECONDS)
        lag = scrape.value("ackscope_landing_upload_lag_seconds")
        waiting = scrape.value("ackscope_delivery_waiting_findings")
        found += ["uploads"] * (not lag or max(lag) > 3 * ROTATE_SECONDS)
        found += ["deliveries"] * (not waiting or max(waiting) > 0)
        return found
