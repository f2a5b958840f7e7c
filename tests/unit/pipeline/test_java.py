import pytest

from ackscope.errors import MissingPart
from pipeline.java import major, require_java


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_392"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ("gij (GNU libgcj)", None),
    ],
)
def test_reads_the_major_version(text, expected):
    """Old and new formats of Java's version output are parsed."""
    assert expected == major(text)


def test_java_that_is_missing(tmp_path):
    """No `java` on PATH is one line that says how to get one."""
    with pytest.raises(MissingPart) as raised:
        require_java({"PATH": str(tmp_path)})

    assert (
        "Java is missing: no `java` on PATH; install it: apt-get install default-jre-headless, or set JAVA_HOME"
        == str(raised.value)
    )


def test_java_home_without_java(tmp_path):
    """A JAVA_HOME that is wrong is named, though another Java may be on PATH: Spark would take this one."""
    with pytest.raises(MissingPart, match=f"JAVA_HOME is {tmp_path}, and {tmp_path}/bin/java is not executable"):
        require_java({"JAVA_HOME": str(tmp_path)})


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo 'openjdk version \"11.0.2\"' >&2", "is version 11, Spark needs 17 or newer"),
        ("echo hello", "is of unknown version, Spark needs 17 or newer"),
        ("exit 1", "Java does not run"),
    ],
)
def test_java_that_is_of_no_use(tmp_path, script, message):
    """Too old, unknown and broken Java are distinguished."""
    program = tmp_path / "java"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)

    with pytest.raises(MissingPart, match=message):
        require_java({"PATH": str(tmp_path)})
