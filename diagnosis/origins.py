"""Names the true source of evidence whose figures were read from the Prometheus endpoints of the nodes.

Rules name fields of the management API, which is where these figures usually come from.
"""

from collections.abc import Mapping
from dataclasses import replace

from ackscope.findings import Evidence, FieldRef, Finding
from ackscope.snapshot import Snapshot

Origins = Mapping[FieldRef, FieldRef]
"""Field of the management API -> path and metric."""


def origins_of(snapshot: Snapshot | None) -> Origins:
    """Return the fields of a snapshot that come from the Prometheus endpoints."""
    parts = snapshot.parts if snapshot is not None else {}
    return {
        FieldRef(f"/api/{family}", name): FieldRef(path, metric)
        for family, part in parts.items()
        for name, (path, metric) in part.origins.items()
    }


def with_origins(finding: Finding, origins: Origins) -> Finding:
    """Return the finding with the true source of each value."""
    if not origins:
        return finding
    return replace(finding, evidence=tuple(_with_origins(each, origins) for each in finding.evidence))


def _with_origins(evidence: Evidence, origins: Origins) -> Evidence:
    source = tuple(dict.fromkeys(origins.get(each, each) for each in evidence.source))
    return evidence if source == evidence.source else replace(evidence, source=source)
