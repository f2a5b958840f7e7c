"""`/api/feature-flags`, `/api/deprecated-features` and `/api/deprecated-features/used`."""

from typing import Any

from ackscope.topology import Feature
from exporter.broker.fields import Field, FieldTable, Gaps, Version, by_key, each_once, name, objects, read, text

_FLAG = FieldTable(
    Field("name", "", name, required=True),
    Field("state", "", text),
    Field("stage", "stability", text),
)

_DEPRECATED = FieldTable(
    Field("name", "", name, required=True),
    # Since 4.1.
    Field("state", "", text),
    Field("stage", "deprecation_phase", text),
)

_NAME = FieldTable(Field("name", "", name, required=True))


def decode_features(payload: object, version: Version | None) -> tuple[tuple[Feature, ...], Gaps]:
    """Feature flags and deprecated features, and gaps; one without a name is dropped and counted.

    Args:
        payload: endpoint -> list. Deprecated features exist since 3.13. 3.10 shows feature flags to administrators
            only: a gap for other users.
        version: not used.
    """
    gaps = Gaps()
    lists = dict(by_key(payload, "features", gaps))
    flags = _read(lists.get("/api/feature-flags", []), _FLAG, "feature-flags", version, gaps)
    features = [Feature(**values) for values in flags]
    used = _used(lists, version, gaps)
    for values in _read(lists.get("/api/deprecated-features", []), _DEPRECATED, "deprecated-features", version, gaps):
        in_use = None if used is None else values["name"] in used
        features.append(Feature(**values, deprecated=True, in_use=in_use))
    return each_once(features, lambda it: (it.deprecated, it.name)), gaps


def _used(lists: dict[str, Any], version: Version | None, gaps: Gaps) -> frozenset[str] | None:
    """Return the names of the deprecated features in use; None if unknown."""
    items = lists.get("/api/deprecated-features/used")
    if items is None:
        return None
    before = gaps.total()
    names = frozenset(values["name"] for values in _read(items, _NAME, "deprecated-features", version, gaps))
    # An incomplete list does not prove that a feature is unused.
    return names if gaps.total() == before else None


def _read(items: object, table: FieldTable, gap: str, version: Version | None, gaps: Gaps) -> list[dict[str, Any]]:
    found = (read(table, item, version, gaps) for item in objects(items, gap, gaps))
    return [values for values in found if values["name"] is not None]
