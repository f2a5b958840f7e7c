"""The policies and arguments of a queue as text."""

from typing import Any

from dashboard.data.queue_reports import PoliciesAndArguments


def words(settings: PoliciesAndArguments | None) -> str:
    """One line: `Policy limits. Set: max-length 10,000 (policy).`; "" if unknown."""
    if settings is None:
        return ""
    named = (("policy", settings.policy), ("operator policy", settings.operator_policy))
    policies = " and ".join(f"{what} {name}" for what, name in named if name) or "no policy"
    listed = [f"{it.name} {_value(it.value)} ({it.by})" for it in settings.set]
    return f"{policies[0].upper()}{policies[1:]}. Set: {', '.join(listed) or 'nothing'}."


def _value(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return str(value).lower() if isinstance(value, bool) else str(value)
