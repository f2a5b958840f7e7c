"""publishers-paused: all publishers of the cluster stood still together, and went on.

A resource alarm blocks every publisher of the cluster. If it comes and goes, it is over when somebody looks. The broker
keeps neither the alarm nor the state of connections, but it samples how many messages all channels have published: that
stands still for some samples between samples at a steady rate. Applications that have nothing to do with each other do
not pause together for the same seconds on connections that stay open. So at least two clients with different names must
have published before the first pause and still publish, neither of which consumes: who processes what another one
publishes pauses with it. A load in batches is not steady, and a client that came back opened its connection later.
Source: https://www.rabbitmq.com/docs/alarms; seen on 3.10.8 and 4.3.6 with alarms of 12 s
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from statistics import median
from typing import NamedTuple

from ackscope.clock import iso
from ackscope.findings import Certainty, Evidence, Finding, Severity, Unit, source
from ackscope.past import ClusterPast, NodePast
from ackscope.snapshot import Connection
from diagnosis.contract import RuleResult, View
from diagnosis.facts import client_name
from diagnosis.queue_families import name_pattern
from diagnosis.rules.clients._shared.connections import involved_connections
from diagnosis.rules.nodes._shared.node_history import cluster_subject
from diagnosis.series import delta, span

NAME = "publishers-paused"

_OLD = 150.0
"""Seconds for which samples are used: they are read once a minute."""
_LEAST_SECONDS, _STEADY_STEPS = 8.0, 6
"""Shortest pause, because a sample without a publish may come from delayed statistics; and least samples of a load."""
_STEADY_SHARE, _LOW, _HIGH = 0.9, 0.5, 2.0
"""Share of the samples whose rate must be within this range around the usual one."""
_MOST_PAUSED = 0.5
"""Share of the time; a load that rests for longer than it publishes is not steady."""
_WENT_ON = 0.2
"""Least share of the usual publishes that were delivered in a pause if consumers went on."""
_SAMPLES = {"memory": "mem_used_details.samples", "disk": "disk_free_details.samples"}
_ERROR, _BEFORE_SECONDS = 1.1, 10.0
"""A channel published before a pause if it published by so many seconds more than it can have since, with an error."""


@dataclass(frozen=True, slots=True)
class Pauses:
    """Times at which nobody published, and the load around them.

    Attributes:
        times: begin and end of each, seconds since 1970, oldest first.
        usual_rate: messages per second at other times.
        delivered: messages delivered meanwhile; 0 if so few that they may be the last ones of before.
        watched_seconds: since the first publish that is sampled.
    """

    times: tuple[tuple[float, float], ...]
    usual_rate: float
    delivered: int
    watched_seconds: float

    @property
    def longest_seconds(self) -> float:
        """Duration of the longest one."""
        return max(end - begin for begin, end in self.times)


class NearLimit(NamedTuple):
    """The extreme of a resource of a node within the samples, in bytes, and whether it reached its limit."""

    node: str
    resource: str
    extreme: int
    limit: int
    reached: bool


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield one finding for the cluster."""
    seen = next((each for each in reversed(view.window.readings("overview")) if each.value.past is not None), None)
    if seen is None or view.now.since(seen.at) > _OLD:
        return
    found = pauses(seen.value.past, view.thresholds.publishers.pause_messages)
    if found is None:
        return
    publishers = _independent(view, found)
    if len(publishers) >= view.thresholds.publishers.pause_publishers:
        yield _finding(view, seen.value.past, found, publishers)


def pauses(past: ClusterPast, least: int) -> Pauses | None:
    """Return when a steady load stood still; None if it is not steady, never did so, or has not gone on yet.

    Args:
        past: the samples.
        least: messages that are usually published in a pause, at least.
    """
    published = _increases(past.published)
    delivered = _increases(past.delivered)[-len(published) :] if published else ()
    if not published:
        return None
    begin = past.begin + (len(past.published) - 1 - len(published)) * past.step
    runs = [(silent, [place for place, _ in each]) for silent, each in _runs(published)]
    # The first and the last sample beside a pause contain a part of it.
    beside = {place for silent, run in runs if silent for place in (run[0] - 1, run[-1] + 1)}
    others = [count for place, count in enumerate(published) if count and place not in beside]
    if len(others) < _STEADY_STEPS:
        return None
    usual = median(others)
    steady = sum(_LOW * usual <= count <= _HIGH * usual for count in others)
    silent_runs = [run for silent, run in runs if silent and run[-1] + 1 < len(published)]
    silent_steps = sum(len(run) for run in silent_runs)
    times = [_time_of(run, published, usual) for run in silent_runs]
    whole = [
        (run, time)
        for run, time in zip(silent_runs, times, strict=True)
        if (time[1] - time[0]) * past.step >= _LEAST_SECONDS and (time[1] - time[0]) * usual >= least
    ]
    if not whole or steady < _STEADY_SHARE * len(others) or silent_steps > _MOST_PAUSED * len(published):
        return None
    sent = sum(delivered[place] for run, _ in whole for place in run if place < len(delivered))
    return Pauses(
        times=tuple((begin + start * past.step, begin + end * past.step) for _, (start, end) in whole),
        usual_rate=usual / past.step,
        delivered=sent if sent >= _WENT_ON * usual * sum(len(run) for run, _ in whole) else 0,
        watched_seconds=len(published) * past.step,
    )


