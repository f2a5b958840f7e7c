"""Reading a page of metrics."""

import gzip
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from ackscope.errors import BrokerError
from bench.exporter.scraping import ScrapedPage, by_label, samples, scrape

TEXT = """\
# HELP age how old
# TYPE age gauge
age{cluster="a",family="queues"} 1.5
age{cluster="a",family="no\\"des}"} 2 1700000000
ages{family="queues"} 9
up 1
"""


@pytest.fixture
def server():
    """Serves `TEXT` as gzip, and 503 under another path."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            body = gzip.compress(TEXT.encode())
            self.send_response(200 if self.path.startswith("/metrics") else 503)
            self.send_header("Content-Encoding", "gzip")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    listening = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=listening.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{listening.server_address[1]}"
    listening.shutdown()
    thread.join()
    listening.server_close()


def test_samples_are_those_of_one_metric_only():
    """A metric with the same prefix is another one; a quote or brace in a label value does not end it."""
    assert [
        ({"cluster": "a", "family": "queues"}, 1.5),
        ({"cluster": "a", "family": 'no\\"des}'}, 2.0),
    ] == samples(TEXT, "age")
    assert [({}, 1.0)] == samples(TEXT, "up")


def test_samples_are_found_by_a_label():
    """What lacks the label is left out."""
    assert {"queues": 9.0} == by_label(TEXT, "ages", "family")
    assert {} == by_label(TEXT, "up", "family")


def test_series_are_counted_without_comments():
    """Four samples in this text."""
    assert ScrapedPage(0.1, 10, TEXT).series == 4


def test_a_scrape_knows_what_was_sent_and_what_it_says(server):
    """Compressed on the way, plain in the text."""
    page = scrape(f"{server}/metrics")

    assert page.text == TEXT
    assert page.sent == len(gzip.compress(TEXT.encode()))


def test_a_page_that_is_refused_is_an_error(server):
    """It names the address and the status."""
    with pytest.raises(BrokerError, match=r"/other: 503"):
        scrape(f"{server}/other")


def test_an_address_where_nothing_listens_is_an_error(server):
    """In one line."""
    with pytest.raises(BrokerError, match="ConnectionRefusedError"):
        scrape("http://127.0.0.1:1/metrics")


def test_an_answer_that_breaks_off_is_reported_in_a_line():
    """An example is a server that stops within a page of 50,000 queues; that is a result, not a crash."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b"up")

        def log_message(self, *args):
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as listening:
        thread = threading.Thread(target=listening.handle_request)
        thread.start()
        with pytest.raises(BrokerError, match=r"/metrics: IncompleteRead"):
            scrape(f"http://127.0.0.1:{listening.server_address[1]}/metrics")
        thread.join()
