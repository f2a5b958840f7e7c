import sys
from http import HTTPStatus

import orjson
import pytest
from pydantic import SecretStr

from ackscope.clock import SystemClock
from exporter.probes_host.ondemand import OnDemandProbes
from exporter.probes_host.ondemand_page import OnDemandProbePage, run_timeout
from exporter.web.http import Request
from probes.catalogue import PROBES
from probes.ipc import encode
from probes.settings import AmqpSettings
from tests.unit.exporter.made import outcome, promtool

KNOWN = ", ".join(PROBES)
SHOP = AmqpSettings(url=SecretStr("amqp://u:hush@host"))


def page(script="raise SystemExit(3)", **targets):
    """Return the page of three clusters, one of them without an address to probe; `script` replaces the probe."""
    amqp = {"shop": SHOP, "depot": SHOP, **targets}
    runs = OnDemandProbes(amqp, "p", SystemClock(), [sys.executable, "-c", script])
    return OnDemandProbePage(("shop", "depot", "blind"), runs)


def ask(pages, headers=None, **query):
    """Status and text."""
    answer = pages.respond(Request(query, headers or {}))
    return answer.status, answer.body.decode()


def printing(**changes):
    """A script that prints the document of a run with this stream."""
    stream = orjson.loads(encode("outcomes", "shop", [outcome(**changes)]))["rows"][0]
    return f"print({orjson.dumps({'probe': 'rtt', 'streams': [stream]}).decode()!r})"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, f"probe= is missing; known: {KNOWN}\n"),
        ({"probe": "rt", "target": "shop"}, f"probe='rt' is not known, did you mean 'rtt'?; known: {KNOWN}\n"),
        ({"probe": "rtt"}, "target= is missing; known: shop, depot, blind\n"),
        (
            {"probe": "rtt", "target": "amqp://elsewhere:5672"},
            "target='amqp://elsewhere:5672' is not known; known: shop, depot, blind\n",
        ),
    ],
)
def test_what_is_not_known_is_refused_in_a_line(query, expected):
    """An address is no valid target: requests cannot make us connect to hosts outside the configuration."""
    assert (HTTPStatus.BAD_REQUEST, expected) == ask(page(), **query)


def test_a_cluster_without_address_cannot_be_probed():
    """The message names the missing key."""
    expected = "cluster blind has no AMQP address; set clusters.blind.amqp.url in the configuration\n"

    assert (HTTPStatus.NOT_FOUND, expected) == ask(page(), probe="rtt", target="blind")


def test_a_run_becomes_metrics():
    """Success, duration, messages, quantiles, steps: as promtool wants them."""
    script = printing(
        outcomes={"acked": 7, "nacked": 0},
        confirm={"count": 7, "p50": 0.001, "p90": 0.002, "p99": 0.003, "max": 0.004},
        steps={
            "declare": {
                "attempts": 3,
                "failures": 1,
                "seconds": {"count": 2, "p50": 0.01, "p90": None, "p99": None, "max": 0.02},
            }
        },
    )
    status, text = ask(page(script), probe="rtt", target="shop")
    stream = 'stream="classic",queue_type="classic"'

    assert (HTTPStatus.OK, "") == (status, promtool(text))
    for line in (
        "probe_success 1",
        "probe_doubtful{" + stream + "} 0",
        "probe_messages{" + stream + ',outcome="acked"} 7',
        "probe_confirm_seconds{" + stream + ',stat="p99"} 0.003',
        "probe_step_failures{" + stream + ',step="declare"} 1',
        "probe_step_seconds{" + stream + ',step="declare",stat="p50"} 0.01',
    ):
        assert f"{line}\n" in text
    assert 'step="declare",stat="p90"' not in text
    assert "probe_duration_seconds " in text


def test_a_sweep_of_prefetch_reports_what_it_recommends():
    """Its document has no streams; where it recommends nothing there is no sample."""
    sweeps = [
        {"queue_type": "classic", "round_trip": 0.0004, "recommended": 20},
        {"queue_type": "quorum", "round_trip": 0.0008, "recommended": None},
    ]
    script = f"print({orjson.dumps({'probe': 'prefetch', 'sweeps': sweeps}).decode()!r})"
    _, text = ask(page(script), probe="prefetch", target="shop")

    assert "" == promtool(text)
    assert "probe_success 1\n" in text
    assert 'probe_round_trip_seconds{queue_type="quorum"} 0.0008\n' in text
    assert 'probe_prefetch_recommended_messages{queue_type="classic"} 20\n' in text
    assert 'recommended_messages{queue_type="quorum"}' not in text


@pytest.mark.parametrize(
    "script", ["raise SystemExit(3)", "print('not a document')", "print('{}')", "print('7')", "pass"]
)
def test_a_run_that_could_not_measure_is_no_success(script):
    """It is an answer, as every failed probe is."""
    status, text = ask(page(script), probe="rtt", target="shop")

    assert HTTPStatus.OK == status
    assert "probe_success 0\n" in text


def test_debug_shows_report_log_and_how_it_ended():
    """For a person; credentials are hidden."""
    script = "import sys; print('the report'); print('WARNING amqp://u:hush@host', file=sys.stderr); sys.exit(1)"
    status, text = ask(page(script), probe="rtt", target="shop", debug="true")

    assert HTTPStatus.OK == status
    assert text.startswith("# report\nthe report\n\n# log\nWARNING amqp://u:***@host\n\n# run\nexit code 1, ")
    assert "probe_success 0\n" in text


def test_a_time_that_a_scraper_gives_is_respected():
    """A run that takes longer is ended, and the answer still comes in time."""
    status, text = ask(
        page("import time; time.sleep(60)"),
        {"x-prometheus-scrape-timeout-seconds": "3.0"},
        probe="rtt",
        target="shop",
        debug="true",
    )

    assert HTTPStatus.OK == status
    assert "timed out and was interrupted" in text


@pytest.mark.parametrize(
    ("header", "expected"),
    [(None, 30.0), ("10.000000", 7.5), ("1", 1.0), ("1e9", 60.0), ("soon", 30.0), ("nan", 30.0), ("-inf", 1.0)],
)
def test_how_long_a_run_may_take(header, expected):
    """The limit is the scrape timeout minus the time to sweep, within bounds for any header."""
    assert expected == run_timeout(header)


def test_a_password_file_that_is_removed_is_reported_in_one_line(tmp_path):
    """It was there when the exporter started."""
    removed = AmqpSettings.model_validate({"url": "amqp://host", "password_file": tmp_path / "gone"})
    status, text = ask(page(shop=removed), probe="rtt", target="shop")

    assert HTTPStatus.INTERNAL_SERVER_ERROR == status
    assert text.startswith("amqp.password_file: ")
    assert 1 == text.count("\n")
