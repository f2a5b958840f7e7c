"""Diagnosis bundles: one file with the input of a diagnosis, to repeat it without access to the broker.

A gzipped JSON document. It has names (queues, users, hosts, clients) and numbers, never messages, passwords or tokens:
snapshots hold no credentials, and anything that looks like one in a name or setting is removed here again.
"""

import gzip
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import orjson
from pydantic import TypeAdapter, ValidationError

from ackscope import __version__
from ackscope.baselines import Baselines
from ackscope.clock import Instant
from ackscope.errors import DataError
from ackscope.findings import DiagnosisResult
from ackscope.log import redact
from ackscope.records import ProbeOutcome
from ackscope.snapshot import Snapshot
from ackscope.topology import Binding
from diagnosis.brief import diagnose_briefly
from diagnosis.endings import Ending
from diagnosis.engine import diagnose
from diagnosis.former_consumers import FormerConsumer
from diagnosis.left_clients import LeftClient
from diagnosis.pauses import Pause
from diagnosis.thresholds import Thresholds
from diagnosis.window import Window
from exporter.api.documents import as_json
from exporter.history.used_baselines import from_json, record_lookups, to_json

_KIND, _FORMAT = "ackscope-bundle", 1
BUNDLE_TYPE = "application/gzip"
LARGEST = 1_000_000_000
"""Size limit of the document in bytes, enough for 30,000 queues; a larger file is rejected."""
_FREE, _BYTES_PER_CONTAINER, _BYTES_PER_VALUE = 1_000_000, 60, 6
"""A document over `_FREE` bytes has at least so many bytes for each list or object, and for each value.

Real ones have 212 and 20. A denser file would need gigabytes of memory once it is parsed.
"""

_SNAPSHOT, _OUTCOMES = TypeAdapter(Snapshot), TypeAdapter(tuple[ProbeOutcome, ...])
_ENDINGS, _PAUSES = TypeAdapter(tuple[Ending, ...]), TypeAdapter(tuple[Pause, ...])
_LEFT, _FORMER = TypeAdapter(tuple[LeftClient, ...]), TypeAdapter(tuple[FormerConsumer, ...])
_INSTANT, _TEXT = TypeAdapter(Instant), TypeAdapter(str)


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosisBundle:
    """Content of a bundle.

    Attributes:
        window: snapshots, oldest first.
        outcomes: probe summaries.
        now: time of the diagnosis; ages are relative to it.
        thresholds: thresholds of the diagnosis.
        version: version of ackscope that made the bundle.
        baselines: the baselines that the diagnosis used; None without history.
    """

    window: Window
    outcomes: tuple[ProbeOutcome, ...]
    now: Instant
    thresholds: Thresholds
    version: str = __version__
    baselines: Baselines | None = None


def judge(bundle: DiagnosisBundle) -> DiagnosisResult:
    """Diagnose the content of a bundle, as it was or would have been diagnosed where it was made."""
    if bundle.thresholds == Thresholds.brief():
        return diagnose_briefly(bundle.window, bundle.outcomes, bundle.now, bundle.baselines)
    return diagnose(bundle.window, bundle.outcomes, bundle.now, bundle.thresholds, baselines=bundle.baselines)


def pack_bundle(bundle: DiagnosisBundle) -> bytes:
    """Serialise a bundle."""
    document = {
        "kind": _KIND,
        "format": _FORMAT,
        "ackscope": bundle.version,
        "made": bundle.now.iso(),
        "cluster": bundle.window.cluster,
        "now": bundle.now,
        "thresholds": bundle.thresholds.model_dump(mode="json"),
        # One by one, because no other thread runs while one call serialises or searches.
        "snapshots": [orjson.Fragment(as_json(_listed(snapshot))) for snapshot in bundle.window.snapshots],
        "trail": bundle.window.trail,
        "endings": bundle.window.endings,
        "pauses": bundle.window.pauses,
        "left": bundle.window.left,
        "former": bundle.window.former,
        "outcomes": bundle.outcomes,
        "baselines": to_json(_usual(bundle)),
    }
    text = "".join(_clean(piece) for piece in _pieces(as_json(document).decode()))
    return gzip.compress(text.encode(), 6, mtime=int(bundle.now.wall))


