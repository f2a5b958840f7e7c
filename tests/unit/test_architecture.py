"""The rooms and the one direction of flow, as tests."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("ackscope", "probes", "exporter", "diagnosis", "pipeline", "dashboard", "lab", "bench")


def test_the_import_contracts_hold() -> None:
    """The contracts themselves stand in pyproject.toml, under importlinter."""
    done = subprocess.run(
        [Path(sys.executable).parent / "lint-imports", "--no-cache"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert 0 == done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("room", ROOMS)
def test_files_stay_small(room: str) -> None:
    """At 500 lines a file has to be split."""
    sizes = {path: len(path.read_text().splitlines()) for path in (ROOT / room).rglob("*.py")}

    assert {} == {path: size for path, size in sizes.items() if size > 500}


@pytest.mark.parametrize("room", ROOMS)
def test_every_room_is_typed(room: str) -> None:
    """The marker that tells a type checker so."""
    assert (ROOT / room / "py.typed").exists()


def test_no_lock_file_names_a_registry() -> None:
    """Versions are pinned by hash; where they come from is the reader's own configuration."""
    lock = (ROOT / "requirements.lock").read_text()

    assert "://" not in lock
    assert "--hash=sha256:" in lock
