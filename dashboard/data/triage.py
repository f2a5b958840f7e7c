"""Changes what people say about a finding, at the exporter."""

from typing import Any

import requests

from ackscope.reports import FindingReport
from dashboard.data.exporter_client import REQUEST_OPTIONS, TIMEOUTS, failure


def change(url: str, cluster: str, finding: FindingReport, **values: Any) -> str | None:
    """Acknowledge, own or mute a finding; returns why that failed, or None.

    Args:
        url: URL of the exporter.
        cluster: name of the cluster.
        finding: a present finding.
        values: `by`, `acknowledged`, `owner`, `mute_seconds`, `reason` of the request.
    """
    subject = {"kind": finding.subject.kind, "name": finding.subject.name, "vhost": finding.subject.vhost}
    document = {"cluster": cluster, "rule": finding.rule, "subject": subject, **values}
    try:
        response = requests.post(f"{url}/api/v1/triage", json=document, timeout=TIMEOUTS, **REQUEST_OPTIONS)
    except requests.RequestException as error:
        return failure(error)
    return None if response.status_code == 200 else response.text.strip() or f"HTTP status {response.status_code}"
