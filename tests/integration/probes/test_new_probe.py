"""A new probe is a declaration, its module, and a test: the command, the exporter and the reference find it."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bench.exporting import exporting, wait_for

pytestmark = pytest.mark.integration

DECLARATION = '''
from pydantic import Field

from ackscope.settings import Seconds
from probes.catalogue.probe import OneShot, Probe, RoundSettings


class TouchSettings(RoundSettings):
    """Settings of the touch probe."""

    interval: Seconds = Field(default=2.0, ge=0.1, le=3600)


PROBE = Probe(
    name="touch",
    summary="declares a queue again",
    settings=TouchSettings,
    module="probes.touch",
    one_shot=OneShot(every=0.2),
)
'''

MODULE = """
import asyncio

from probes.catalogue.touch import PROBE, TouchSettings
from probes.periodic_stream import PeriodicStream
from probes.probe_connection import ProbeConnection
from probes.probe_stream import ProbeStream, StreamContext


class TouchStream(PeriodicStream):
    def __init__(self, context: StreamContext, settings: TouchSettings) -> None:
        self._queue = context.queue(PROBE.name, PROBE.name, "classic")
        stats = context.new_stats(context.identity(PROBE.name, PROBE.name, self._queue))
        super().__init__(context, stats, settings.interval, [self._queue])

    async def session(self) -> None:
        link = await ProbeConnection.open(self._context.server, "ackscope-probe touch")
        try:
            self.stats.connected(link.product)
            self.stats.running()
            await self.repeat(lambda due: self._touch(link))
        finally:
            await link.close()

    async def _touch(self, link: ProbeConnection) -> None:
        began = asyncio.get_running_loop().time()
        await link.declare(self._queue)
        self.stats.steps.ok("touch", began, asyncio.get_running_loop().time() - began)


def streams(settings: TouchSettings, context: StreamContext) -> list[ProbeStream]:
    return [TouchStream(context, settings)]
"""


@pytest.fixture
def with_touch(tmp_path, monkeypatch):
    """Run commands in a folder whose `probes` package has one more probe."""
    shutil.copytree(Path("probes"), tmp_path / "probes", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "probes/catalogue/touch.py").write_text(DECLARATION)
    (tmp_path / "probes/touch.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)


def run(*words):
    """Run a module as a command; its output."""
    return subprocess.run(
        [sys.executable, "-m", *words], capture_output=True, text=True, timeout=120, check=True
    ).stdout


def test_two_files_make_a_probe(lab_43, with_touch):
    """It runs once, is in the help and in the configuration reference, and the exporter exports its metrics."""
    node = lab_43.nodes[0]

    assert "touch        declares a queue again" in run("ackscope", "probe", "--help")
    assert "| `probes.touch.interval` |" in run("exporter.docs.configuration")
    report = run("ackscope", "probe", "touch", "--amqp", node.amqp, "--for", "1s")
    assert "touch" in report
    assert "measurement " in report
    # A probe runs unless it is switched off.
    with exporting(node) as exporter:
        wait_for(
            lambda: 'ackscope_probe_step_seconds_count{cluster="bench",probe="touch"' in exporter.get("/metrics").text,
            "the metrics of the new probe",
        )
