"""Jars of other projects, fetched once with Maven into the user's cache."""

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ackscope.errors import MissingPart
from bench.bench import progress

_DEPENDENCY = """\
    <dependency>
      <groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>
      <exclusions>{}</exclusions>
    </dependency>
"""
_EXCLUSION = "<exclusion><groupId>{}</groupId><artifactId>{}</artifactId></exclusion>"
_POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>ackscope.bench</groupId>
  <artifactId>fetch</artifactId>
  <version>1</version>
  <dependencies>
{}  </dependencies>
</project>
"""


def require_maven() -> None:
    """Check that Java and Maven are installed.

    Raises:
        MissingPart: they are not.
    """
    for program, package in (("java", "default-jre-headless"), ("mvn", "maven")):
        if shutil.which(program) is None:
            raise MissingPart(f"{program} is missing: apt-get install {package}")


def fetch_jars(artifacts: Sequence[str], jars: Path, without: Sequence[str] = ()) -> None:
    """Fetch artifacts, and what they need at run time, into a folder that does not exist yet.

    Args:
        artifacts: `group:artifact:version` each.
        jars: the folder.
        without: `group:artifact` of dependencies that are left out, with theirs.

    Raises:
        MissingPart: Maven is missing, or the download failed.
    """
    require_maven()
    progress(f"fetching {', '.join(artifacts)} with Maven into {jars}")
    jars.parent.mkdir(parents=True, exist_ok=True)
    exclusions = "".join(_EXCLUSION.format(*it.split(":")) for it in without)
    with tempfile.TemporaryDirectory(dir=jars.parent) as folder:
        partial, pom = Path(folder) / "jars", Path(folder) / "pom.xml"
        pom.write_text(_POM.format("".join(_DEPENDENCY.format(*it.split(":"), exclusions) for it in artifacts)))
        words = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={partial}"]
        done = subprocess.run(
            ["mvn", "-q", "-B", "-f", str(pom), *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        names = [it.split(":")[1] for it in artifacts]
        if done.returncode != 0 or not all(list(partial.glob(f"{name}-*.jar")) for name in names):
            said = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
            why = next((line for line in said if "ERROR" in line), "it said nothing")
            raise MissingPart(f"Maven could not fetch {', '.join(artifacts)}: {why[:200]}")
        partial.rename(jars)
