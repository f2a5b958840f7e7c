"""A real OTLP/HTTP receiver gets the values of `/metrics`."""

import gzip
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import requests
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from prometheus_client.parser import text_string_to_metric_families

from ackscope.clock import SystemClock
from exporter.app import App
from exporter.otlp.sender import OtlpSender
from exporter.otlp.settings import OtlpSettings
from exporter.settings import ExporterSettings
from tests.unit.exporter.broker.server import broker, serve
from tests.unit.exporter.made import SetClock, eventually

PAGE = """\
# HELP a_total Counted.
# TYPE a_total counter
a_total{cluster="shop"} 5
# HELP b_seconds Measured.
# TYPE b_seconds histogram
b_seconds_bucket{node="x",le="0.1"} 3
b_seconds_bucket{node="x",le="1"} 4
b_seconds_bucket{node="x",le="+Inf"} 6
b_seconds_sum{node="x"} 7.5
b_seconds_count{node="x"} 6
# HELP c Now.
# TYPE c gauge
c{q="\\"ä\\""} 1.5
# HELP d Without a type.
d 2
"""


class Collector:
    """A receiver of OTLP over HTTP."""

    def __init__(self):
        self.requests, self.headers, self.status = [], [], 200

    def received(self):
        """Sample name and labels -> value, as Prometheus would show them."""
        found = {}
        for request in self.requests:
            for scope in request.resource_metrics[0].scope_metrics:
                for metric in scope.metrics:
                    found |= dict(samples(metric))
        return found


def samples(metric):
    """The samples of one metric."""
    kind = metric.WhichOneof("data")
    for point in getattr(metric, kind).data_points:
        labels = tuple(sorted((it.key, it.value.string_value) for it in point.attributes))
        if kind != "histogram":
            yield (metric.name, labels), getattr(point, point.WhichOneof("value"))
            continue
        total = 0
        for bound, count in zip([*point.explicit_bounds, float("inf")], point.bucket_counts, strict=True):
            total += count
            yield (f"{metric.name}_bucket", tuple(sorted((*labels, ("le", str(bound)))))), total
        yield (f"{metric.name}_sum", labels), point.sum
        yield (f"{metric.name}_count", labels), point.count
        assert not point.HasField("min")


def of_page(text):
    """The same of a page."""
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = {name: str(float(it)) if name == "le" else it for name, it in sample.labels.items()}
            found[sample.name, tuple(sorted(labels.items()))] = sample.value
    return found


