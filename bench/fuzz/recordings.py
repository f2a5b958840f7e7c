"""The corpus: what real brokers answered, from `tests/fixtures`, as the clients request it."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import orjson

from ackscope.errors import MissingPart
from bench.fuzz.transport import answer
from exporter.broker.endpoints.health import CERTIFICATES, CHECKS
from exporter.broker.families import FAMILIES, FetchMode

_REPOSITORY = Path(__file__).parents[2]
FIXTURES = _REPOSITORY / "tests" / "fixtures"
CRASHERS = FIXTURES / "fuzz"
"""Cases that once showed a fault: a folder for each target, a file for each fault."""

HOST = "http://guest:guest@mq:15672"
PROMETHEUS = "http://mq:15692"

_CHECK_PATHS = {check.name: check.path for check in (*CHECKS, CERTIFICATES)}


@cache
def bases() -> tuple[str, ...]:
    """Names of all recorded brokers: a version, or version/state.

    Raises:
        MissingPart: this is no checkout.
    """
    found = sorted(str(path.parent.relative_to(FIXTURES)) for path in FIXTURES.glob("*/**/overview.json"))
    if not found:
        raise MissingPart(f"{FIXTURES}: no recordings; run this in a checkout of the repository")
    return tuple(found)


@cache
def recorded(base: str) -> dict[str, tuple[bytes, str]]:
    """Path -> body and status line of what a recorded broker answered."""
    return dict(_recorded(FIXTURES / base))


@cache
def prometheus_texts(version: str) -> dict[str, bytes]:
    """Path -> text of the Prometheus endpoint of a recorded node."""
    folder = FIXTURES / version / "prometheus"
    return {
        "/metrics": (folder / "metrics.txt").read_bytes(),
        "/metrics/detailed": (folder / "detailed.txt").read_bytes(),
    }


@cache
def answers(base: str) -> dict[str, bytes]:
    """Path -> bytes of the answer of a recorded broker, with its headers."""
    return {path: answer(body, status) for path, (body, status) in recorded(base).items()}


def _recorded(folder: Path) -> Iterator[tuple[str, tuple[bytes, str]]]:
    for name, family in FAMILIES.items():
        file = folder / f"{name}.json"
        if not file.exists():
            continue
        payload = orjson.loads(file.read_bytes())
        match family.mode:
            case FetchMode.SINGLE:
                yield family.paths[0], _ok(payload)
            case FetchMode.PAGED:
                yield family.paths[0], _ok({"page": 1, "page_count": 1, "items": payload})
            case FetchMode.MULTIPLE:
                yield from ((path, _ok(inner)) for path, inner in payload.items())
            case FetchMode.PER_NODE:
                yield from ((family.paths[0].replace("{node}", node), _ok(inner)) for node, inner in payload.items())
            case FetchMode.HEALTH_CHECKS:
                for check, inner in payload.items():
                    body, _ = _ok(inner["body"])
                    yield f"{family.paths[0]}/{_CHECK_PATHS[check]}", (body, f"{inner['status']} Recorded")


def _ok(payload: Any) -> tuple[bytes, str]:
    return orjson.dumps(payload), "200 OK"