def _time_of(run: Sequence[int], published: Sequence[int], usual: float) -> tuple[float, float]:
    """Return begin and end of a pause in steps, from the samples without a publish and the partial ones beside them."""
    before, after = published[run[0] - 1], published[run[-1] + 1]
    return run[0] - 1 + min(1.0, before / usual), run[-1] + 2 - min(1.0, after / usual)


def _increases(counter: Sequence[int]) -> tuple[int, ...]:
    """Return the increases between samples since the counter began, and began to rise."""
    found = [newer - older for older, newer in pairwise(counter)]
    # A counter falls when a node restarts or leaves; padding ends with a rise.
    fallen = max((place for place, each in enumerate(found) if each < 0), default=-1)
    found = found[fallen + 1 :]
    first = next((place for place, each in enumerate(found) if each), len(found))
    return tuple(found[first:])


def _runs(published: Sequence[int]) -> Iterator[tuple[bool, list[tuple[int, int]]]]:
    for silent, each in groupby(enumerate(published), key=lambda it: it[1] == 0):
        yield silent, list(each)


def _independent(view: View, found: Pauses) -> dict[str, list[Connection]]:
    """Return publishers that kept their connections over all pauses and do not consume, by the form of their names."""
    consuming = {client_name(view.connection(each.connection_name)) for each in view.every_consumer}
    first, last = found.times[0][0], found.times[-1][1]
    groups: dict[str, list[Connection]] = {}
    for channel in view.channels:
        connection = view.connection(channel.connection_name)
        if connection is None or connection.connected_at is None or connection.connected_at >= first:
            continue
        history, name = view.channel_history(channel.name), client_name(connection) or ""
        seconds, published = span(history), delta(history, "publish")
        if name in consuming or channel.consumer_count or not published or not seconds:
            continue
        longest = _ERROR * (view.now.wall - last) + _BEFORE_SECONDS
        if (channel.stats.publish or 0) >= published / seconds * longest:
            groups.setdefault(name_pattern(name), []).append(connection)
    return groups


def _finding(view: View, past: ClusterPast, found: Pauses, publishers: dict[str, list[Connection]]) -> Finding:
    connections = [each for group in publishers.values() for each in group]
    alarms = sorted(
        {
            f"{alarm.resource} on {alarm.node}"
            for seen in view.window.readings("health")
            for check in seen.value
            for alarm in check.alarms
        }
    )
    near = [each for node in past.nodes for each in _limits(view, node)]
    reached = [each for each in near if each.reached]
    times = len(found.times)
    return Finding(
        rule=NAME,
        severity=Severity.WARNING if times > 1 or alarms or reached else Severity.INFO,
        subject=cluster_subject(view),
        since=iso(found.times[0][0]),
        facts={
            "times": times,
            "first_at": iso(found.times[0][0]),
            "last_at": iso(found.times[-1][0]),
            "over_at": iso(found.times[-1][1]),
            "longest_seconds": found.longest_seconds,
            "usual_rate": found.usual_rate,
            "delivered": found.delivered,
            "watched_seconds": found.watched_seconds,
            "clients": sorted({client_name(each) or each.name for each in connections}),
            "alarms_seen": alarms,
            "reached": [{"node": each.node, "resource": each.resource} for each in reached],
            "limits_known": bool(near),
        },
        certainty=Certainty.CERTAIN if alarms else Certainty.LIKELY,
        seen_seconds=found.watched_seconds,
        evidence=(
            *(
                Evidence(
                    key="pause",
                    value=end - begin,
                    unit=Unit.SECONDS,
                    source=source("/api/overview", "message_stats.publish_details.samples"),
                    facts={"from_at": iso(begin), "to_at": iso(end)},
                )
                for begin, end in found.times[-5:]
            ),
            Evidence(
                key="usual",
                value=found.usual_rate,
                unit=Unit.PER_SECOND,
                source=source("/api/overview", "message_stats.publish_details.samples"),
            ),
            Evidence(key="kept", value=len(connections), source=source("/api/connections", "connected_at")),
            *(
                Evidence(
                    key=each.resource,
                    value=each.extreme,
                    unit=Unit.BYTES,
                    source=source("/api/nodes", _SAMPLES[each.resource]),
                    facts={"node": each.node, "limit_bytes": each.limit},
                )
                for each in near[:6]
            ),
        ),
        involved=involved_connections(connections),
    )


def _limits(view: View, past: NodePast) -> Iterator[NearLimit]:
    """Yield the extremes of a node among its samples, each with the limit at which its alarm begins."""
    node = view.node(past.name)
    if node is None:
        return
    if past.mem_used is not None and node.mem_limit is not None:
        yield NearLimit(past.name, "memory", past.mem_used, node.mem_limit, past.mem_used >= node.mem_limit)
    if past.disk_free is not None and node.disk_free_limit is not None:
        yield NearLimit(past.name, "disk", past.disk_free, node.disk_free_limit, past.disk_free <= node.disk_free_limit)
