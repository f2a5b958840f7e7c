"""link-circular (E21): shovels move messages in a circle, so that they never arrive anywhere.

The target of a shovel is its own source, directly or through an exchange, or the source of other shovels that lead back
to it. The settings of the shovels show the circle, and the counters of its queue the flow: about as many messages are
published to it as the shovel takes from it.
"""

from collections.abc import Iterator, Mapping

from ackscope.findings import Certainty, Evidence, Finding, Severity, Subject, Unit, source
from ackscope.snapshot import Queue
from diagnosis.contract import RuleResult, View
from diagnosis.facts import queue_facts
from diagnosis.purpose import CONSUMED
from diagnosis.rules.cluster._shared.link_flow import LinkSource, Place, is_here, link_sources, link_targets
from diagnosis.rules.consumers._shared.objects import involved_consumers
from diagnosis.rules.queues._shared.message_balance import latest_run
from diagnosis.series import delta, span
from diagnosis.window import Series

NAME = "link-circular"

_BACK = 0.8
"""Least share of what a shovel takes that must be published to the queue again."""
_RATE = 1.0
"""Least number of messages a second that a shovel takes."""


def evaluate(view: View) -> Iterator[RuleResult]:
    """Follow the shovels from each of their sources; yield one finding for each circle."""
    sources = {each.queue.key: each for each in link_sources(view) if each.link is not None and is_here(each.link)}
    reached = {place: link_targets(view, each.link) for place, each in sources.items()}
    done: set[Place] = set()
    for place in sorted(sources):
        circle = () if place in done else _circle(place, reached)
        done.update(circle)
        run = _flow(view, sources[place]) if circle else ()
        if circle and span(run) >= view.limits(sources[place].queue).early:
            copies = set().union(*(reached[each] for each in circle)) - set(circle)
            yield _finding([sources[each] for each in circle], sorted(copies), run)


def _circle(start: Place, reached: Mapping[Place, frozenset[Place]]) -> tuple[Place, ...]:
    """Return the shortest way from a queue back to itself; empty if there is none."""
    ways: list[tuple[Place, ...]] = [(start,)]
    seen: set[Place] = set()
    for way in ways:
        for following in sorted(reached.get(way[-1], ())):
            if following == start:
                return way
            if following in reached and following not in seen:
                seen.add(following)
                ways.append((*way, following))
    return ()


def _flow(view: View, first: LinkSource) -> Series[Queue]:
    """Return the latest readings of a queue in which as many messages came back as were taken."""

    def circulates(pair: Series[Queue]) -> bool:
        moved = delta(pair, *CONSUMED)
        return moved >= _RATE * span(pair) and delta(pair, "publish") >= _BACK * moved

    return latest_run(view.history(first.queue), view.limits(first.queue).interval, circulates)


def _finding(circle: list[LinkSource], copies: list[Place], run: Series[Queue]) -> Finding:
    first, seconds = circle[0], span(run)
    link = first.link
    moved = delta(run, *CONSUMED)
    paths = [each.path for each in circle if each.path is not None]
    involved = involved_consumers((each.queue for each in circle), paths)
    return Finding(
        rule=NAME,
        severity=Severity.CRITICAL if copies else Severity.WARNING,
        subject=Subject(
            kind="link",
            name=first.name,
            vhost=(link.vhost if link else None) or first.queue.vhost,
            node=link.node if link else None,
        ),
        since=run[0].at.iso(),
        facts={
            "links": [each.name for each in circle],
            "vhost": (link.vhost if link else None) or first.queue.vhost,
            "queue": queue_facts(first.queue),
            "queues": [each.queue.name for each in circle],
            "copies": [name for _, name in copies],
            "moved": moved,
            "move_rate": moved / seconds,
            "published": delta(run, "publish"),
            "messages": first.queue.messages or 0,
            "dynamic": link is not None and link.type != "static",
        },
        certainty=Certainty.CERTAIN,
        seen_seconds=seconds,
        evidence=(
            Evidence(
                key="settings",
                source=source("/api/shovels", "src_queue", "dest_queue", "dest_exchange") + source("/api/bindings"),
            ),
            Evidence(
                key="moved",
                value=moved,
                unit=Unit.MESSAGES,
                source=source("/api/queues", "message_stats.ack", "message_stats.publish"),
            ),
        ),
        involved=involved,
    )
