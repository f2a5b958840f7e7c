"""An exporter in its own process, as users run it, connected to a lab broker."""

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pyarrow.dataset as ds
import requests
import yaml
from pyarrow import fs

from ackscope.errors import BrokerError
from lab.node import LabNode

_WITHIN = 60.0
_POLL = 0.05


@dataclass(frozen=True, slots=True)
class Exporter:
    """A running exporter.

    Attributes:
        url: its base URL.
    """

    process: subprocess.Popen[bytes]
    url: str

    def get(self, path: str) -> requests.Response:
        """Send a GET request.

        Raises:
            requests.RequestException: no answer within 30 s, which is long, so that a busy machine ends no benchmark.
        """
        return requests.get(self.url + path, timeout=30)

    def probe_pid(self) -> int | None:
        """Return the PID of the exporter's probe process, or None if there is none."""
        return probe_pid(self.process.pid)

    def probes(self) -> list[dict[str, Any]]:
        """Return the summaries of all streams from `/api/v1/probes`."""
        clusters = self.get("/api/v1/probes").json()["clusters"]
        return [outcome for cluster in clusters for outcome in cluster["probes"]]


def probe_pid(exporter_pid: int) -> int | None:
    """Return the PID of the probe process of an exporter, or None if there is none."""
    for child in psutil.Process(exporter_pid).children():
        try:
            if "probes.child" in child.cmdline():
                return child.pid
        except psutil.Error:
            # The process ended after it was listed.
            continue
    return None


@contextmanager
def exporting(
    node: LabNode, *, probes: bool = True, settings: dict[str, Any] | None = None, root: dict[str, Any] | None = None
) -> Iterator[Exporter]:
    """Run an exporter with default settings while the block runs.

    Args:
        node: the broker.
        probes: whether the exporter runs probes.
        settings: the `probes` section of its file, instead of the defaults.
        root: other sections of its file by name, such as `poll`.

    Raises:
        BrokerError: it did not start.
    """
    cluster = {"management": {"url": node.management}, **({"amqp": {"url": node.amqp}} if probes else {})}
    with exporting_cluster(cluster, {"probes": settings or {}, **(root or {})}) as exporter:
        yield exporter


@contextmanager
def exporting_cluster(cluster: dict[str, Any], root: dict[str, Any] | None = None) -> Iterator[Exporter]:
    """Run an exporter with this cluster section, while the block runs.

    Raises:
        BrokerError: it did not start.
    """
    with tempfile.TemporaryDirectory(prefix="ackscope-bench-") as folder:
        config, log = Path(folder) / "ackscope.yml", Path(folder) / "exporter.log"
        document = {
            "listen": "127.0.0.1:0",
            "clusters": {"bench": cluster},
            "landing": {"directory": f"{folder}/landing"},
        }
        config.write_text(yaml.safe_dump({**document, **(root or {})}))
        with log.open("wb") as sink:
            process = subprocess.Popen(
                [sys.executable, "-m", "ackscope", "exporter", "--config", str(config)],
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
            )
        try:
            yield Exporter(process, wait_for(lambda: _address(process, log), "the exporter's address"))
        finally:
            end_process(process)


def end_process(process: subprocess.Popen[bytes], seconds: float = 20) -> None:
    """Send SIGTERM, and SIGKILL if the process does not end in time."""
    process.terminate()
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def bucket_rows(storage: Mapping[str, str], table: str) -> list[dict[str, Any]]:
    """Return the rows of a table of landing files in a bucket.

    Args:
        storage: environment of clients of the S3 server.
        table: address of its folder, `s3://bucket/path`.
    """
    store = fs.S3FileSystem(
        access_key=storage["AWS_ACCESS_KEY_ID"],
        secret_key=storage["AWS_SECRET_ACCESS_KEY"],
        region=storage["AWS_REGION"],
        endpoint_override=storage["AWS_ENDPOINT_URL"],
    )
    chosen = fs.FileSelector(table.removeprefix("s3://"), allow_not_found=True, recursive=True)
    files = [each.path for each in store.get_file_info(chosen) if each.is_file]
    return ds.dataset(files, filesystem=store).to_table().to_pylist() if files else []


def wait_for(read: Callable[[], Any], what: str, seconds: float = _WITHIN) -> Any:
    """Call `read` until it returns a true value, and return that value.

    Raises:
        BrokerError: there was no true value in time.
    """
    deadline = time.monotonic() + seconds
    while not (answer := read()):
        if time.monotonic() > deadline:
            raise BrokerError(f"{what}: not seen within {seconds:g} s")
        time.sleep(_POLL)
    return answer


def _address(process: subprocess.Popen[bytes], log: Path) -> str | None:
    text = log.read_text(errors="replace")
    if process.poll() is not None:
        raise BrokerError(f"the exporter ended by itself: {text.strip().splitlines()[-1:] or 'it said nothing'}")
    found = re.search(r"msg=serving url=(http://\S+)", text)
    return found[1] if found else None
