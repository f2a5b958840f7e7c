"""Triage of all clusters: in memory for readers, and in one file that survives a restart."""

import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import orjson
from pydantic import TypeAdapter

from ackscope.atomic_file import write_atomically
from ackscope.clock import Instant, iso
from ackscope.errors import DataError, UsageError
from ackscope.findings import DiagnosisResult, Finding, FindingKey, Severity, flat
from ackscope.log import get_logger
from ackscope.state_file import read_state
from ackscope.triage import Triage

log = get_logger(__name__)

MAX_ENTRIES = 1000
"""Findings with triage, in all clusters."""
FORGET_SECONDS = 1800.0
"""A finding that has been absent for this time is a new one when it returns: nobody has acknowledged it."""
_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    cluster: str
    key: FindingKey
    triage: Triage


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    version: int
    entries: tuple[_Entry, ...]


_FILE = TypeAdapter(_File)


@dataclass(frozen=True, slots=True, kw_only=True)
class TriageChange:
    """What one request changes; None leaves a part as it is.

    Attributes:
        by: who requests it, "" if unknown.
        acknowledged: acknowledge the finding, or withdraw that.
        owner: who works on it; "" for nobody.
        mute_seconds: how long to mute it from now on; 0 ends the mute.
        reason: why it is muted.
    """

    by: str = ""
    acknowledged: bool | None = None
    owner: str | None = None
    mute_seconds: float | None = None
    reason: str = ""

    def of(self, before: Triage, severity: Severity, wall: float) -> Triage:
        """The triage after the change of a finding with this severity."""
        after = before
        if self.acknowledged is not None:
            at = iso(wall) if self.acknowledged else None
            after = replace(after, acknowledged_at=at, acknowledged_by=self.by if self.acknowledged else "")
        if self.owner is not None:
            after = replace(after, owner=self.owner)
        if self.mute_seconds:
            after = replace(
                after,
                muted_until=iso(wall + self.mute_seconds),
                muted_severity=severity,
                muted_by=self.by,
                mute_reason=self.reason,
            )
        elif self.mute_seconds is not None:
            after = unmuted(after)
        return after


def unmuted(triage: Triage) -> Triage:
    """Triage without its mute."""
    return replace(triage, muted_until=None, muted_severity=None, muted_by="", mute_reason="")


class TriageStore:
    """Triage of all clusters; thread-safe.

    Args:
        path: the file; None: nothing can be changed.
        clusters: configured clusters; entries of others are dropped. None keeps all: more clusters may be discovered.
    """

    def __init__(self, path: Path | None = None, clusters: Collection[str] | None = ()) -> None:
        self._path, self._lock = path, threading.Lock()
        self._entries = {
            (it.cluster, it.key): it.triage
            for it in (_read(path) if path else ())
            if clusters is None or it.cluster in clusters
        }
        self._absent: dict[tuple[str, FindingKey], Instant] = {}
        self._silences: dict[str, Mapping[str, Mapping[FindingKey, Triage]]] = {}

    @property
    def writable(self) -> bool:
        """Whether findings can be acknowledged and muted."""
        return self._path is not None

    def of(self, cluster: str, without: str | None = None) -> dict[FindingKey, Triage]:
        """Triage of the findings of a cluster, present or not; `without` the silences of one source."""
        with self._lock:
            found = {key: triage for (name, key), triage in self._entries.items() if name == cluster}
            silences = [each.get(cluster, {}) for name, each in self._silences.items() if name != without]
        for silenced in silences:
            for key, mute in silenced.items():
                own = found.get(key, Triage())
                if own.muted_until is None:
                    found[key] = replace(
                        own, muted_until=mute.muted_until, muted_by=mute.muted_by, mute_reason=mute.mute_reason
                    )
        return found

    def silence(self, source: str, silenced: Mapping[str, Mapping[FindingKey, Triage]]) -> None:
        """Replace what another system mutes, by cluster. It is not stored, as that system decides when it ends.

        A mute by a person takes precedence.
        """
        with self._lock:
            self._silences = {**self._silences, source: silenced}

    def change(self, cluster: str, finding: Finding, change: TriageChange, now: Instant) -> Triage:
        """Change the triage of a present finding, and store it.

        Raises:
            UsageError: too many findings have triage.
            DataError: the file cannot be written; nothing has changed.
        """
        place = (cluster, finding.key)
        with self._lock:
            before = self._entries.get(place, Triage())
            after = change.of(before, worst_severity(finding), now.wall)
            if place not in self._entries and len(self._entries) >= MAX_ENTRIES:
                raise UsageError(f"{MAX_ENTRIES:,} findings are already acknowledged, owned or muted; end some of them")
            entries = {name: it for name, it in self._entries.items() if name != place}
            if after != Triage():
                entries[place] = after
            self._store(entries)
            self._entries = entries
        return after

    def observe(self, result: DiagnosisResult, now: Instant) -> None:
        """Forget what has ended: mutes by their time, the rest some time after the finding ended."""
        present = {finding.key for finding in flat(result.findings)}
        # The findings of an inconclusive rule are unknown, not absent.
        conclusive = set(result.checked) - {gap.rule for gap in result.inconclusive}
        with self._lock:
            entries = dict(self._entries)
            for place, triage in self._entries.items():
                cluster, key = place
                if cluster != result.cluster:
                    continue
                after = unmuted(triage) if triage.ended(now.wall) else triage
                if key in present or key[0] not in conclusive:
                    self._absent.pop(place, None)
                elif now.since(self._absent.setdefault(place, now)) >= FORGET_SECONDS:
                    after = replace(after, acknowledged_at=None, acknowledged_by="", owner="")
                if after == Triage():
                    del entries[place]
                    self._absent.pop(place, None)
                else:
                    entries[place] = after
            if entries == self._entries:
                return
            self._entries = entries
            try:
                self._store(entries)
            except DataError as error:
                log.warning("ended triage is still in the file", error=str(error))

    def _store(self, entries: Mapping[tuple[str, FindingKey], Triage]) -> None:
        if self._path is None:
            return
        listed = [{"cluster": cluster, "key": key, "triage": asdict(it)} for (cluster, key), it in entries.items()]
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(self._path, orjson.dumps({"version": _VERSION, "entries": listed}) + b"\n")
        except OSError as error:
            raise DataError(f"{self._path}: cannot be written ({(error.strerror or 'unknown').lower()})") from None


def worst_severity(finding: Finding) -> Severity:
    """The severity of a finding and its consequences: muting a cause hides both."""
    return min((each.severity for each in flat((finding,))), key=lambda it: it.urgency)


def number_muted(findings: Sequence[Finding], triage: Mapping[FindingKey, Triage], wall: float) -> int:
    """Number of these findings that are muted at `wall`, seconds since 1970."""
    return sum(it.key in triage and triage[it.key].mutes(worst_severity(it), wall) for it in findings)


def _read(path: Path) -> tuple[_Entry, ...]:
    found = read_state(path, _FILE, _VERSION)
    return () if found is None else found.entries[:MAX_ENTRIES]
