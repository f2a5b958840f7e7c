"""One whole story on a real broker: healthy, then three faults at once, then the broker killed and back.

The stages build on each other and are slow, so each broker's story is lived once; the tests look at what was seen.
"""

import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import pyarrow.dataset as ds
import requests

from ackscope import manifest, tables
from lab.demo import summary
from lab.demo.prometheus import CONFIRM_P99, answers, query
from lab.demo.stack import CLUSTER, Stack, running_stack
from tests.e2e.panels import Panel, ask

FAULTS = ("stuck-consumer", "requeue-loop", "pub-nacked-overflow")
INTERVAL = 5.0
"""The demo's polling interval, seconds."""
AWAY = 14.0
"""The broker is away until everything known of it is so old, seconds."""
_HEALTHY, _DETECT, _NOTICED, _BACK = 35.0, 120.0, 60.0, 120.0
_ROLLED = 480.0
"""A batch takes a minute where Java shares its cores with a dozen others."""


@dataclass(slots=True)
class Story:
    """What was seen in each stage; durations in seconds.

    Attributes:
        youngest_away: age of the youngest part at the end of the time that the broker was away; 0 where one was gone.
        fresh_after: from the return of the broker until every family and every probe was fresh again.
        landed, rolled: probe messages in the landing files, and in the rollups made of them.
    """

    broker: str = ""
    healthy: list[dict[str, Any]] = field(default_factory=list)
    probes: list[dict[str, Any]] = field(default_factory=list)
    metrics: str = ""
    prometheus_p99: dict[str, float] = field(default_factory=dict)
    subjects: dict[str, str] = field(default_factory=dict)
    sick: list[dict[str, Any]] = field(default_factory=list)
    detected_after: dict[str, float] = field(default_factory=dict)
    page: str = ""
    panels: list[Panel] = field(default_factory=list)
    youngest_away: float = 0.0
    answered_away: bool = False
    fresh_after: float = -1.0
    landed: int = 0
    rolled: int = 0


def live(asked: str, read_page: Callable[[str, str], str]) -> Story:
    """Live the whole story on one version of the broker.

    Args:
        asked: the version as the lab names it.
        read_page: (URL of the page, text to wait for) -> the text of the page, read in a real browser.
    """
    story = Story()
    with running_stack(broker=asked) as stack:
        story.broker = stack.lab.broker
        _be_healthy(stack, story)
        _fall_ill(stack, story)
        story.page = read_page(stack.dashboard, FAULTS[0])
        _lose_the_broker(stack, story)
        _count(stack, story)
    return story


def pressing(findings: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those that are more than information: a fact about how things are declared is no fault."""
    return [finding for finding in findings if finding["severity"] != "info"]


def _until(condition: Callable[[], bool], seconds: float) -> float | None:
    """Seconds until `condition` held; None where it did not within `seconds`."""
    began = time.monotonic()
    while time.monotonic() - began < seconds:
        if condition():
            return time.monotonic() - began
        time.sleep(0.5)
    return None


def _be_healthy(stack: Stack, story: Story) -> None:
    watched = summary.Watched()
    _until(lambda: bool(pressing(watched.see(stack.get("/api/v1/findings")))), _HEALTHY)
    story.healthy = list(watched.findings.values())
    story.probes = stack.get("/api/v1/probes")["clusters"][0]["probes"]
    story.metrics = requests.get(f"http://{stack.exporter}/metrics", timeout=10).text
    story.prometheus_p99 = query(stack.prometheus, CONFIRM_P99, "queue_type")


def _fall_ill(stack: Stack, story: Story) -> None:
    began = time.monotonic()
    for fault in FAULTS:
        story.subjects[fault] = stack.inject(fault)["subject"]["name"]
    watched = summary.Watched()

    def all_found() -> bool:
        watched.see(stack.get("/api/v1/findings"))
        for finding in pressing(watched.findings.values()):
            story.detected_after.setdefault(finding["rule"], time.monotonic() - began)
        return set(FAULTS) <= set(story.detected_after)

    _until(all_found, _DETECT)
    story.sick = list(watched.findings.values())
    # Two scrapes after the last finding, so that rates have something to compare.
    _until(lambda: False, 2 * INTERVAL)
    story.panels = ask(stack.prometheus, CLUSTER)


def _by_family(stack: Stack, metric: str) -> dict[str, float]:
    """What the exporter says of each part of the cluster's snapshot."""
    text = requests.get(f"http://{stack.exporter}/metrics", timeout=10).text
    return {
        found["family"]: float(found["value"])
        for found in re.finditer(rf'^{metric}{{.*family="(?P<family>\w+)".*}} (?P<value>\S+)$', text, re.MULTILINE)
    }


def _all_fresh(stack: Stack) -> bool:
    """Every family within two of its intervals, and every probe stream running and successful."""
    outcomes = stack.get("/api/v1/probes")["clusters"][0]["probes"]
    probing = outcomes and all(outcome["state"] == "running" for outcome in outcomes)
    parts = stack.get("/api/v1/snapshot")["clusters"][0]
    clean = all(parts[family]["error"] is None for family in parts["ages"])
    intervals = _by_family(stack, "ackscope_poll_interval_seconds")
    young = all(age <= 2 * intervals[name] for name, age in _by_family(stack, "ackscope_poll_age_seconds").items())
    return bool(probing and clean and young)


def _lose_the_broker(stack: Stack, story: Story) -> None:
    stack.lab.kill(0)
    before = _by_family(stack, "ackscope_poll_age_seconds")

    def all_old() -> bool:
        # A reading that ended just before is not on the page of `before`: it counts from its own end.
        ages = _by_family(stack, "ackscope_poll_age_seconds")
        story.youngest_away = min((ages.get(name, 0.0) for name in before), default=0.0)
        return story.youngest_away >= AWAY

    _until(all_old, _NOTICED)
    story.answered_away = answers(f"http://{stack.exporter}/-/healthy")
    stack.lab.restart(0)
    fresh_after = _until(lambda: _all_fresh(stack), _BACK)
    story.fresh_after = -1.0 if fresh_after is None else fresh_after


def _count(stack: Stack, story: Story) -> None:
    # The stream has the machine for itself then.
    for name in ("exporter", "workload", "dashboard", "prometheus"):
        stack.services.stop(name)
    story.landed = summary.rows(stack.landing, {tables.PROBE_MESSAGES.name: tables.PROBE_MESSAGES})

    def rolled() -> bool:
        known = manifest.read(stack.rollups, CLUSTER)
        files = [str(path) for path in known.paths(stack.rollups, tables.OUTCOMES_1M.name)]
        story.rolled = sum(ds.dataset(files, format="parquet").to_table(columns=["messages"])["messages"].to_pylist())
        return story.rolled == story.landed

    _until(rolled, _ROLLED)
