"""pub-unroutable-dropped (A01): messages reach no queue, and the broker confirms and drops them.

The publisher believes that it succeeded. Source: https://www.rabbitmq.com/docs/publishers#unroutable
"""

from collections.abc import Iterator

from ackscope.findings import Facts, Inconclusive, Severity
from diagnosis.contract import RuleResult, View
from diagnosis.preconditions import unread
from diagnosis.rules.publishers._shared.lossy_exchanges import DROPPED
from diagnosis.rules.publishers._shared.unlisted_losses import uncertain_answers
from diagnosis.rules.publishers._shared.unroutable import evaluate_unroutable
from diagnosis.rules.publishers._shared.unroutable_total import unroutable_total

NAME = "pub-unroutable-dropped"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield one finding for each exchange that drops messages; one for the cluster if nothing counts by exchange."""
    if view.counts_losses:
        yield from evaluate_unroutable(view, NAME, DROPPED, worst=Severity.CRITICAL)
        for exchange, rate in uncertain_answers(view):
            facts: Facts = {"vhost": exchange.vhost, "lost_rate": rate}
            yield Inconclusive(rule=NAME, reason="perhaps_answers", facts=facts)
        return
    lacking = tuple(unread(NAME, view, ("channels",)))
    if lacking:
        yield from lacking
        if view.lists_no_clients:
            yield from unroutable_total(view, NAME)
        return
    yield from evaluate_unroutable(view, NAME, DROPPED, worst=Severity.CRITICAL)
