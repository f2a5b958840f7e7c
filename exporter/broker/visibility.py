"""Detects objects that the user cannot see: the API answers 200 with an empty list, which looks healthy.

This happens to a user without permissions or without the tag `monitoring`, and on a broker without statistics.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ackscope.snapshot import Overview, Part, Snapshot

NO_STATISTICS = (
    "this broker collects no statistics (`management.disable_stats` or `management_agent.disable_metrics_collector`), "
    "so its list is always empty; enable them to see this"
)

OWN_OBJECTS_ONLY = (
    "this user lacks the tag `monitoring`, and the broker shows it only its own objects; "
    "rabbitmqctl set_user_tags USER monitoring"
)

NEEDS_MONITORING_TAG = ("nodes", "channels", "consumers", "connections", "auth", "memory", "streams")
"""Families that the broker refuses to a user without the tag `monitoring`, or reduces to the user's own objects.

The reduced lists look complete (3.10, 4.0, 4.3).
"""


def sees_own_objects_only(parts: Mapping[str, Part[Any]]) -> bool:
    """Whether the user lacks the tag `monitoring`: the overview then names no node, and the nodes are refused."""
    overview = parts["overview"]
    if overview.error or overview.value is None or overview.value.rabbitmq_version is None:
        return False
    return overview.value.node is None and parts["nodes"].error is not None


def hidden_queues(snapshot: Snapshot) -> int | None:
    """Return the number of queues that the overview counts but the list does not contain.

    For a user with the tag `monitoring` the overview counts all queues, while the list omits those of virtual hosts
    where that user has no permission. The two are read at slightly different times: a small number that disappears
    again means that queues were created or deleted.

    Returns:
        0 if none is hidden; None if unknown: one of the two was not read, or the user lacks the tag `monitoring`, so
        that the overview only counts the queues in the list.
    """
    overview, queues = snapshot.overview, snapshot.queues
    if overview.error or queues.error or overview.value is None or queues.value is None:
        return None
    if overview.value.queues is None:
        return None
    return max(0, overview.value.queues - len(queues.value))


def invisible_objects(snapshot: Snapshot) -> dict[str, int]:
    """Return the kinds of objects that the overview counts while their list is empty.

    Returns:
        "queues", "channels" or "connections" -> the overview's count.
    """
    overview = snapshot.overview
    if overview.error or overview.value is None:
        return {}
    counted = {
        "queues": overview.value.queues,
        "channels": overview.value.channels,
        "connections": overview.value.connections,
    }
    return {
        kind: count
        for kind, count in counted.items()
        if count and (part := snapshot.parts[kind]).value == () and not part.error
    }


def without_misleading_lists(parts: Mapping[str, Part[Any]]) -> dict[str, Part[Any]]:
    """Return the parts. Lists that are silently incomplete are replaced by errors, and such totals are removed.

    A user without the tag `monitoring` sees only its own connections, channels and consumers, and totals of these in
    the overview. Its queues and other virtual host objects are incomplete but correct.

    4.3 without its metrics collector always returns empty lists of channels and connections; earlier versions answer
    400.
    """
    overview = parts["overview"].value
    if overview is not None and sees_own_objects_only(parts):
        incomplete = {
            name: replace(parts[name], value=None, at=None, error=OWN_OBJECTS_ONLY)
            for name in ("channels", "consumers", "connections")
            if parts[name].value is not None
        }
        return {**parts, **incomplete, "overview": replace(parts["overview"], value=_without_totals(overview))}
    if overview is None or overview.statistics is not False or overview.connections == 0:
        return dict(parts)
    always_empty = {
        name: replace(parts[name], value=None, at=None, error=NO_STATISTICS)
        for name in ("channels", "connections")
        if parts[name].value == ()
    }
    return {**parts, **always_empty}


def _without_totals(overview: Overview) -> Overview:
    """Return the overview without totals: totals of one user's objects would look like those of the whole broker."""
    return Overview(
        cluster_name=overview.cluster_name,
        rabbitmq_version=overview.rabbitmq_version,
        erlang_version=overview.erlang_version,
        statistics=overview.statistics,
        rates_mode=overview.rates_mode,
    )
