import re
import socket
import subprocess
from contextlib import contextmanager

import bcrypt
import pytest
import requests
import yaml

from ackscope.clock import SystemClock
from exporter.exposition.cardinality.top_k import TopK
from exporter.exposition.collectors.contract import Collector
from exporter.exposition.encode import Format
from exporter.exposition.live import polls
from exporter.exposition.page_cache import PageCache
from exporter.exposition.settings import MetricsSettings
from exporter.exposition.specs import MetricFamilies, gauge
from exporter.runtime.state import StateStore
from exporter.web.config import WebConfig
from exporter.web.http import Route
from exporter.web.server import HttpServer
from tests.integration.exporter.running import eventually
from tests.unit.exporter.made import SetClock, promtool, small
from tests.unit.exporter.web.certificates import make

pytestmark = pytest.mark.integration

TLS_FILES = {"ca_file": "ca.pem", "cert_file": "client.pem", "key_file": "client.key"}
NAME = 'new "one"\n'
"""The queue of the page whose name every escape of every format must bring through."""


@pytest.fixture
def page():
    """The page of a small cluster, with a live part."""
    clock, state = SetClock(), StateStore(["shop"])
    state.put_snapshot(small())
    live = {"polls": lambda: polls.collect(state.clusters(), {}, clock.now())}
    return PageCache(state, TopK(MetricsSettings()), live, clock)


@pytest.fixture
def folder(tmp_path):
    """Certificates of an authority, a server and a client, and the web configuration that asks for all there is."""
    make(tmp_path, "ca")
    make(tmp_path, "server", issuer="ca")
    make(tmp_path, "client", "DNS:prometheus.shop", issuer="ca")
    document = {
        "tls_server_config": {
            "cert_file": "server.pem",
            "key_file": "server.key",
            "client_auth_type": "RequireAndVerifyClientCert",
            "client_ca_file": "ca.pem",
            "client_allowed_sans": ["prometheus.shop"],
            "min_version": "TLS13",
        },
        "basic_auth_users": {"ann": bcrypt.hashpw(b"secret", bcrypt.gensalt(4)).decode()},
    }
    (tmp_path / "web.yml").write_text(yaml.safe_dump(document))
    return tmp_path


@contextmanager
def serving(page, web=None):
    """Yields the address."""
    server = HttpServer(("127.0.0.1", 0), {"/metrics": Route("metrics", page.respond)}, web)
    server.start()
    try:
        yield server.url
    finally:
        server.stop()


@contextmanager
def prometheus(folder, address, **more):
    """A real Prometheus that scrapes it each second; yields its own address."""
    scheme, _, target = address.partition("://")
    job = {"job_name": "page", "scheme": scheme, "static_configs": [{"targets": [target]}], **more}
    config = folder / "prometheus.yml"
    config.write_text(yaml.safe_dump({"global": {"scrape_interval": "1s"}, "scrape_configs": [job]}))
    with socket.create_server(("127.0.0.1", 0)) as free:
        listen = f"127.0.0.1:{free.getsockname()[1]}"
    words = [f"--config.file={config}", f"--storage.tsdb.path={folder / 'data'}", f"--web.listen-address={listen}"]
    log = folder / "prometheus.log"
    with log.open("wb") as sink:
        process = subprocess.Popen(["prometheus", *words], stdout=sink, stderr=sink)
    try:
        yield f"http://{listen}"
    finally:
        process.terminate()
        process.wait(20)


def query(base, expression):
    """The series of an instant query; none while Prometheus starts."""
    try:
        answer = requests.get(f"{base}/api/v1/query", params={"query": expression}, timeout=5)
    except requests.ConnectionError:
        return []
    return answer.json()["data"]["result"] if answer.ok else []


def test_promtool_has_nothing_against_the_page(page):
    """Of the format that it reads; the other is read by Prometheus below."""
    with serving(page) as url:
        assert "" == promtool(requests.get(f"{url}/metrics", timeout=10).text)


def test_curl_reads_the_same_page_plain_and_compressed(page):
    """The compressed page is made of two parts, and is one to a foreign reader."""
    with serving(page) as url:
        plain, packed = (
            subprocess.run(
                ["curl", "--silent", "--show-error", "--fail", *words, f"{url}/metrics"],
                capture_output=True,
                check=True,
            ).stdout
            for words in ([], ["--compressed"])
        )

    assert b'queue="new \\"one\\"\\n"' in plain
    assert without_durations(plain) == without_durations(packed)


def without_durations(text):
    """The page, without what differs between two scrapes."""
    return re.sub(rb"(?m)^ackscope_collector_duration_seconds.*$", b"", text)


def test_prometheus_reads_it_through_tls_with_its_own_certificate_and_password(page, folder):
    """It asks for OpenMetrics and gzip by itself; names, counters and odd labels arrive; a wrong password is down."""
    web = WebConfig.load(folder / "web.yml")
    tls = {name: str(folder / file) for name, file in TLS_FILES.items()}
    with (
        serving(page, web) as url,
        prometheus(folder, url, tls_config=tls, basic_auth={"username": "ann", "password": "secret"}) as base,
    ):
        eventually(lambda: query(base, "up == 1"))
        (queue,) = query(base, 'rabbitmq_queue_messages{queue="orders"}')
        names = {series["metric"]["queue"] for series in query(base, "ackscope_queue_info")}
        published = query(base, "rabbitmq_queue_messages_published_total")
        shown = requests.get(
            f"{base}/api/v1/metadata", params={"metric": "ackscope_poll_age_seconds"}, timeout=5
        ).json()

    assert [Format.OPENMETRICS] == list(page._page.compressed)
    assert "7" == queue["value"][1]
    assert {"orders", NAME} <= names
    assert ["10"] == [series["value"][1] for series in published]
    assert "seconds" == shown["data"]["ackscope_poll_age_seconds"][0]["unit"]


def test_prometheus_reads_a_large_page_whole(tmp_path):
    """Compressed in two parts, with new snapshots between the scrapes; every sample arrives, all of one snapshot."""
    rows = gauge("ackscope_row", "A row.", "a test", "row")
    state = StateStore(["shop"])

    def collect(*_):
        families = MetricFamilies((rows,))
        for row in range(50_000):
            families.add(rows, {"row": str(row)}, state.generation)
        return families.result()

    page = PageCache(state, TopK(MetricsSettings()), {}, SystemClock(), {"rows": Collector((rows,), collect)})
    with serving(page) as url, prometheus(tmp_path, url) as base:
        for generation in range(1, 4):
            state.put_snapshot(small())
            page.refresh()
            eventually(lambda seen=str(generation): reported(base, "max(ackscope_row)") == [seen])
            assert ["50000"] == reported(base, "count(ackscope_row)")
            assert [str(generation)] == reported(base, "min(ackscope_row)")


def reported(base, expression):
    """The values of an instant query."""
    return [series["value"][1] for series in query(base, expression)]


def test_prometheus_is_reported_when_its_password_is_wrong(page, folder):
    """The target is down, for the reason that it shows to its user."""
    web = WebConfig.load(folder / "web.yml")
    tls = {name: str(folder / file) for name, file in TLS_FILES.items()}
    wrong = {"username": "ann", "password": "wrong"}
    with serving(page, web) as url, prometheus(folder, url, tls_config=tls, basic_auth=wrong) as base:
        eventually(lambda: query(base, "up == 0"))
        (target,) = requests.get(f"{base}/api/v1/targets", timeout=5).json()["data"]["activeTargets"]

    assert "server returned HTTP status 401 Unauthorized" == target["lastError"]
