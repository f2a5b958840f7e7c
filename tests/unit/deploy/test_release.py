"""What scripts/release.py writes, without building anything."""

import importlib.util
from pathlib import Path

import pytest

from ackscope import __version__

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def release():
    """The script as a module."""
    found = importlib.util.spec_from_file_location("release", ROOT / "scripts/release.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_what_is_unreleased_becomes_the_release(release):
    """An empty part stays above it."""
    before = "# Changelog\n\n## Unreleased\n\n### Added\n\n- x\n\n## 0.1.0 - 2026-01-01\n"

    assert (
        "# Changelog\n\n## Unreleased\n\n## 0.2.0 - 2026-02-01\n\n### Added\n\n- x\n\n## 0.1.0 - 2026-01-01\n"
        == release.released(before, "0.2.0", "2026-02-01")
    )


@pytest.mark.parametrize("text", ["# Changelog\n", "## Unreleased\n\n## 0.1.0 - 2026-01-01\n\n- x\n"])
def test_nothing_unreleased_is_no_release(release, text):
    """One line that says where to write."""
    with pytest.raises(release.ReleaseError, match="write what changed"):
        release.released(text, "0.2.0", "2026-02-01")


@pytest.mark.parametrize("version", ["0.0.1", __version__, "1.0", "v9.0.0", "9.0.0rc1"])
def test_a_version_is_three_numbers_and_newer(release, version):
    """Anything else is refused before a file is changed."""
    with pytest.raises(release.ReleaseError, match="is not a version after"):
        release.make_version(version)


def test_the_version_is_where_the_script_looks_for_it(release):
    """And nowhere in pyproject.toml."""
    assert __version__ == release.current_version()
    assert 'dynamic = ["version"]' in (ROOT / "pyproject.toml").read_text()


def test_the_lock_is_read_with_its_hashes(release):
    """Each pin is one block."""
    blocks = list(release._blocks("a==1 \\\n    --hash=x\nb==2 \\\n    --hash=y \\\n    --hash=z\n"))

    assert ["a==1 \\\n    --hash=x", "b==2 \\\n    --hash=y \\\n    --hash=z"] == blocks
