import pytest

from lab.verify.docs import load, page
from lab.verify.record import FOLDER, PAGE
from probes.verify.claims import CLAIMS


@pytest.fixture(scope="module")
def recorded():
    """What the three versions answered."""
    return load(FOLDER)


def test_the_page_is_fresh(recorded):
    """Made from the recorded runs: python -m lab.verify.docs tests/fixtures/verify > docs/semantics.md."""
    assert page(recorded) == PAGE.read_text()


def test_every_claim_was_checked_on_every_version(recorded):
    """Oldest first."""
    assert ["3.10", "4.0", "4.3"] == [version.rsplit(".", 1)[0] for version in recorded]
    ids = [f"S{number:02}" for number in range(1, 54)] + [f"A{number:02}" for number in range(1, 26)]
    for rows in recorded.values():
        assert ids == list(rows)


def test_the_recorded_claims_are_those_of_today(recorded):
    """A claim that was reworded is recorded again, with its check: python -m lab.verify.record."""
    today = {claim.id: (claim.name, claim.group, claim.documented, claim.source) for claim in CLAIMS}

    for rows in recorded.values():
        assert today == {
            id_: (row["name"], row["group"], row["documented"], row["source"]) for id_, row in rows.items()
        }


def test_every_row_has_evidence_and_every_difference_its_reason(recorded):
    """A difference that nobody explains is a fault of ours until somebody does."""
    rows = [(version, row) for version, of_version in recorded.items() for row in of_version.values()]

    assert [] == [(version, row["id"]) for version, row in rows if not row["evidence"]]
    assert [] == [
        (version, row["id"])
        for version, row in rows
        if row["verdict"] in {"differs", "could-not-tell"} and not row["because"]
    ]
    assert [] == [(version, row["id"]) for version, row in rows if row["verdict"] == "needs-lab"]


def test_versions_are_in_the_order_of_their_numbers(tmp_path):
    """3.10 is newer than 3.9."""
    for version in ("3.10.8", "3.9.1"):
        (tmp_path / f"{version}.json").write_text('{"broker": "", "rows": []}')

    assert ["3.9.1", "3.10.8"] == list(load(tmp_path))
