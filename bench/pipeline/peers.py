"""DuckDB, Polars, pandas and a reader of Delta tables in a virtual environment of their own, in the user's cache."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from ackscope.errors import MissingPart
from bench.bench import progress
from lab.bootstrap import cache_directory

VERSIONS = {
    "duckdb": "2.0.0",
    "polars": "2.1.0",
    "pandas": "3.1.1",
    "pyarrow": "26.0.1",
    "numpy": "2.4.6",
    "deltalake": "1.6.6",
}


def peers_python() -> Path:
    """The interpreter of that environment.

    Raises:
        MissingPart: it could not be created.
    """
    name = "-".join(f"{package}{version}" for package, version in VERSIONS.items())
    root = cache_directory(os.environ) / "pipeline-peers" / name
    if not root.exists():
        _make(root)
    return root / "bin" / "python"


def _make(root: Path) -> None:
    progress(f"installing {', '.join(VERSIONS)} into {root}")
    try:
        root.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MissingPart(f"{error.filename}: {error.strerror}; name another folder in ACKSCOPE_CACHE_DIR") from None
    with tempfile.TemporaryDirectory(dir=root.parent) as folder:
        partial = Path(folder) / "venv"
        packages = [f"{package}=={version}" for package, version in VERSIONS.items()]
        # Its scripts would contain the temporary path; only its interpreter is used.
        _run([sys.executable, "-m", "venv", str(partial)])
        _run([str(partial / "bin" / "python"), "-m", "pip", "install", "--quiet", *packages])
        partial.rename(root)


def _run(words: list[str]) -> None:
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        output = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        raise MissingPart(f"the peers could not be installed from PyPI: {(output or ['pip said nothing'])[-1][:200]}")
