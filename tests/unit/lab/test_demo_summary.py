"""Which findings the demo announces."""

from lab.demo.summary import Watched


def _document(severity: str) -> dict:
    subject = {"kind": "queue", "vhost": "/", "name": "orders"}
    return {"clusters": [{"findings": [{"rule": "stuck-consumer", "severity": severity, "subject": subject}]}]}


def test_a_finding_is_announced_when_it_is_new_and_when_it_gets_worse():
    """Not when it stays as it is or becomes less severe."""
    watched = Watched()
    announced = [
        [finding["severity"] for finding in watched.see(_document(severity))]
        for severity in ("info", "info", "critical", "warning", "critical")
    ]

    assert [["info"], [], ["critical"], [], ["critical"]] == announced
