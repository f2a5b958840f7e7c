"""Tells whether refused logins are the retries of links: as many as these try, at their pace."""

from ackscope.clock import Instant
from diagnosis.contract import View
from diagnosis.rules.clients._shared.logins import AMQP, refused_logins

_RETRY_SECONDS = 5.0
"""Default `reconnect-delay` of federation links and shovels; each retry logs in once.

Seen on 3.10.8: 14 refused logins in 70.4 s. A link with another delay is not recognised.
"""
_TOLERANCE = 0.15
_FEWEST = 3


def refused_retries(
    view: View, links: int, failed: tuple[Instant, Instant] | None = None
) -> tuple[tuple[str, str], ...]:
    """Return the nodes and protocols at which the logins that were refused are as many as some links have tried.

    Args:
        view: the view that is being judged.
        links: number of links that retry.
        failed: if given, refusals must have begun between these two readings, of which only the second shows the
            failure of the links.
    """
    found = []
    for each in refused_logins(view, view.thresholds.clients.auth_within):
        tried = links * each.seconds / _RETRY_SECONDS
        # The readings begin and end between two retries.
        fits = abs(each.failed - tried) <= links + _TOLERANCE * tried
        began = failed is None or _began_within(view, each.since, failed)
        if each.protocol in AMQP and each.failed >= _FEWEST and each.recent and fits and began:
            found.append((each.node, each.protocol))
    return tuple(found)


def _began_within(view: View, since: Instant, failed: tuple[Instant, Instant]) -> bool:
    """Return whether refusals may have begun in a period; `since` is the last reading of logins before the first."""
    readings = [seen.at for seen in view.window.readings("auth")]
    later = next((at for at in readings if at.mono > since.mono), since)
    # Without a reading before it, they may have begun long ago.
    accepted = readings[0].mono < since.mono
    return accepted and since.mono <= failed[1].mono and later.mono >= failed[0].mono