@contextmanager
def collecting():
    """A collector for as long as the block runs, and its address."""
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if collector.status == 200:
                collector.headers.append(self.headers)
                collector.requests.append(ExportMetricsServiceRequest.FromString(gzip.decompress(body)))
            self.send_response(collector.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield collector, f"http://127.0.0.1:{server.server_address[1]}/v1/metrics"
    finally:
        server.shutdown()
        server.server_close()


def sender(endpoint, page=PAGE, **settings):
    """A sender of this page, without its thread."""
    return OtlpSender(OtlpSettings(endpoint=endpoint, **settings), lambda: page, "here:1", SetClock())


def test_after_the_clock_was_set_back_nothing_ends_before_it_begins():
    """A collector refuses such points, until the clock has caught up with the start of the exporter."""
    clock = SetClock()
    with collecting() as (collector, endpoint):
        made = OtlpSender(OtlpSettings(endpoint=endpoint), lambda: PAGE, "here:1", clock)
        clock.mono, clock.jumped = clock.mono + 60, -3600.0
        assert made.send()
        metrics = collector.requests[0].resource_metrics[0].scope_metrics[0].metrics
    points = [point for metric in metrics for point in getattr(metric, metric.WhichOneof("data")).data_points]

    assert any(point.start_time_unix_nano for point in points)
    assert all(point.start_time_unix_nano <= point.time_unix_nano for point in points)


def test_every_kind_of_metric_arrives_with_its_value(tmp_path):
    """Counter, histogram, gauge, untyped; with name, labels, resource and login."""
    token = tmp_path / "token"
    token.write_text("hush\n")
    with collecting() as (collector, endpoint):
        sent = sender(endpoint, token_file=token, headers={"X-Tenant": "a"}, attributes={"env": "prod"}).send()
        resource = {
            it.key: it.value.string_value for it in collector.requests[0].resource_metrics[0].resource.attributes
        }

    assert sent
    assert of_page(PAGE) == collector.received()
    assert ("ackscope", "here:1", "prod") == tuple(
        resource[name] for name in ("service.name", "service.instance.id", "env")
    )
    assert ("Bearer hush", "a") == tuple(collector.headers[0][name] for name in ("Authorization", "X-Tenant"))


def test_a_new_token_in_the_file_is_sent_without_a_reload(tmp_path):
    """Tokens of service accounts are replaced every hour. While the file is away, the last one is sent."""
    token = tmp_path / "token"
    with collecting() as (collector, endpoint):
        token.write_text("first\n")
        it = sender(endpoint, token_file=token)
        it.send()
        token.write_text("second\n")
        it.send()
        token.unlink()
        it.send()

    assert ["Bearer first", "Bearer second", "Bearer second"] == [it["Authorization"] for it in collector.headers]


def test_a_counter_is_a_cumulative_sum():
    """From the start of the process."""
    with collecting() as (collector, endpoint):
        sender(endpoint).send()
        (metric,) = (
            it for it in collector.requests[0].resource_metrics[0].scope_metrics[0].metrics if it.name == "a_total"
        )

    assert (True, 2) == (metric.sum.is_monotonic, metric.sum.aggregation_temporality)
    assert metric.sum.data_points[0].start_time_unix_nano
    assert "Counted." == metric.description


def test_a_collector_that_refuses_is_counted_and_logged_once(caplog):
    """The next export is as of then: nothing waits."""
    with collecting() as (collector, endpoint):
        collector.status = 400
        it = sender(endpoint)
        refused = [it.send(), it.send()]
        collector.status = 200
        accepted = it.send()

    assert ([False, False], True) == (refused, accepted)
    assert (1, 2) == (it.stats.successes, it.stats.failures)
    assert 1 == caplog.text.count("does not accept metrics")


def test_many_series_are_divided_into_requests():
    """Collectors limit the size of a request."""
    page = "# TYPE c gauge\n" + "".join(f'c{{q="{number}"}} {number}\n' for number in range(12_000))
    with collecting() as (collector, endpoint):
        sender(endpoint, page).send()

    assert 3 == len(collector.requests)
    assert of_page(page) == collector.received()


def test_an_exporter_sends_what_it_shows():
    """Each value of the broker is the same as on its own page."""
    with collecting() as (collector, endpoint), serve(broker("4.3.6")) as shop:
        settings = ExporterSettings.model_validate(
            {
                "listen": "127.0.0.1:0",
                "clusters": {"shop": {"management": {"url": shop.url}}},
                "poll": {"interval": "1s"},
                "otlp": {"endpoint": endpoint, "interval": "5s"},
            }
        )
        app = App(settings, SystemClock())
        app.start()
        try:
            eventually(lambda: (page := shown(app)) and page == received(collector), 60)
            text = requests.get(f"{app.url}/metrics", timeout=10).text
        finally:
            app.stop()

    assert 'ackscope_otlp_exports_total{result="success"}' in text


def shown(app):
    """What the page has of the broker: name, labels and value."""
    text = requests.get(f"{app.url}/metrics", timeout=10).text
    return {(key, value) for key, value in of_page(text).items() if key[0].startswith("rabbitmq_queue_")}


def received(collector):
    """The same of the latest export."""
    return {(key, value) for key, value in collector.received().items() if key[0].startswith("rabbitmq_queue_")}


@pytest.mark.parametrize("endpoint", ["collector:4318", "http://ann:hush@collector:4318/v1/metrics"])
def test_a_wrong_endpoint_is_one_line(endpoint):
    """Without the password."""
    with pytest.raises(ValueError, match="not an HTTP address without user and password") as error:
        OtlpSettings(endpoint=endpoint)

    assert "hush" not in str(error.value)
