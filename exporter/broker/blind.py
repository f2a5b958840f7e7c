"""Blind spots: where the API answers 200 and an empty list, which looks healthy.

That is so for a user without permissions or without the tag `monitoring`, and on a broker without statistics.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ackscope.snapshot import Overview, Part, Snapshot

NO_STATISTICS = (
    "this broker collects no statistics (`management.disable_stats` or `management_agent.disable_metrics_collector`), "
    "and its empty list tells nothing; turn them on to see this"
)

OWN_ONLY = (
    "this user lacks the tag `monitoring`, and the broker shows it its own only; "
    "rabbitmqctl set_user_tags USER monitoring"
)

UNSHOWN = ("nodes", "channels", "consumers", "connections", "auth", "memory")
"""What a user without the tag `monitoring` is refused, or shown its own of as if that were all (3.10, 4.0, 4.3)."""


def is_own_only(parts: Mapping[str, Part[Any]]) -> bool:
    """Whether the user lacks the tag `monitoring`: the overview then names no node, and the nodes are refused."""
    overview = parts["overview"]
    if overview.error or overview.value is None or overview.value.rabbitmq_version is None:
        return False
    return overview.value.node is None and parts["nodes"].error is not None


def hidden_queues(snapshot: Snapshot) -> int | None:
    """How many queues the overview counts that the list does not show.

    The overview counts all queues for a user with the `monitoring` tag; the list leaves out those of virtual hosts
    where that user has no permission. The two are read a moment apart: a small number that goes away means that
    queues came and went.

    Returns:
        0 where nothing is hidden; None where it cannot be told (one of the two was not read, or the user lacks the tag
        `monitoring`: the overview then counts what the list shows).
    """
    overview, queues = snapshot.overview, snapshot.queues
    if overview.error or queues.error or overview.value is None or queues.value is None:
        return None
    if overview.value.queues is None:
        return None
    return max(0, overview.value.queues - len(queues.value))


def unseen(snapshot: Snapshot) -> dict[str, int]:
    """Kinds of objects of which the overview counts some and the list shows none.

    Returns:
        queues, channels, connections -> how many the overview counts.
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


def without_false_emptiness(parts: Mapping[str, Part[Any]]) -> dict[str, Part[Any]]:
    """The parts, without lists and sums that leave out, unsaid, what the user may not see or the broker does not know.

    A user without the tag `monitoring` is shown its own connections, channels and consumers only, and an overview of
    its own; queues, and what else is in a virtual host, are true as far as they go.

    4.3 without its metrics collector lists no channel and no connection, whatever there is; versions before answer 400
    where they have nothing to tell.
    """
    overview = parts["overview"].value
    if overview is not None and is_own_only(parts):
        unseen_parts = {
            name: replace(parts[name], value=None, at=None, error=OWN_ONLY)
            for name in ("channels", "consumers", "connections")
            if parts[name].value is not None
        }
        return {**parts, **unseen_parts, "overview": replace(parts["overview"], value=_without_sums(overview))}
    if overview is None or overview.statistics is not False or overview.connections == 0:
        return dict(parts)
    blind = {
        name: replace(parts[name], value=None, at=None, error=NO_STATISTICS)
        for name in ("channels", "connections")
        if parts[name].value == ()
    }
    return {**parts, **blind}


def _without_sums(known: Overview) -> Overview:
    """The overview without what it adds up: of one user's own it would look like the whole."""
    return Overview(
        cluster_name=known.cluster_name,
        rabbitmq_version=known.rabbitmq_version,
        erlang_version=known.erlang_version,
        statistics=known.statistics,
        rates_mode=known.rates_mode,
    )
