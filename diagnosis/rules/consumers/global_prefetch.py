"""global-prefetch (B18): a prefetch that all consumers of a channel share (basic.qos with global=true).

Seen in `global_prefetch_count`, which brokers from 4.0 on do not tell. Deprecated: 4.3 refuses it by default, and
quorum queues never took it: they close the connection (540).
Source: https://www.rabbitmq.com/docs/consumer-prefetch#sharing-the-limit; seen on 3.10, 4.0 and 4.3.
"""

from collections import defaultdict
from collections.abc import Iterator
from shlex import quote

from ackscope.findings import Severity, Subject
from ackscope.reports import EvidenceReport, FindingReport, InconclusiveReport, runbook
from ackscope.snapshot import Channel
from diagnosis.contract import RuleResult, View
from diagnosis.words import amount, client, some

NAME = "global-prefetch"


def evaluate(view: View) -> Iterator[RuleResult]:
    """List the channels with a shared limit."""
    if view.version is not None and view.version >= (4, 0):
        yield InconclusiveReport(
            rule=NAME,
            because="brokers from 4.0 on do not tell whether a channel shares its prefetch",
            needs="nothing to be done here: search the applications for basic.qos with global=true",
            permanent=True,
        )
        return
    found: dict[str, list[Channel]] = defaultdict(list)
    for channel in view.channels:
        if channel.global_prefetch_count:
            found[channel.vhost or ""].append(channel)
    yield from (_finding(view, vhost, channels) for vhost, channels in sorted(found.items()))


def _finding(view: View, vhost: str, channels: list[Channel]) -> FindingReport:
    who = sorted({client(view.connection(each.connection_name), each.connection_name) for each in channels})
    told = sorted(f"{each.name!r}: {each.global_prefetch_count}" for each in channels)
    return FindingReport(
        rule=NAME,
        severity=Severity.INFO,
        subject=Subject(kind="vhost", name=vhost),
        since=None,
        summary=(
            f"{amount(len(channels), 'channel')} in vhost {vhost!r} with a prefetch that their consumers share "
            f"(global=true): {some(map(repr, who))}"
        ),
        cause=(
            "basic.qos was called with global=true. One slow consumer of such a channel uses up the limit of the "
            "others; "
            "a quorum queue refuses such a consumer and closes its connection (540), and from 4.3 on the flag has no "
            "effect by default: each consumer gets the whole limit."
        ),
        evidence=(
            EvidenceReport(
                what="shared prefetch",
                value=some(told, 10),
                expected="0",
                source="/api/channels global_prefetch_count",
            ),
        ),
        next_steps=(
            f"find them: rabbitmqctl list_channels -p {quote(vhost)} connection number global_prefetch_count",
            "call basic.qos with global=false before basic.consume: then each consumer has the limit for itself",
        ),
        runbook=runbook(NAME),
    )
