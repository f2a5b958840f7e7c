"""What findings say about lost messages: which rules count them, and whether a count is right."""

from collections.abc import Sequence

from bench.diagnosis.scene import FindingDocument

LOSSES = (
    "reject-loss",
    "queue-purged",
    "unexplained-loss",
    "poison-drop",
    "ttl-expiry-loss",
    "maxlen-drop-head",
    "restart-loss",
)
"""Rules that count lost messages."""

_COUNTS = ("lost", "dropped", "purged", "refused", "missing")
"""Facts with the number of lost messages, by rule; the first that a finding has counts."""

_EXACT = 0.02


def lost_by(findings: Sequence[FindingDocument]) -> dict[str, int]:
    """Return the messages that each rule counts as lost, sorted by its name."""
    found: dict[str, int] = {}
    for finding in findings:
        number = next((finding["facts"][name] for name in _COUNTS if name in finding["facts"]), None)
        if finding["rule"] in LOSSES and number is not None:
            # The law says how many of its messages other findings count, too.
            found[finding["rule"]] = number - finding["facts"].get("accounted", 0)
    return dict(sorted(found.items()))


def is_exact(counted: int, lost: int) -> bool:
    """Return whether a count is within 2 % of the truth, or one message."""
    return abs(counted - lost) <= allowance(lost)


def allowance(lost: int) -> float:
    """Return by how many messages a count may be off."""
    return max(1.0, _EXACT * lost)
