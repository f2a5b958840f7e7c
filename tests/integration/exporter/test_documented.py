"""The commands of the documentation, run as they are written, page by page.

Only addresses, passwords and folders outside the working folder are replaced. An address of a server gets a free port.
"""

import os
import shlex
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager

import bcrypt
import pytest
import requests
import yaml

from ackscope.address import parse_amqp
from lab.amqp import connect
from lab.s3_server import s3_server
from tests.dashboard.command import free_port
from tests.documented import DOCS, HERE, ROOT, RUN_BY, beginning, commands, lines
from tests.integration.diagnosis.commands import Shell
from tests.integration.exporter.running import Management, eventually, exporting
from tests.unit.exporter.delivery.receiving import receiving

pytestmark = [pytest.mark.integration, pytest.mark.slow]

FOLDERS = ("/etc", "/opt/ackscope", "/var")
QUEUE = "orders"
# A queue of a few seconds is stuck.
QUICK = {"consumers": {"stuck_seen": 1, "stuck_for": 1, "stuck_never_acked": 1, "stuck_long": 2}, "early": 86400}
SECONDS = 240
TRACE = "Traceback (most recent call last)"


def run_here():
    """The lines of each page of which every command is run here, each line once."""
    seen, found = set(), {}
    for page in DOCS:
        for line in lines(page):
            known = [beginning(words, RUN_BY) for words in commands(line)]
            same = tuple(commands(line))
            if all(RUN_BY.get(each) == HERE for each in known) and same not in seen:
                # Users of the broker are made and permitted by several lines of a page, which belong together.
                seen |= set() if same[0][0] == "rabbitmqctl" else {same}
                found.setdefault(page.relative_to(ROOT).as_posix(), []).append(line)
    return found


LINES = run_here()


@pytest.fixture(scope="module")
def node(lab_43):
    """A node with a queue whose only consumer acknowledges nothing."""
    node = lab_43.nodes[0]
    management = Management(node)
    management.declare(QUEUE, "classic")
    management.publish(QUEUE, 30)
    client = connect(parse_amqp(node.amqp), "documented", heartbeat=0)
    channel = client.channel()
    channel.basic_qos(prefetch_count=10)
    channel.basic_consume(QUEUE, lambda *_: None)
    yield node
    client.close()
    # A new session: the broker has closed the idle connection of the first one.
    Management(node).sweep(QUEUE)


@pytest.fixture(scope="module")
def exporter(node, tmp_path_factory):
    """The exporter that the pages call 127.0.0.1:9419."""
    folder = tmp_path_factory.mktemp("exporter")
    settings = {"triage": {"file": str(folder / "triage.json")}, "diagnosis": QUICK, "probes": {"enabled": []}}
    with exporting(node, folder, **settings) as running:
        yield running


@pytest.fixture(scope="module")
def bucket():
    """The environment of clients of an S3 server with the bucket `history`."""
    with s3_server() as values:
        yield values


@pytest.fixture
def broker(lab_43):
    """The API of the broker; users and virtual hosts that a page makes are removed."""

    class Broker:
        url = lab_43.nodes[0].management

        def names(self):
            return eventually(self._listed)

        def _listed(self):
            try:
                return {
                    f"{kind}/{each['name']}".replace("vhosts//", "vhosts/%2F")
                    for kind in ("users", "vhosts")
                    for each in requests.get(f"{self.url}/api/{kind}?columns=name", timeout=10).json()
                }
            except requests.ConnectionError:
                # Seen once from a loaded broker, after a virtual host was deleted: it closed the connection unanswered.
                return None

        def restore(self):
            for name in self.names() - before:
                requests.delete(f"{self.url}/api/{name}", timeout=10).raise_for_status()

    found = Broker()
    before = found.names()
    yield found
    found.restore()


