"""What is shipped, made once: `make ship-test` runs these tests, not `make test`, because they take minutes."""

import sys

import pytest

from lab.cluster import start_lab
from tests.ship.running import ROOT, run


@pytest.fixture(scope="session")
def release(tmp_path_factory):
    """The files of a release of this tree; the script itself compares two builds."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, ROOT / "scripts/release.py", "-o", folder)
    return folder


@pytest.fixture(scope="session")
def uv():
    """The path of uv."""
    return run(ROOT / "scripts/uv.sh").strip()


@pytest.fixture(scope="session")
def broker():
    """A broker of the distribution, which nothing was made on."""
    with start_lab("distro") as lab:
        yield lab
