"""The runbook of a rule, as Markdown, from the exporter."""

import re

import requests

from dashboard.data import exporter_client
from dashboard.data.exporter_client import REQUEST_OPTIONS, TIMEOUTS

_LINK = re.compile(r"\[([^]]+)\]\([a-z0-9-]+\.md\)")
"""A link to another runbook; it leads nowhere in the page."""


def read(url: str, rule: str) -> tuple[str | None, str | None]:
    """The runbook, or why it cannot be shown. Never raises."""
    try:
        response = requests.get(f"{url}/runbook", params={"rule": rule}, timeout=TIMEOUTS, **REQUEST_OPTIONS)
    except requests.RequestException as error:
        return None, exporter_client.failure(error)
    if response.status_code != 200:
        return None, f"HTTP status {response.status_code}"
    page = response.content.decode(errors="replace")
    return _LINK.sub(r"\1", page), None
