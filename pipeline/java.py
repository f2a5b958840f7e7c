"""Check for a usable Java before Spark starts, because Spark's own error is a page long."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from ackscope.errors import MissingPart

# Spark 4 needs Java 17 or newer: https://spark.apache.org/docs/4.0.0/#downloading.
OLDEST = 17

_ADVICE = "install it: apt-get install default-jre-headless, or set JAVA_HOME"


def require_java(environ: Mapping[str, str] = os.environ) -> Path:
    """The `java` program that Spark will start.

    Raises:
        MissingPart: it does not exist, does not run, or is too old; the message says how to get one.
    """
    program = _find(environ)
    try:
        answer = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        raise MissingPart(f"Java does not run: `{program} -version` fails; {_ADVICE}") from None
    version = major(answer.stderr + answer.stdout)
    if version is None or version < OLDEST:
        found_version = "of unknown version" if version is None else f"version {version}"
        raise MissingPart(f"Java is too old: {program} is {found_version}, Spark needs {OLDEST} or newer; {_ADVICE}")
    return program


def major(text: str) -> int | None:
    """The major version in the output of `java -version`: 17 for `"17.0.15"`, 8 for `"1.8.0_392"`."""
    found = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(found[1]) if found else None


def _find(environ: Mapping[str, str]) -> Path:
    home = environ.get("JAVA_HOME")
    if home:
        program = Path(home) / "bin" / "java"
        if not os.access(program, os.X_OK):
            raise MissingPart(f"Java is missing: JAVA_HOME is {home}, and {program} is not executable; {_ADVICE}")
        return program
    found = shutil.which("java", path=environ.get("PATH"))
    if found is None:
        raise MissingPart(f"Java is missing: no `java` on PATH; {_ADVICE}")
    return Path(found)
