"""DuckDB, Polars, pandas and readers of Delta tables in virtual environments of their own, in the user's cache."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from ackscope.errors import MissingPart
from bench.bench import progress
from bench.maven import fetch_jars
from lab.bootstrap import cache_directory

VERSIONS = {
    "duckdb": "2.0.0",
    "polars": "2.1.0",
    "pandas": "3.1.1",
    "pyarrow": "26.0.1",
    "numpy": "2.4.6",
    "deltalake": "1.6.6",
}

# Delta 4.2 is made for Spark 4.1, which is made with Hadoop 3.4.2.
SPARK_VERSIONS = {"delta-spark": "4.2.0", "pyspark": "4.1.1"}
SPARK_JARS = ("io.delta:delta-spark_4.1_2.13:4.2.0", "org.apache.hadoop:hadoop-aws:3.4.2")
# Only for objects that a client encrypts; it is not to be had in the version that is asked for.
_LEFT_OUT = ("software.amazon.encryption.s3:amazon-s3-encryption-client-java",)


def peers_python() -> Path:
    """The interpreter with DuckDB, Polars and pandas.

    Raises:
        MissingPart: it could not be created.
    """
    return _environment("pipeline-peers", VERSIONS)


def spark_python() -> Path:
    """The interpreter with Spark and Delta, and Hadoop's connector for S3, 1.2 GB.

    Raises:
        MissingPart: it could not be created.
    """
    return _environment("pipeline-spark", SPARK_VERSIONS, SPARK_JARS)


def _environment(kind: str, versions: Mapping[str, str], jars: Sequence[str] = ()) -> Path:
    name = "-".join(f"{package}{version}" for package, version in versions.items())
    root = cache_directory(os.environ) / kind / name
    if not root.exists():
        _make(root, versions, jars)
    return root / "bin" / "python"


def _make(root: Path, versions: Mapping[str, str], jars: Sequence[str]) -> None:
    progress(f"installing {', '.join(versions)} into {root}")
    try:
        root.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MissingPart(f"{error.filename}: {error.strerror}; name another folder in ACKSCOPE_CACHE_DIR") from None
    with tempfile.TemporaryDirectory(dir=root.parent) as folder:
        partial = Path(folder) / "venv"
        packages = [f"{package}=={version}" for package, version in versions.items()]
        # Its scripts would contain the temporary path; only its interpreter is used.
        _run([sys.executable, "-m", "venv", str(partial)])
        _run([str(partial / "bin" / "python"), "-m", "pip", "install", "--quiet", *packages])
        if jars:
            fetch_jars(jars, Path(folder) / "jars", _LEFT_OUT)
            (spark,) = partial.glob("lib/python*/site-packages/pyspark/jars")
            for path in (Path(folder) / "jars").iterdir():
                _add(path, spark)
        partial.rename(root)


def _add(path: Path, spark: Path) -> None:
    """Move a jar to those of Spark, if it has none of this name, whatever the version."""
    name = path.stem.rpartition("-")[0]
    if not list(spark.glob(f"{name}-[0-9]*.jar")):
        path.rename(spark / path.name)


def _run(words: list[str]) -> None:
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        output = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        raise MissingPart(f"the peers could not be installed from PyPI: {(output or ['pip said nothing'])[-1][:200]}")
