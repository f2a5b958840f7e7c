"""The record of one receiver on disk, so that a restart neither repeats nor forgets."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
from pydantic import TypeAdapter

from ackscope.atomic_file import write_atomically
from ackscope.findings import Severity
from ackscope.log import get_logger
from ackscope.state_file import read_state
from exporter.delivery.incidents import Brief, Delivered, EndReason, FindingIncident, IncidentKey

log = get_logger(__name__)

_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stored:
    key: IncidentKey
    began: float
    severity: Severity
    rules: tuple[str, ...] = ()
    brief: Brief | None = None
    delivered: Delivered | None = None
    ended: float | None = None
    reason: EndReason | None = None
    joined: IncidentKey | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordContent:
    """Content of the file.

    Attributes:
        address: digest of the destination. Another destination knows nothing of what this one got.
        extra: what the receiver itself stores.
    """

    version: int = _VERSION
    address: str = ""
    incidents: tuple[_Stored, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)

    def restored(self) -> list[FindingIncident]:
        """The findings."""
        return [FindingIncident(**{name: getattr(it, name) for name in _FIELDS}) for it in self.incidents]


_FIELDS = ("key", "began", "severity", "rules", "brief", "delivered", "ended", "reason", "joined")
_CONTENT = TypeAdapter(RecordContent)


def digest(address: str) -> str:
    """A digest of a destination, which does not reveal it."""
    return hashlib.sha256(address.encode()).hexdigest()[:16]


def read_record(path: Path, address: str) -> RecordContent:
    """The content of a file; an empty one if there is none, or it is that of another destination."""
    content = read_state(path, _CONTENT, _VERSION)
    if content is None:
        return RecordContent()
    if content.address != digest(address):
        log.info("the destination changed: it gets all present findings", file=str(path))
        return RecordContent()
    return content


def encode_record(address: str, incidents: list[FindingIncident], extra: Mapping[str, Any]) -> bytes:
    """The content as bytes."""
    document = {
        "version": _VERSION,
        "address": digest(address),
        "incidents": [{name: getattr(it, name) for name in _FIELDS} for it in incidents],
        "extra": extra,
    }
    return orjson.dumps(document, default=_plain) + b"\n"


def write_record(path: Path, content: bytes) -> None:
    """Replace the file.

    Raises:
        OSError: it cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, content)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, tuple):  # named ones
        return list(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")