class Reader:
    """Somebody who types what a page shows, in a folder of their own."""

    def __init__(self, lab, exporter, broker, bucket, folder):
        self._folder, self._exporter, self._broker = folder, exporter, broker
        self._root = folder / "root"
        self._node = lab.nodes[0]
        tools = folder / "tools"
        tools.mkdir()
        (tools / "ackscope").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m ackscope "$@"\n')
        (tools / "ackscope").chmod(0o755)
        Shell(lab.control(), tools, "")  # writes rabbitmqctl
        path = f"{tools}:{os.environ['PATH']}"
        self._environ = {**os.environ, **bucket, "PATH": path, "PYTHONPATH": str(ROOT)}

    def prepare(self, webhook):
        """Files that the pages say the reader has: configuration, users, and those of Prometheus, systemd, upgrades."""
        home = self._folder / "home"
        for each in ("var/lib/private/ackscope", "var/backups", "etc/systemd/system", "etc/ackscope", "etc/prometheus"):
            (self._root / each).mkdir(parents=True)
        home.mkdir()
        receivers = {name: {"webhook": {"url": webhook.url}} for name in ("chat", "phone")}
        configuration = {
            "listen": "127.0.0.1:0",
            "clusters": {"shop": {"management": {"url": self._node.management}}},
            "delivery": {"directory": str(self._root / "var/lib/ackscope/delivery"), "receivers": receivers},
        }
        (home / "ackscope.yml").write_text(yaml.safe_dump(configuration))
        password = bcrypt.hashpw(b"secret", bcrypt.gensalt(4)).decode()
        (home / "web.yml").write_text(yaml.safe_dump({"basic_auth_users": {"mcp": password}}))
        (self._root / "etc/ackscope/mcp-password").write_text("secret\n")
        shutil.copy(ROOT / "deploy/prometheus/ackscope-alerts.yml", home)
        scrape_job = (ROOT / "docs/prometheus.md").read_text().partition("```yaml\n")[2].partition("```")[0]
        (self._root / "etc/prometheus/prometheus.yml").write_text(self._here(scrape_job))
        return home

    def _here(self, text):
        """The text with what exists here."""
        found = {
            "http://monitor:PASSWORD@broker:15672": self._node.management,
            "http://admin@broker:15672": self._node.management,
            "https://BROKER": self._node.management,
            "-u ADMIN ": "",
            "/VHOST/": "/%2F/",
            "curl ": "curl --fail-with-body -sS ",
            "http://127.0.0.1:9419": self._exporter.url,
            "https://ackscope.example:9419": self._exporter.url,
            "0.0.0.0:9420": f"127.0.0.1:{free_port()}",
            "/opt/ackscope/.venv/bin/ackscope ": "ackscope ",
            ".venv/bin/ackscope ": "ackscope ",
            **{f" {folder}/": f" {self._root}{folder}/" for folder in FOLDERS},
        }
        for written, meant in found.items():
            text = text.replace(written, meant)
        return text

    def type(self, line, home):
        """Run a line to its end, or a server until it serves."""
        text = self._here(line.partition(" #")[0] if "\n" not in line else line)
        (words, *_) = commands(line)
        if words[:2] == ("ackscope", "init"):
            self._broker.restore()
            home = home / f"init-{'-'.join(word.strip('-') for word in words if word in {'--systemd', '--dry-run'})}"
            home.mkdir(exist_ok=True)
            text += "" if "--dry-run" in words else " --yes"
            if "--systemd" in words:
                text += f" -o {self._root}/etc/ackscope --data {self._root}/var/lib/ackscope"
        if words[:2] == ("ackscope", "dashboard"):
            listen = f"127.0.0.1:{free_port()}"
            return self._serve(f"{text} --listen {listen}", home, f"http://{listen}/_stcore/health")
        if words[:2] == ("ackscope", "mcp"):
            return self._serve(text, home, f"http://{text.partition('--http ')[2].split()[0]}/mcp")
        if words[:2] == ("ackscope", "exporter") and "--check-config" not in words:
            return self._serve(text, home, None)
        with _running(text, home, self._environ) as (process, log):
            code = process.wait(SECONDS)
        allowed = {0, 1, 2} if words[:2] == ("ackscope", "diagnose") else {0}
        return None if code in allowed and TRACE not in log.read_text() else (code, log.read_text())

    def _serve(self, text, home, url):
        with _running(f"exec {text}", home, self._environ) as (process, log):
            eventually(lambda: process.poll() is not None or _answers(url, log))
            process.send_signal(signal.SIGTERM)
            code = process.wait(30)
        # uvicorn raises the signal again when the MCP server has ended.
        return None if code in {0, -signal.SIGTERM} and TRACE not in log.read_text() else (code, log.read_text())


@contextmanager
def _running(text, home, environ):
    log = home / "log"
    with log.open("wb") as sink:
        words = ["bash", "-o", "pipefail", "-c", text]
        process = subprocess.Popen(
            words,
            cwd=home,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield process, log
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _answers(url, log):
    """Whether a server is ready: it answers, or says that it serves."""
    if url is None:
        return "msg=serving url=" in log.read_text()
    try:
        return requests.get(url, timeout=2).status_code in {200, 401}
    except requests.RequestException:
        return False


@pytest.mark.parametrize("page", LINES)
def test_the_commands_of_a_page_run(page, lab_43, exporter, broker, bucket, tmp_path):
    """In their order, each with a documented exit code and without a traceback."""
    reader = Reader(lab_43, exporter, broker, bucket, tmp_path)
    with receiving() as webhook:
        home = reader.prepare(webhook)
        if page == "docs/exporter.md":
            eventually(lambda: any(it["rule"] == "stuck-consumer" for it in exporter.cluster("findings")["findings"]))
        failed = {line: problem for line in LINES[page] if (problem := reader.type(line, home))}
        heard = len(webhook.arrived)

    assert {} == failed
    # `notify` to both receivers, then to one.
    assert page != "docs/delivery.md" or 3 == heard
