from http import HTTPStatus

import pytest

from ackscope.triage import MAX_MUTE_SECONDS, MAX_NAME, MAX_REASON
from tests.unit.exporter.made import finding
from tests.unit.exporter.triage.served import Served


@pytest.fixture
def served(tmp_path):
    """An exporter that stores triage."""
    return Served(tmp_path / "triage.json")


def test_a_finding_is_acknowledged_owned_and_muted(served):
    """All readers of the findings see it, until the mute ends."""
    before = served.found()["triage"]
    status, _ = served.post(by="ann", acknowledged=True, owner="bob", mute_seconds=60, reason="planned")
    after = served.found()["triage"]
    served.clock.mono += 60
    ended = served.found()["triage"]

    assert (None, HTTPStatus.OK) == (before, status)
    assert {
        "acknowledged_at": "2023-11-14T22:13:20Z",
        "acknowledged_by": "ann",
        "owner": "bob",
        "muted_until": "2023-11-14T22:14:20Z",
        "muted_severity": "warning",
        "muted_by": "ann",
        "mute_reason": "planned",
        "muted": True,
    } == after
    assert not ended["muted"]
    assert served.get("/api/v1/findings")["triage_writable"]


def test_the_list_has_every_cluster(served):
    """Also what is muted and not present now."""
    served.post(by="ann", mute_seconds=60)
    document = served.get("/api/v1/triage")
    entry = document["clusters"][0]["triage"][0]

    assert ["shop", "depot"] == [it["cluster"] for it in document["clusters"]]
    assert ("no-consumer", True, True, "ann") == (entry["rule"], entry["present"], entry["muted"], entry["muted_by"])
    assert finding().subject.name == entry["subject"]["name"]


@pytest.mark.parametrize(
    ("values", "status", "text"),
    [
        ({"cluster": "shap"}, 400, "cluster='shap' is not known, did you mean 'shop'?; known: shop, depot"),
        ({"cluster": "depot"}, 404, "this finding is not present; see /api/v1/findings"),
        ({"rule": "stuck-consumer"}, 404, "this finding is not present; see /api/v1/findings"),
        ({"mute_seconds": MAX_MUTE_SECONDS + 1}, 400, "mute_seconds: input should be less than or equal to 2592000"),
        ({"mute_seconds": -1}, 400, "mute_seconds: input should be greater than or equal to 0"),
        ({"mute_seconds": "60"}, 400, "mute_seconds: input should be a valid number"),
        ({"by": "x" * (MAX_NAME + 1)}, 400, "by: string should have at most 80 characters"),
        ({"owner": "x" * (MAX_NAME + 1)}, 400, "owner: string should have at most 80 characters"),
        ({"reason": "x" * (MAX_REASON + 1)}, 400, "reason: string should have at most 200 characters"),
        ({"acknowledgd": True}, 400, "acknowledgd: extra inputs are not permitted"),
        ({"body": b"["}, 400, "body: "),
        ({"headers": {"content-type": "text/plain"}}, 415, "send the change as application/json"),
        ({"headers": {}}, 415, "send the change as application/json"),
    ],
)
def test_a_wrong_change_is_refused(served, values, status, text):
    """In a line that says what is wrong; nothing changes."""
    got, answer = served.post(**{"acknowledged": True, **values})

    assert status == got
    assert answer.startswith(text)
    assert 1 == answer.count("\n")
    assert served.found()["triage"] is None


def test_without_a_file_nothing_can_be_changed():
    """The document of the findings says so."""
    served = Served(None)

    assert (HTTPStatus.FORBIDDEN, "findings cannot be acknowledged or muted: set triage.file, and restart\n") == (
        served.post(acknowledged=True)
    )
    assert not served.get("/api/v1/findings")["triage_writable"]
