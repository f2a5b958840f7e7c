"""The whole flow on a real broker of the newest version: healthy, ill, without its broker, and back.

`test_demo` runs the same parts on the oldest one.
"""

import os
import re
import subprocess

import pytest

from tests.dashboard.browser import chromium
from tests.e2e.story import AWAY, FAULTS, INTERVAL, Story, live, pressing
from tests.e2e.visits import quiet

pytestmark = [
    pytest.mark.integration,
    pytest.mark.spark,
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.timeout(1800),
]

BROKER = "4.3"


def _read_page(url: str, wanted: str) -> str:
    """The text of the page once `wanted` is on it; its picture goes to $ACKSCOPE_SCREENSHOT, where that is set."""
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 1000})
        page.goto(url)
        page.set_default_timeout(60_000)
        page.locator(".st-key-finding-rows button:visible", has_text=wanted).first.click()
        page.locator(".st-key-finding-details", has_text=wanted).wait_for()
        quiet(page)
        picture = os.environ.get("ACKSCOPE_SCREENSHOT")
        if picture:
            page.wait_for_timeout(4000)
            page.screenshot(path=picture)
        return page.inner_text("body")


@pytest.fixture(scope="session")
def story() -> Story:
    """The story as it was lived."""
    return live(BROKER, _read_page)


def test_the_broker_is_the_one_that_was_asked_for(story: Story) -> None:
    """The version is read from the running broker."""
    assert story.broker.startswith(f"{BROKER}.")


def test_nothing_is_found_on_a_healthy_broker(story: Story) -> None:
    """The workload has retries, a slow consumer and a fan-out: none of them is a fault."""
    assert [] == [(finding["rule"], finding["summary"]) for finding in pressing(story.healthy)]


def test_both_queue_types_are_measured_from_publish_to_delivery(story: Story) -> None:
    """With the probes' own error beside the figures."""
    sending = [probe for probe in story.probes if probe["probe"] in {"confirm", "delivery"}]
    streams = {(probe["probe"], probe["stream"]) for probe in sending}

    assert {(name, kind) for name in ("confirm", "delivery") for kind in ("classic", "quorum")} <= streams
    assert all(probe["confirm"]["p99"] > 0 and probe["send_delay"]["count"] > 0 for probe in sending)


def test_every_stream_of_every_probe_runs(story: Story) -> None:
    """None waits, fails, or is held back on a healthy broker."""
    assert [] == [
        (probe["probe"], probe["stream"], probe["state"], probe["reason"])
        for probe in story.probes
        if probe["state"] != "running"
    ]


def test_promtool_accepts_the_metrics(story: Story) -> None:
    """Prometheus' own linter has nothing to say about the real output."""
    done = subprocess.run(
        ["promtool", "check", "metrics"], input=story.metrics, text=True, capture_output=True, check=False
    )

    assert (0, "") == (done.returncode, done.stdout + done.stderr)
    assert "ackscope_confirm_latency_seconds_bucket{" in story.metrics


def test_the_exporter_tells_how_far_the_pipeline_is_behind(story: Story) -> None:
    """It reads what a real stream says of itself; how far that is depends on the machine."""
    (lag,) = re.findall(r"^ackscope_pipeline_lag_seconds (\S+)$", story.metrics, re.MULTILINE)

    assert float(lag) >= 0


def test_a_real_prometheus_answers_for_the_confirm_p99(story: Story) -> None:
    """It scraped the exporter, and the histogram has the queue types."""
    assert {"classic", "quorum"} <= set(story.prometheus_p99)
    assert all(0 < seconds < 60 for seconds in story.prometheus_p99.values())


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_named_on_its_queue(story: Story, fault: str) -> None:
    """The rule has the fault's name, its subject is the queue that was broken, and it says what to do."""
    found = [finding for finding in story.sick if finding["rule"] == fault]

    assert [story.subjects[fault]] == [finding["subject"]["name"] for finding in found]
    assert all(finding["evidence"] and finding["next_steps"] and finding["cause"] for finding in found)


def test_three_faults_raise_three_findings(story: Story) -> None:
    """One cause is one finding: nothing else is blamed."""
    other = [each["summary"] for each in pressing(story.sick) if each["rule"] not in FAULTS]

    assert [] == other
    assert sorted(FAULTS) == sorted(finding["rule"] for finding in pressing(story.sick))


def test_a_person_reads_the_finding_on_the_page(story: Story) -> None:
    """In a real browser: which rule, on which queue, why, and what to do."""
    finding = next(finding for finding in story.sick if finding["rule"] == FAULTS[0])
    # The page shows the text of a step and its command apart.
    words = finding["steps"][0]["text"]

    assert [] == [
        text for text in (FAULTS[0], finding["subject"]["name"], finding["cause"], words) if text not in story.page
    ]


def test_every_panel_of_grafana_has_an_answer(story: Story) -> None:
    """A real Prometheus, fed by this broker: no expression is refused, and none that should show something is empty."""
    assert len(story.panels) > 40
    assert [] == [panel.expression for panel in story.panels if panel.answers < 0]
    filled = {panel.name for panel in story.panels if panel.answers or panel.may_be_empty}

    assert [] == sorted({panel.name for panel in story.panels} - filled)


def test_the_exporter_outlives_its_broker(story: Story) -> None:
    """While the broker is away the exporter answers, and the age of every family grows."""
    assert story.answered_away
    assert story.youngest_away >= AWAY


def test_everything_is_fresh_soon_after_the_broker_returns(story: Story) -> None:
    """Every family without error, every probe running: within three intervals, and twice as many beside other tests."""
    assert 0 <= story.fresh_after <= 6 * INTERVAL


def test_every_landed_message_is_in_the_rollups_once(story: Story) -> None:
    """Through a stream that ran all the while, over a broker that was killed."""
    assert 0 < story.landed
    assert story.landed == story.rolled
