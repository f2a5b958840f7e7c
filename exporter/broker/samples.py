"""The samples that the management plugin keeps of a number, as in `publish_details.samples`."""

from typing import Any

Samples = dict[int, int]
"""Milliseconds since 1970 by the broker's clock -> value."""


def samples_of(details: Any) -> Samples:
    """Return the samples in the details of a number; those that are no counts are left out."""
    samples = details.get("samples") if isinstance(details, dict) else None
    return {
        each["timestamp"]: each["sample"]
        for each in (samples if isinstance(samples, list) else ())
        if isinstance(each, dict) and _is_count(each.get("timestamp")) and _is_count(each.get("sample"))
    }


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63
