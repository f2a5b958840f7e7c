"""Limits of virtual hosts and users: what to set instead."""

from ackscope.findings import Fact
from ackscope.topology import Limit
from diagnosis.contract import View


def raised_limits(view: View, limit: Limit, value: int) -> dict[str, Fact]:
    """Return all limits of the virtual host or user with this one raised, because setting one replaces the others."""
    alike = [each for each in view.limits_set if (each.scope, each.subject) == (limit.scope, limit.subject)]
    return {**{each.name: each.value for each in alike}, limit.name: value}
