"""What the bench of other engines does with an engine that fails, and how the jars of Spark get to it."""

import json
import os
import sys

import pytest

from ackscope.errors import MissingPart
from ackscope.manifest import read
from bench.maven import fetch_jars
from bench.pipeline import delta_live, peers
from tests.unit.pipeline.test_rollups import NINE, put, rows

ENGINE = """
import json, sys
for line in sys.stdin:
    if json.loads(line)["version"] == 7:
        raise SystemExit("no such version\\n")
    print(json.dumps([["a"], [1]]), flush=True)
"""
MAVEN = """#!/bin/sh
for word in "$@"; do
  case "$word" in
    -DoutputDirectory=*) folder="${word#*=}" ;;
    */pom.xml) cp "$word" "$POM" ;;
  esac
done
mkdir "$folder"
for jar in $JARS; do touch "$folder/$jar"; done
echo "[ERROR] no such thing"
"""


@pytest.fixture
def maven(tmp_path, monkeypatch):
    """A stand-in for Maven: it fetches the jars that a variable names."""
    for name, text in {"mvn": MAVEN, "java": "#!/bin/sh\n"}.items():
        (tmp_path / "bin" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("POM", str(tmp_path / "pom.xml"))


def test_an_engine_that_ends_is_a_failed_read_and_is_started_again(tmp_path, monkeypatch):
    """The last line that it said is the reason."""
    monkeypatch.setattr(delta_live, "reader_command", lambda _: [sys.executable, "-c", ENGINE])
    with delta_live.DeltaReader("any", tmp_path / "log") as reader:
        answers = [reader.rows(tmp_path, "bursts_1m", version) for version in (None, 7, 3)]

    assert [[["a"], [1]], "no such version", [["a"], [1]]] == answers


def test_own_rows_have_the_columns_that_a_file_lacks(tmp_path):
    """Rows of all files in one order, with the partition of each."""
    manifest = put(tmp_path, [NINE, NINE + 1], rows(60, 0))
    path = tmp_path / manifest.tables["bursts_1m"][0].path
    columns, first, second = delta_live.own_rows(tmp_path, read(tmp_path, "shop"), "bursts_1m")

    assert path.parent.name == "date=2026-03-01"
    assert ["shop", "2026-03-01"] == first[-2:] == second[-2:]
    assert columns[-2:] == ["cluster", "date"]
    assert [first, second] == sorted([second, first], key=json.dumps)
    assert {len(columns)} == {len(first), len(second)}


def test_jars_are_fetched_with_what_they_need_and_without_what_is_left_out(tmp_path, maven, monkeypatch):
    """A folder of jars that is complete or absent; the reason of a failure is one line."""
    monkeypatch.setenv("JARS", "one-1.2.jar two_2.13-3.jar needed-9.jar")
    fetch_jars(["org.a:one:1.2", "org.b:two_2.13:3"], tmp_path / "jars", ["org.c:not"])
    pom = (tmp_path / "pom.xml").read_text()

    assert {"one-1.2.jar", "two_2.13-3.jar", "needed-9.jar"} == {it.name for it in (tmp_path / "jars").iterdir()}
    assert 2 == pom.count("<exclusion><groupId>org.c</groupId><artifactId>not</artifactId></exclusion>")
    assert "<groupId>org.b</groupId><artifactId>two_2.13</artifactId><version>3</version>" in pom

    with pytest.raises(MissingPart, match=r"could not fetch org.a:other:1: \[ERROR\] no such thing"):
        fetch_jars(["org.a:other:1"], tmp_path / "others")
    assert not (tmp_path / "others").exists()


def test_spark_keeps_its_own_jars(tmp_path):
    """Of two versions of a jar, Java would load either."""
    fetched, spark = tmp_path / "fetched", tmp_path / "spark"
    for folder, names in (
        (fetched, ["log4j-api-2.1.jar", "delta-spark_4.1_2.13-4.2.0.jar"]),
        (spark, ["log4j-api-3.jar"]),
    ):
        folder.mkdir()
        for name in names:
            (folder / name).touch()
    for path in list(fetched.iterdir()):
        peers._add(path, spark)

    assert {"log4j-api-3.jar", "delta-spark_4.1_2.13-4.2.0.jar"} == {it.name for it in spark.iterdir()}
