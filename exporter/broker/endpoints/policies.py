"""`/api/policies` and `/api/operator-policies`."""

from ackscope.topology import Policy
from exporter.broker.fields import (
    Field,
    FieldTable,
    Gaps,
    Version,
    by_key,
    each_once,
    mapping,
    name,
    objects,
    read,
    text,
    whole,
)

_FIELDS = FieldTable(
    Field("vhost", "", name, required=True),
    Field("name", "", name, required=True),
    Field("pattern", "", name),
    Field("apply_to", "apply-to", text),
    Field("priority", "", whole),
    Field("definition", "", mapping),
)


def decode_policies(payload: object, version: Version | None) -> tuple[tuple[Policy, ...], Gaps]:
    """Policies and operator policies, and gaps; a policy without name or virtual host is dropped and counted.

    Args:
        payload: endpoint -> list.
        version: not used.
    """
    gaps = Gaps()
    policies = []
    for path, items in by_key(payload, "policies", gaps):
        for item in objects(items, "policies", gaps):
            values = read(_FIELDS, item, version, gaps)
            if values["name"] is not None and values["vhost"] is not None:
                values["definition"] = values["definition"] or {}
                policies.append(Policy(**values, operator=path.endswith("/operator-policies")))
    return each_once(policies, lambda it: (it.operator, it.vhost, it.name)), gaps
