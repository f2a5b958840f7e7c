"""Recent series of one subject of a finding, from the exporter."""

import requests
from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from dashboard.data.exporter_client import REQUEST_OPTIONS, TIMEOUTS
from dashboard.data.model import MetricSeries


class _Lines(TypedDict):
    lines: tuple[MetricSeries, ...]


_DOCUMENT = TypeAdapter(_Lines)


def read(url: str, cluster: str, kind: str, vhost: str | None, name: str) -> tuple[MetricSeries, ...]:
    """Fetch the series of a queue, a node or the whole cluster; () if they are not available. Never raises."""
    query = {"cluster": cluster, "kind": kind, "name": name, **({} if vhost is None else {"vhost": vhost})}
    try:
        response = requests.get(f"{url}/api/v1/series", params=query, timeout=TIMEOUTS, **REQUEST_OPTIONS)
        return _DOCUMENT.validate_json(response.content)["lines"] if response.status_code == 200 else ()
    except (requests.RequestException, ValidationError):
        return ()
