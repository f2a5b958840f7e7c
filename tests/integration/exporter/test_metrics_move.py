"""Every documented metric is seen beside a real broker, and those that can move do move."""

import re
import time

import pytest
import requests
from prometheus_client.parser import text_string_to_metric_families

from ackscope.clock import SystemClock
from exporter.broker.settings import ManagementSettings
from exporter.broker.snapshot_builder import read_once
from exporter.docs import metrics as page
from exporter.docs.untested import untested_reason
from exporter.exposition.cardinality.top_k import TopK
from exporter.exposition.compat.names import MetricNames
from exporter.exposition.compat.select import collectors_for
from exporter.exposition.settings import MetricsSettings
from exporter.probes_host.metric_specs import BLOCKS
from lab.cluster import start_lab
from tests.integration.exporter.busy import PLUGINS, Busy
from tests.integration.exporter.moves import Moves
from tests.integration.exporter.running import eventually, exporting
from tests.unit.exporter.delivery.receiving import receiving

pytestmark = [pytest.mark.integration, pytest.mark.slow]

WITHIN = 240.0
"""A loaded machine needs many rounds; what moves is seen much sooner on an idle one."""
CAPPED = "ackscope_dropped_series"
"""It moves when the caps do, at the very end."""
COLLECTORS = collectors_for(MetricNames.BOTH, with_detailed=True)


class Watch(Moves):
    """What a lab tells, through every collector."""

    def __init__(self, lab):
        super().__init__()
        self._settings = ManagementSettings(url=lab.nodes[0].management)
        self._chooser = TopK(MetricsSettings())
        self.version = None

    def cap(self):
        """From now on only a few objects of each kind have series of their own."""
        caps = {f"max_{kind}": 2 for kind in ("queues", "channels", "consumers", "connections", "exchanges")}
        self._chooser.apply(MetricsSettings(**caps))

    def read(self):
        """One reading of everything."""
        snapshot = read_once("lab", self._settings, SystemClock(), 10)
        self.version = snapshot.version or self.version
        selection = self._chooser.select([snapshot])
        families = [it for each in COLLECTORS.values() for it in each.collect([snapshot], selection)]
        self.add(
            (sample.name, tuple(sample.labels.items()), sample.value)
            for family in families
            for sample in family.samples
        )


def reported(spec, version):
    """Whether this version of the broker tells the metric."""
    return (spec.since is None or version >= spec.since) and (spec.until is None or version < spec.until)


@pytest.mark.parametrize("broker", ["3.10", "4.3"])
def test_every_metric_of_the_broker_is_seen_and_moves(broker):
    """But for those that the page of metrics has a reason for."""
    with start_lab(broker, extra=PLUGINS) as lab, Busy(lab) as busy:
        watch = Watch(lab)
        watch.read()
        specs = [spec for collector in COLLECTORS.values() for spec in collector.specs if reported(spec, watch.version)]
        expected = [spec for spec in specs if not untested_reason(spec)]
        until = time.monotonic() + WITHIN
        while time.monotonic() < until and not all(watch.moved(it) or it.name == CAPPED for it in expected):
            busy.stir()
            for _ in range(4):
                time.sleep(1.5)
                watch.read()
        watch.cap()
        watch.read()
    unseen, unmoved = watch.lacking(expected)

    assert not unseen + unmoved, f"not seen: {' '.join(unseen)}; not moved: {' '.join(unmoved)}"


def own_metrics():
    """Every metric of ours that is not the broker's, and stands on `/metrics`."""
    return {
        spec.name: spec
        for heading, specs in page.sections().items()
        for spec in specs
        if not heading.startswith(("Broker", "`/probe"))
    }


def of_page(text, known):
    """The samples of a page, those of a histogram under its name."""
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            name = next(
                (it for it in (sample.name, re.sub("_(bucket|count|sum)$", "", sample.name)) if it in known), None
            )
            if name is not None:
                yield name, (sample.name, *sorted(sample.labels.items())), sample.value


def mute(exporter, finding):
    """Mute one finding for an hour."""
    change = {
        "cluster": "shop",
        "rule": finding["rule"],
        "subject": finding["subject"],
        "by": "ann",
        "mute_seconds": 3600,
    }
    assert 200 == requests.post(f"{exporter.url}/api/v1/triage", json=change, timeout=10).status_code


def settings(folder, hook):
    """A budget so small that intervals stretch, a file for triage, a receiver of all findings."""
    everything = ["critical", "warning", "info"]
    return {
        "poll": {"interval": "1s", "budget": 0.005},
        "triage": {"file": str(folder / "triage.json")},
        "delivery": {
            "receivers": {"hook": {"webhook": {"url": hook.url}}},
            "routes": [{"receiver": "hook", "severities": everything}],
        },
    }


def test_every_metric_of_the_exporter_is_seen_and_moves(tmp_path):
    """While its broker works and dies and comes back, its probes are killed, and its file is right and wrong."""
    known, moves = own_metrics(), Moves()
    expected = [spec for spec in known.values() if not untested_reason(spec)]
    with (
        start_lab("4.3", extra=PLUGINS) as lab,
        receiving() as hook,
        exporting(lab.nodes[0], tmp_path, **settings(tmp_path, hook)) as exporter,
    ):
        hook.away()

        def watch(readings, pause=1.5):
            for _ in range(readings):
                time.sleep(pause)
                moves.add(of_page(exporter.get("/metrics").text, known))

        # What happened before the first look at it is not seen to move: the probes run before the broker blocks them.
        eventually(lambda: watch(1) or BLOCKS.name not in moves.lacking(expected)[0])
        with Busy(lab) as busy:
            busy.stir()
            watch(10)
        hook.up()
        mute(exporter, eventually(lambda: exporter.cluster("findings")["findings"])[0])
        watch(2)
        for child in exporter.children():
            child.kill()
        watch(15, pause=0.1)
        exporter.reload()
        watch(2)
        lab.kill(0)
        watch(6)
        lab.restart(0)
        exporter.write(nonsense=1)
        exporter.reload()
        until = time.monotonic() + 30
        while time.monotonic() < until and any(moves.lacking(expected)):
            watch(1)
    unseen, unmoved = moves.lacking(expected)

    assert not unseen + unmoved, f"not seen: {' '.join(unseen)}; not moved: {' '.join(unmoved)}"
