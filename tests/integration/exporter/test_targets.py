"""The scrape job of docs/exporter.md in a real Prometheus, which names the broker."""

import subprocess
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest
import yaml

from lab.demo.prometheus import answers, query
from lab.ports import free_ports
from tests.integration.exporter.running import eventually, exporting
from tests.unit.exporter.test_exporter_page import block

pytestmark = pytest.mark.integration


@contextmanager
def prometheus(folder, exporter, targets):
    """Run one with the job of the page, these targets, and this exporter; yields its address."""
    document = yaml.safe_load(block("prometheus.yml"))
    (job,) = document["scrape_configs"]
    job.update(scrape_interval="5s", scrape_timeout="4s", static_configs=[{"targets": targets}])
    job["relabel_configs"][-1]["replacement"] = urlsplit(exporter.url).netloc
    config, listen = folder / "prometheus.yml", f"127.0.0.1:{free_ports(1)[0]}"
    config.write_text(yaml.safe_dump(document))
    words = [f"--config.file={config}", f"--storage.tsdb.path={folder / 'data'}", f"--web.listen-address={listen}"]
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(["prometheus", *words], stdout=log, stderr=log)
    try:
        eventually(lambda: answers(f"http://{listen}/-/ready"))
        yield f"http://{listen}"
    finally:
        process.terminate()
        process.wait(30)


def test_prometheus_reads_brokers_that_it_names(lab_43, tmp_path):
    """Each under its own instance; one that is away is reported as such, one that is not allowed is no target."""
    parts = urlsplit(lab_43.nodes[0].management)
    broker, away, elsewhere = f"127.0.0.1:{parts.port}", f"127.0.0.1:{free_ports(1)[0]}", "127.0.0.2:15672"
    module = {"targets": [broker, away], "username": parts.username, "password": parts.password}
    with (
        exporting(lab_43.nodes[0], tmp_path, clusters={}, modules={"prod": module}) as exporter,
        prometheus(tmp_path, exporter, [broker, away, elsewhere]) as base,
    ):
        success = eventually(lambda: len(found := query(base, "probe_success", "instance")) == 2 and found)
        up = eventually(lambda: len(found := query(base, "up", "instance")) == 3 and found)
        queues = query(base, "count by (instance) (rabbitmq_build_info)", "instance")
        exporter.stop()

    assert {broker: 1, away: 0} == success
    assert {broker: 1, away: 1, elsewhere: 0} == up
    assert {broker: 1} == queues