def _pieces(text: str) -> Iterator[str]:
    """Divide JSON between two objects, never within a string."""
    start = 0
    while start < len(text):
        end = _between(text, start)
        while end < len(text) and text[start:end].replace(r"\\", "").replace(r"\"", "").count('"') % 2:
            end = _between(text, end)
        yield text[start:end]
        start = end


def _between(text: str, start: int) -> int:
    end = text.find("},{", start + _PIECE)
    return len(text) if end < 0 else end + 1


def unpack_bundle(content: bytes) -> DiagnosisBundle:
    """Parse a bundle.

    Raises:
        DataError: not a bundle, or an unsupported format; the message says which.
    """
    try:
        unpacked = zlib.decompressobj(wbits=31).decompress(content, LARGEST)
        document = None if _is_too_dense(unpacked) else orjson.loads(unpacked)
    except (zlib.error, ValueError):
        raise DataError("not an ackscope bundle; create one with `ackscope bundle`") from None
    if not isinstance(document, dict) or document.get("kind") != _KIND:
        raise DataError("not an ackscope bundle; create one with `ackscope bundle`")
    if document.get("format") != _FORMAT:
        made = document.get("ackscope", "unknown")
        raise DataError(f"made by ackscope {made} in format {document.get('format')}, this version reads {_FORMAT}")
    try:
        snapshots, trail = (tuple(map(_snapshot, document[name])) for name in ("snapshots", "trail"))
        return DiagnosisBundle(
            window=Window(
                _TEXT.validate_python(document["cluster"]),
                snapshots,
                trail,
                _ENDINGS.validate_python(document.get("endings", ())),
                _PAUSES.validate_python(document.get("pauses", ())),
                _LEFT.validate_python(document.get("left", ())),
                _FORMER.validate_python(document.get("former", ())),
            ),
            outcomes=_OUTCOMES.validate_python(document["outcomes"]),
            now=_INSTANT.validate_python(document["now"]),
            # Another version may have thresholds that this one does not have.
            thresholds=Thresholds.model_validate(document["thresholds"], extra="ignore"),
            version=_TEXT.validate_python(document["ackscope"]),
            baselines=from_json(document.get("baselines")),
        )
    except (ValidationError, KeyError, TypeError, ValueError) as error:
        raise DataError(f"incomplete bundle ({type(error).__name__}); create it again") from None


def _is_too_dense(text: bytes) -> bool:
    """Whether a text has more lists, objects or values than a bundle of its size."""
    if len(text) <= _FREE:
        return False
    containers = text.count(b"{") + text.count(b"[")
    return max(containers * _BYTES_PER_CONTAINER, text.count(b",") * _BYTES_PER_VALUE) > len(text)


def _usual(seen: DiagnosisBundle) -> Baselines | None:
    """Return only the baselines that the diagnosis looks up. Runs the diagnosis once to find out."""
    return record_lookups(
        seen.baselines,
        lambda bands: judge(replace(seen, baselines=bands)),
    )


@dataclass(frozen=True, slots=True)
class _Counted:
    """Bindings with their counts as a list, because JSON has no tuple keys."""

    counts: tuple[tuple[str, str, int], ...]
    listed: tuple[Binding, ...] | None


def _listed(snapshot: Snapshot) -> Snapshot:
    value = snapshot.bindings.value
    if value is None:
        return snapshot
    counts = tuple((vhost, name, number) for (vhost, name), number in sorted(value.counts.items()))
    counted: Any = _Counted(counts, value.listed)
    return replace(snapshot, bindings=replace(snapshot.bindings, value=counted))


def _snapshot(document: dict[str, Any]) -> Snapshot:
    bindings = document["bindings"]["value"]
    if bindings is not None:
        bindings["counts"] = {(vhost, name): number for vhost, name, number in bindings["counts"]}
    return _SNAPSHOT.validate_python(document)


_PIECE = 64 * 1024
"""Characters that are searched for secrets in one call."""
_ADDRESS = re.compile(r'"(?:[^"\\]|\\.)*://(?:[^"\\]|\\.)*"')
_SECRET = re.compile(r'("[^"\\]*(?:password|passwd|secret|token|credential)[^"\\]*":)"(?:[^"\\]|\\.)*"', re.IGNORECASE)


def _clean(text: str) -> str:
    """Remove what looks like a secret. Works string by string: one regex over all would match across strings."""
    return _SECRET.sub(r'\1"***"', _ADDRESS.sub(lambda found: redact(found[0]), text))
