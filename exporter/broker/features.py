"""`/api/feature-flags`, `/api/deprecated-features` and `/api/deprecated-features/used`."""

from typing import Any

from ackscope.topology import Feature
from exporter.broker.fields import Field, Gaps, Table, Version, name, objects, of_paths, read, text

_FLAG = Table(
    Field("name", "", name, required=True),
    Field("state", "", text),
    Field("stage", "stability", text),
)

_DEPRECATED = Table(
    Field("name", "", name, required=True),
    # From 4.1 on.
    Field("state", "", text),
    Field("stage", "deprecation_phase", text),
)

_NAME = Table(Field("name", "", name, required=True))


def decode_features(payload: Any, version: Version | None) -> tuple[tuple[Feature, ...], Gaps]:
    """The feature flags and deprecated features and their gaps; one without a name is dropped and counted.

    Args:
        payload: endpoint -> list. Deprecated features are told from 3.13 on; feature flags of 3.10 are shown to
            administrators only: a gap for everybody else.
        version: makes no difference.
    """
    gaps = Gaps()
    lists = dict(of_paths(payload, "features", gaps))
    flags = _read(lists.get("/api/feature-flags", []), _FLAG, "feature-flags", version, gaps)
    features = [Feature(**values) for values in flags]
    used = _used(lists, version, gaps)
    for values in _read(lists.get("/api/deprecated-features", []), _DEPRECATED, "deprecated-features", version, gaps):
        in_use = None if used is None else values["name"] in used
        features.append(Feature(**values, deprecated=True, in_use=in_use))
    return tuple(features), gaps


def _used(lists: dict[str, Any], version: Version | None, gaps: Gaps) -> frozenset[str] | None:
    """Names of the deprecated features that are used; None where that is not told."""
    items = lists.get("/api/deprecated-features/used")
    if items is None:
        return None
    before = gaps.total()
    names = frozenset(values["name"] for values in _read(items, _NAME, "deprecated-features", version, gaps))
    # A list that cannot be read whole says of no feature that it is not used.
    return names if gaps.total() == before else None


def _read(items: Any, table: Table, what: str, version: Version | None, gaps: Gaps) -> list[dict[str, Any]]:
    found = (read(table, item, version, gaps) for item in objects(items, what, gaps))
    return [values for values in found if values["name"] is not None]
