"""The documentation is complete."""

import argparse
from pathlib import Path

import pytest

from dashboard import command
from dashboard.pages import PAGES

TEXT = (Path(__file__).parents[2] / "docs" / "dashboard.md").read_text()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.title)
def test_every_page_is_documented(page) -> None:
    """With its address."""
    assert f"| {page.title} | `/{page.path}` |" in TEXT


def test_every_option_is_documented() -> None:
    """By its name in `--help`."""
    parser = argparse.ArgumentParser(add_help=False)
    command.add_arguments(parser)
    options = [option for action in parser._actions for option in action.option_strings]

    assert [] == [option for option in options if f"`{option} " not in TEXT]
