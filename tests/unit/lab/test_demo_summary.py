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


def test_a_finding_ends_once_and_may_come_back():
    """An exporter that does not answer ends none, and neither does a finding that becomes a consequence."""
    watched, nothing = Watched(), {"clusters": [{"findings": []}]}
    cause = {"rule": "memory-alarm", "severity": "critical", "subject": {"kind": "node", "vhost": None, "name": "one"}}
    below = {"clusters": [{"findings": [{**cause, "consequences": _document("info")["clusters"][0]["findings"]}]}]}
    ended = []
    for document in (_document("info"), {}, below, nothing, nothing, _document("info"), nothing):
        watched.see(document)
        ended.append(sorted(finding["rule"] for finding in watched.ended(document)))

    assert [[], [], [], ["memory-alarm", "stuck-consumer"], [], [], ["stuck-consumer"]] == ended


def test_a_loss_that_is_over_has_ended():
    """It stays in the document as information; the demo announces its end once."""
    watched = Watched()
    lost, over = _document("warning"), _document("info")
    over["clusters"][0]["findings"][0]["over_since"] = "2026-11-28T22:20:25Z"
    ended = []
    for document in (lost, over, over, {"clusters": [{"findings": []}]}):
        watched.see(document)
        ended.append(len(watched.ended(document)))

    assert [0, 1, 0, 0] == ended


def test_a_finding_that_ended_and_is_back_is_reported_again():
    """In its old severity; while it stays, it is reported once."""
    watched, nothing = Watched(), {"clusters": [{"findings": []}]}
    full = _document("critical")

    reported = []
    for document in (full, full, nothing, full, full):
        reported.append(len(watched.see(document)))
        watched.ended(document)

    assert [1, 0, 0, 1, 0] == reported
