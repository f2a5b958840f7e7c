"""`/api/policies` and `/api/operator-policies`."""

from typing import Any

from ackscope.topology import Policy
from exporter.broker.fields import Field, Gaps, Table, Version, mapping, name, objects, of_paths, read, text, whole

_FIELDS = Table(
    Field("vhost", "", name, required=True),
    Field("name", "", name, required=True),
    Field("pattern", "", name),
    Field("apply_to", "apply-to", text),
    Field("priority", "", whole),
    Field("definition", "", mapping),
)


def decode_policies(payload: Any, version: Version | None) -> tuple[tuple[Policy, ...], Gaps]:
    """The policies, those of operators too, and their gaps; one without name or virtual host is dropped and counted.

    Args:
        payload: endpoint -> list.
        version: makes no difference.
    """
    gaps = Gaps()
    policies = []
    for path, items in of_paths(payload, "policies", gaps):
        for item in objects(items, "policies", gaps):
            values = read(_FIELDS, item, version, gaps)
            if values["name"] is not None and values["vhost"] is not None:
                values["definition"] = values["definition"] or {}
                policies.append(Policy(**values, operator=path.endswith("/operator-policies")))
    return tuple(policies), gaps
