"""`ackscope diagnose --watch`: continuous diagnosis. Prints the full report to a terminal, changes to a pipe."""

import shutil
import signal
import sys
from collections.abc import Iterator
from queue import Empty

import orjson

from ackscope.clock import Instant
from ackscope.errors import BrokerError
from ackscope.findings import DiagnosisResult, Finding, exit_code
from ackscope.reports import runbook_command
from ackscope.unix_signals import UnixSignals
from diagnosis.engine import diagnose
from diagnosis.text import Cluster, render_result, render_summary
from diagnosis.thresholds import Thresholds
from exporter.api.documents import cluster_findings
from exporter.commands.observer import BrokerObserver
from exporter.commands.report import report
from exporter.commands.rollups import RollupBaselines

EVERY = 5.0
"""Seconds between snapshots, the refresh interval of the broker's statistics."""

_CLEAR = "\x1b[H\x1b[2J"


def watch(look: BrokerObserver, usual: RollupBaselines | None = None, *, as_json: bool, everything: bool) -> int:
    """Run until interrupted. Returns the exit code of the last result.

    Uses the exporter's thresholds, so a warning must last as long as in the exporter before it is reported.

    Raises:
        BrokerError: the very first snapshot failed.
        DataError: the rollups cannot be read.
    """
    verdict: DiagnosisResult | None = None
    with UnixSignals((signal.SIGINT, signal.SIGTERM)) as signals:
        while True:
            began = look.clock.now()
            try:
                look.look(EVERY * 2)
            except BrokerError as error:
                if verdict is None:
                    raise
                print(f"{began.iso()} poll failed: {error}", file=sys.stderr)
            before = verdict
            now = look.clock.now()
            bands = usual.at(now.wall) if usual else None
            verdict = diagnose(look.window, look.outcomes, now, Thresholds(), before, baselines=bands)
            _show(look, verdict, before, as_json=as_json, everything=everything)
            if _stop_requested(signals, max(0.0, EVERY - look.clock.now().since(began))):
                return exit_code([verdict])


def _stop_requested(signals: UnixSignals, seconds: float) -> bool:
    """Wait up to `seconds`. Returns whether Ctrl-C or SIGTERM arrived."""
    try:
        signals.get(timeout=seconds)
    except Empty:
        return False
    return True


def _show(
    look: BrokerObserver, verdict: DiagnosisResult, before: DiagnosisResult | None, *, as_json: bool, everything: bool
) -> None:
    now, latest = look.clock.now(), look.window.latest
    if as_json:
        entry = cluster_findings(look.cluster, latest, verdict, now, look.management)
        document = {"now": now.iso(), "clusters": [entry]}
        text = orjson.dumps(document).decode() + "\n"
    elif sys.stdout.isatty():
        broker = latest.broker if latest else None
        columns = shutil.get_terminal_size().columns
        cluster = Cluster.of(latest, look.management)
        text = _CLEAR + report(render_result(verdict, cluster), broker, look.outcomes, columns, everything=everything)
        text += f"\npolling every {EVERY:.0f} s; Ctrl-C to stop\n"
    else:
        text = "".join(f"{line}\n" for line in changes(verdict, before, now))
    sys.stdout.write(text)
    sys.stdout.flush()


def changes(verdict: DiagnosisResult, before: DiagnosisResult | None, now: Instant) -> Iterator[str]:
    """Yield a line for each finding that began, ended or changed its severity.

    The first diagnosis yields one line if there are no findings.
    """
    here = {finding.key: finding for finding in verdict.findings}
    there = {finding.key: finding for finding in before.findings} if before else {}
    if before is None and not here:
        yield f"{now.iso()} no findings yet; {len(verdict.checked)} rules are checked every {EVERY:.0f} s"
    for key, finding in here.items():
        old = there.get(key)
        if old is None or old.severity is not finding.severity:
            yield f"{now.iso()} {_line(finding)}"
    for key, finding in there.items():
        if key not in here:
            yield f"{now.iso()} ended: {finding.rule}: {finding.subject}"


def _line(finding: Finding) -> str:
    return f"{finding.severity.value} {finding.rule}: {render_summary(finding)} [{runbook_command(finding.rule)}]"
