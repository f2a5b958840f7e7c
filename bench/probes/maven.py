"""RabbitMQ PerfTest, downloaded once with Maven into the user's cache."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from ackscope.errors import MissingPart
from bench.bench import progress
from lab.bootstrap import cache_directory

VERSION = "2.22.1"
MAIN = "com.rabbitmq.perf.PerfTest"

_POM = f"""\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>ackscope.bench</groupId>
  <artifactId>perf-test-fetch</artifactId>
  <version>1</version>
  <dependencies>
    <dependency><groupId>com.rabbitmq</groupId><artifactId>perf-test</artifactId><version>{VERSION}</version></dependency>
  </dependencies>
</project>
"""


def perf_test() -> list[str]:
    """Return the command that starts PerfTest, without options.

    Raises:
        MissingPart: Java or Maven is missing, or the download failed.
    """
    for program, package in (("java", "default-jre-headless"), ("mvn", "maven")):
        if shutil.which(program) is None:
            raise MissingPart(f"{program} is missing: apt-get install {package}")
    jars = cache_directory(os.environ) / "perf-test" / VERSION
    if not jars.exists():
        _fetch(jars)
    return ["java", "-cp", f"{jars}/*", MAIN]


def _fetch(jars: Path) -> None:
    progress(f"fetching PerfTest {VERSION} with Maven into {jars}")
    jars.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=jars.parent) as folder:
        partial = Path(folder) / "jars"
        pom = Path(folder) / "pom.xml"
        pom.write_text(_POM)
        done = subprocess.run(
            ["mvn", "-q", "-B", "-f", str(pom), "dependency:copy-dependencies", f"-DoutputDirectory={partial}"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0 or not list(partial.glob("perf-test-*.jar")):
            said = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
            why = next((line for line in said if "ERROR" in line), "it said nothing")
            raise MissingPart(f"Maven could not fetch PerfTest {VERSION}: {why[:200]}")
        partial.rename(jars)
