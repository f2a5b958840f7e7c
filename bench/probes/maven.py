"""RabbitMQ PerfTest, downloaded once with Maven into the user's cache."""

import os

from bench.maven import fetch_jars, require_maven
from lab.bootstrap import cache_directory

VERSION = "2.22.1"
MAIN = "com.rabbitmq.perf.PerfTest"


def perf_test() -> list[str]:
    """Return the command that starts PerfTest, without options.

    Raises:
        MissingPart: Java or Maven is missing, or the download failed.
    """
    require_maven()
    jars = cache_directory(os.environ) / "perf-test" / VERSION
    if not jars.exists():
        fetch_jars([f"com.rabbitmq:perf-test:{VERSION}"], jars)
    return ["java", "-cp", f"{jars}/*", MAIN]
