"""Contact sheets of the pictures of a page."""

from pathlib import Path
from shutil import rmtree

import pytest
from PIL import Image

from tests.dashboard.contact_sheets import sheet
from tests.dashboard.pictures import FINDINGS, SIZES

COLOURS = {("wide", "light"): "#ff0000", ("wide", "dark"): "#00ff00", ("phone", "light"): "#0000ff",
           ("phone", "dark"): "#ffff00"}  # fmt: skip


def taken(folder: Path) -> Path:
    """A picture of one colour for each size and theme."""
    for number in FINDINGS:
        (folder / f"{number:03}").mkdir()
        for (size, scheme), colour in COLOURS.items():
            Image.new("RGB", SIZES[size], colour).save(folder / f"{number:03}/now-{size}-{scheme}.png")
    return folder


def test_a_sheet_has_every_picture_of_a_page(tmp_path: Path) -> None:
    """The same share of its area for each number of findings."""
    found = sheet(taken(tmp_path), "now")
    column = found.width // len(FINDINGS)
    shares = [
        {
            colour: number
            for number, colour in found.crop((at * column, 30, (at + 1) * column, found.height)).getcolors()
        }
        for at in range(len(FINDINGS))
    ]

    for share in shares:
        assert {(255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 0)} <= share.keys()


def test_numbers_of_findings_that_were_not_taken_have_no_column(tmp_path: Path) -> None:
    """But a page without any picture is an error."""
    whole = sheet(taken(tmp_path), "now").width
    rmtree(tmp_path / "100")

    assert sheet(tmp_path, "now").width < whole
    with pytest.raises(FileNotFoundError, match="fleet"):
        sheet(tmp_path, "fleet")


def test_a_picture_that_is_missing_is_named(tmp_path: Path) -> None:
    """A sheet with a hole would look complete."""
    (taken(tmp_path) / "012/now-phone-dark.png").unlink()

    with pytest.raises(FileNotFoundError, match="012/now-phone-dark"):
        sheet(tmp_path, "now")
