"""A publish that makes the broker close its channel, again and again: which of three errors it was.

The management API shows no reason. What it shows is how long the broker's text was, and how much the client sent
(see `diagnosis.closing`); a text of that length, of a name that exists or is gone, is told with that much confidence
and no more. The broker's log has the words.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from shlex import quote

from ackscope.findings import Severity
from ackscope.reports import EvidenceReport, FindingReport, runbook
from diagnosis.closing import Closing, closings, text_bytes
from diagnosis.contract import View
from diagnosis.kept import kept
from diagnosis.words import lasting, size

NOTHING = 1 / 3
"""Of events a cycle, less than this are none: the broker renews counters by turns."""
_FRAMES = 72
"""Bytes of the frames of a publish with an empty name and key, its channel opened and closed."""
_TOO_LARGE = "PRECONDITION_FAILED - message size  is larger than configured max size "
_DIGITS = range(12, 23)
"""Of both sizes in that text together."""
_MOST_NAME = 100
"""Bytes of a name that anybody gives to an exchange."""
_FEW = 4
"""Packets in the latest readings that show that it goes on."""
_LONGEST_NAME = 30
"""A missing exchange whose name has more bytes is told only where no refused publish explains it better."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A connection whose every publish closes its channel.

    Attributes:
        error: bytes of the broker's text that ends its channels.
        received: bytes that the client sent for each.
        oversized: by what it sends and by the text's length, the messages are too large.
        forbidden: exchanges for which a refusal of this user would be as long as the text.
        gone: exchanges that were there within the window, and whose absence would be told in as many bytes.
        missing: bytes of the name of a missing exchange that would make the text; 0 where none would.
    """

    closing: Closing
    error: int
    received: float
    oversized: bool
    forbidden: tuple[str, ...]
    gone: tuple[str, ...]
    missing: int

    @property
    def is_forbidden(self) -> bool:
        """A refusal explains it better than an exchange that is missing."""
        likely = 0 < self.missing <= _LONGEST_NAME
        return bool(self.forbidden) and not (self.oversized or self.gone or likely)


def refused(view: View) -> tuple[Refused, ...]:
    """Connections whose channels the broker closes in a loop while they publish, and do nothing else."""
    return kept(view, _refused)


def finding(view: View, rule: str, each: Refused, summary: str, cause: str, steps: Iterable[str]) -> FindingReport:
    """The finding for one connection: information first, as an application that is being mended looks the same."""
    closing = each.closing
    after = view.thresholds.publishers.closing_after
    late = closing.lasts >= after
    soon = "" if late else f" (seen for {lasting(closing.lasts)}; a warning after {lasting(after)})"
    where = f" at {closing.peer}" if closing.peer else ""
    return FindingReport(
        rule=rule,
        severity=Severity.WARNING if late else Severity.INFO,
        subject=closing.subject,
        since=closing.since.iso(),
        summary=f"{closing.client!r}{where} {summary}: {closing.rate:.1f} channels/s closed by the broker{soon}",
        cause=cause,
        evidence=_evidence(each),
        next_steps=tuple(steps),
        runbook=runbook(rule),
    )


def in_log(error: str) -> str:
    """The command that shows the broker's own words; it is the same line in every version."""
    words = f"caused a channel exception {error}"
    return f"read the reason in the log of the node: grep -B 1 -F -- {quote(words)} /var/log/rabbitmq/*.log | tail"


def _evidence(each: Refused) -> tuple[EvidenceReport, ...]:
    closing = each.closing
    source = "/api/connections send_oct, send_cnt"
    items = [
        EvidenceReport(
            what="channels opened and closed",
            value=f"{closing.rate:.1f}/s for {lasting(closing.lasts)}",
            expected="one that stays",
            source="/api/overview churn_rates.channel_created, channel_closed; /api/connections",
        ),
        EvidenceReport(
            what="publishes that count",
            value=f"{closing.published:.1f} a channel",
            expected="all",
            source="/api/overview message_stats.publish",
        ),
    ]
    items.append(EvidenceReport(what="length of the error that ends each", value=f"{each.error} bytes", source=source))
    items.append(
        EvidenceReport(
            what="sent by the client before each end",
            value=size(each.received),
            source="/api/connections recv_oct",
        )
    )
    return tuple(items)


def _refused(view: View) -> tuple[Refused, ...]:
    found = []
    for closing in closings(view):
        if closing.whole or closing.lasts < view.thresholds.early or not _goes_on(view, closing):
            continue
        idle = max(closing.declares, closing.delivered, closing.acked, closing.published) < NOTHING
        each = _judged(view, closing)
        # Of what the cluster counts a part may be others' doing; so much sent for so short an answer is a publish.
        if each.oversized or ((idle or not closing.alone) and (each.is_forbidden or each.missing)):
            found.append(each)
    return tuple(found)


def _goes_on(view: View, closing: Closing) -> bool:
    """Whether the broker answered it lately; it renews the figures every 5 s: of two readings one may show nothing."""
    lately = view.connection_history(closing.connection.name)[-3:]
    return (lately[-1].value.send_cnt or 0) - (lately[0].value.send_cnt or 0) >= _FEW if lately else False


def _judged(view: View, closing: Closing) -> Refused:
    vhost = closing.connection.vhost or "/"
    error, received = closing.error or 0, closing.received or 0.0
    missing = error - text_bytes(_missing("", vhost))
    # Less than a publish takes is none: an acknowledgement, say.
    if not 0 < missing <= _MOST_NAME or received < _FRAMES + missing:
        missing = 0
    large = received >= view.thresholds.publishers.closing_bytes
    return Refused(
        closing=closing,
        error=error,
        received=received,
        oversized=large and error - text_bytes(_TOO_LARGE) in _DIGITS,
        forbidden=_forbidden(view, closing, error, received),
        gone=tuple(name for name in _gone(view, vhost) if text_bytes(name) == missing),
        missing=missing,
    )


def _missing(name: str, vhost: str) -> str:
    return f"NOT_FOUND - no exchange '{name}' in vhost '{vhost}'"


def _forbidden(view: View, closing: Closing, error: int, received: float) -> tuple[str, ...]:
    """Exchanges that this user may not write to, by the length of what the broker would say."""
    vhost, user = closing.connection.vhost or "/", closing.connection.user or ""
    names = sorted({exchange.name or "amq.default" for exchange in view.exchanges if exchange.vhost == vhost})
    return tuple(
        name
        for name in names
        if error in {text_bytes(_refusal(word, name, vhost, user)) for word in _words(view)}
        and received >= _FRAMES + (0 if name == "amq.default" else text_bytes(name))
    )


def _words(view: View) -> tuple[str, ...]:
    """The broker says what access it refused from 4.0 on (seen: 3.10.8 without, 4.0.5 with the word)."""
    if view.version is None or (3, 10) < view.version < (4, 0):
        return ("", "write ")
    return ("write ",) if view.version >= (4, 0) else ("",)


def _refusal(word: str, name: str, vhost: str, user: str) -> str:
    return f"ACCESS_REFUSED - {word}access to exchange '{name}' in vhost '{vhost}' refused for user '{user}'"


def _gone(view: View, vhost: str) -> list[str]:
    """Exchanges of a virtual host that an earlier reading holds and the latest does not."""
    here = {exchange.key for exchange in view.exchanges}
    held = {exchange.key for seen in view.window.readings("exchanges") for exchange in seen.value}
    return sorted(name for where, name in held - here if where == vhost)
