"""The blind spot of a user without permissions: the API then answers 200 and an empty list, which looks healthy."""

from ackscope.snapshot import Snapshot


def hidden_queues(snapshot: Snapshot) -> int | None:
    """How many queues the overview counts that the list does not show.

    The overview counts all queues for a user with the `monitoring` tag; the list leaves out those of virtual hosts
    where that user has no permission. The two are read a moment apart: a small number that goes away means that
    queues came and went.

    Returns:
        0 where nothing is hidden; None where it cannot be told (one of the two was not read).
    """
    overview, queues = snapshot.overview, snapshot.queues
    if overview.error or queues.error or overview.value is None or queues.value is None:
        return None
    if overview.value.queues is None:
        return None
    return max(0, overview.value.queues - len(queues.value))
