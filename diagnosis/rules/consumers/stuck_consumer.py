"""stuck-consumer (B02): consumers hold messages and acknowledge none for longer than their handling takes.

A single active consumer that is stuck while standbys wait has a rule of its own, sac-stuck, because the fix differs; so
has a shovel or federation link that waits for its target, link-stalled.
"""

from collections.abc import Iterator

from ackscope.findings import Suppressed
from diagnosis.contract import RuleResult, View
from diagnosis.preconditions import unlisted_consumers, unread
from diagnosis.rules.cluster._shared.link_flow import stalled_links
from diagnosis.rules.consumers._shared.objects import queue_subject
from diagnosis.rules.consumers._shared.sessions import unreported
from diagnosis.rules.consumers._shared.stalled_consumers import stalls
from diagnosis.rules.consumers._shared.stream_readers import readers_not_listed
from diagnosis.rules.consumers._shared.stuck_finding import stuck_findings
from diagnosis.rules.consumers._shared.unattributed_consumers import judgement, settles
from diagnosis.rules.consumers._shared.unlisted_consumers import CLIENT_FAMILIES, unlisted_stalls

NAME = "stuck-consumer"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Report every queue that is stuck as a whole or in part; only as a whole where the broker lists no clients."""
    lacking = tuple(unread(NAME, view, CLIENT_FAMILIES))
    if view.lists_no_clients:
        yield from lacking or unlisted_consumers(NAME, view)
        found = (*stalls(view), *unlisted_stalls(view))
        yield from stuck_findings(view, NAME, (stall for stall in found if not stall.standbys))
        return
    if lacking:
        yield from lacking
        return
    yield from unreported(view, NAME, lambda queue: judgement(view, queue) is None and not settles(view, queue))
    yield from readers_not_listed(view, NAME)
    links = {stall.queue.key: source for source, stall in stalled_links(view)}
    for stall in stalls(view):
        if stall.queue.key in links:
            source = links[stall.queue.key]
            facts = {"link": source.name, "kind": source.kind}
            yield Suppressed(rule=NAME, subject=queue_subject(stall.queue), reason="by_link", facts=facts)
    own = (stall for stall in stalls(view) if not stall.standbys and stall.queue.key not in links)
    yield from stuck_findings(view, NAME, own)
