import gzip
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from ackscope.snapshot import Part
from exporter.exposition.cardinality.top_k import TopK
from exporter.exposition.collectors import COLLECTORS
from exporter.exposition.collectors.contract import Collector
from exporter.exposition.encode import Format, render
from exporter.exposition.live import polls
from exporter.exposition.page_cache import IDLE_SECONDS, LATE_SECONDS, PageCache
from exporter.exposition.settings import MetricsSettings
from exporter.exposition.specs import MetricFamilies, gauge
from exporter.runtime.state import StateStore
from exporter.web.http import Request
from tests.unit.exporter.full import full
from tests.unit.exporter.made import SetClock, promtool, small

GOLDEN = Path(__file__).with_name("metrics.txt")
ROW = gauge("ackscope_row", "A row of a large page.", "a test", "row")
NOW = gauge("ackscope_now", "What is true in this moment.", "a test")
SECONDS = 10


def exposition(state, clock):
    """Return the exposition of a state, with the ages of polls as its only live part."""
    live = {"polls": lambda: polls.collect(state.clusters(), {}, clock.now())}
    return PageCache(state, TopK(MetricsSettings()), live, clock)


class Maker:
    """An exposition of one collector, whose rows all say how many snapshots there were; it counts its calls.

    Attributes:
        gate: while closed, it blocks the collector during its work.
    """

    def __init__(self):
        self.clock, self.state = SetClock(), StateStore(["shop"])
        self.made, self.live = 0, 0
        self.gate, self.working = threading.Event(), threading.Semaphore(0)
        self.gate.set()
        collectors = {"rows": Collector((ROW,), self.rows)}
        self.page = PageCache(self.state, TopK(MetricsSettings()), {"now": self.now}, self.clock, collectors)

    def rows(self, snapshots, _selection):
        """1000 rows of one value."""
        self.made += 1
        generation, families = self.state.generation, MetricFamilies((ROW,))
        self.working.release()
        assert self.gate.wait(SECONDS)
        for row in range(1000):
            families.add(ROW, {"row": str(row)}, generation)
        return families.result()

    def now(self):
        """A number that grows with every call."""
        self.live += 1
        families = MetricFamilies((NOW,))
        families.add(NOW, {}, self.live)
        return families.result()

    def values(self):
        """Return the values of all rows of a scrape."""
        return {line.split()[1] for line in body(self.page.respond(Request())).decode().splitlines() if "{row=" in line}


def body(answer):
    """Return all pieces of an answer as one body."""
    return b"".join([answer.body, *answer.chunks])


def test_the_whole_text_of_a_small_cluster():
    """Users rely on these names, so any change of a name, label, help or value shows in the expected file."""
    clock, state = SetClock(), StateStore(["shop"])
    state.put_snapshot(small())
    text = exposition(state, clock).text()

    assert GOLDEN.read_text() == text
    assert "" == promtool(text)


def test_the_same_page_reads_as_openmetrics():
    """The strict parser of the client library accepts it: no duplicate or conflicting names."""
    state = StateStore(["shop"])
    state.put_snapshot(small())
    page = exposition(state, SetClock())
    reported = [
        sample for family in text_string_to_metric_families(page.text(Format.OPENMETRICS)) for sample in family.samples
    ]
    lines = [line for line in page.text().splitlines() if not line.startswith("#")]

    assert len(lines) == len(reported)


def test_a_scrape_makes_again_only_what_can_have_changed():
    """Between two snapshots the broker's part is the same text, and only ages grow."""
    clock, state = SetClock(), StateStore(["shop"])
    maker = exposition(state, clock)
    state.put_snapshot(small())
    first = maker.text()
    clock.mono += 7
    second = maker.text()

    assert 'ackscope_poll_age_seconds{cluster="shop",family="queues"} 0\n' in first
    assert 'ackscope_poll_age_seconds{cluster="shop",family="queues"} 7\n' in second
    assert first.split("# HELP ackscope_poll")[0] == second.split("# HELP ackscope_poll")[0]


def test_a_new_snapshot_shows_after_the_refresh():
    """A new snapshot replaces the cached page."""
    clock, state = SetClock(), StateStore(["shop"])
    maker = exposition(state, clock)
    state.put_snapshot(small())
    maker.text()
    clock.mono += 5
    overview = small().overview
    changed = replace(overview, value=replace(overview.value, messages=8), at=clock.now())
    state.put_snapshot(replace(small(), overview=changed))
    maker.refresh()

    assert 'ackscope_cluster_messages{cluster="shop"} 8\n' in maker.text()


def test_before_the_first_snapshot_there_are_only_own_metrics():
    """Nothing is known yet, so there are no metrics of the broker."""
    text = exposition(StateStore(["shop"]), SetClock()).text()

    assert "rabbitmq_" not in text
    assert 'ackscope_collector_success{collector="queues"} 1\n' in text


def test_what_was_never_read_stays_absent():
    """A family that failed from the start has no sample, not a zero."""
    state = StateStore(["shop"])
    state.put_snapshot(small(queues=Part(error="403")))
    text = exposition(state, SetClock()).text()

    assert "rabbitmq_queue_" not in text
    assert 'ackscope_poll_success{cluster="shop",family="queues"} 0\n' in text


@pytest.mark.parametrize("form", list(Format))
def test_an_answer_is_in_the_format_and_the_coding_that_are_requested(form):
    """The compressed page has the same content, and the Vary header is set."""
    maker, headers = Maker(), {"accept": form.value}
    plain = maker.page.respond(Request(headers=headers))
    packed = maker.page.respond(Request(headers={**headers, "accept-encoding": "gzip"}))
    before, after = body(plain).split(b"ackscope_now 1\n")

    assert (form.value, "identity") == (plain.content_type, plain.content_encoding)
    assert (form.value, "gzip") == (packed.content_type, packed.content_encoding)
    assert {("Vary", "Accept, Accept-Encoding")} == {*plain.headers, *packed.headers}
    assert before + b"ackscope_now 2\n" + after == gzip.decompress(body(packed))
    assert (form is Format.OPENMETRICS) == after.endswith(b"\n# EOF\n")


def test_what_was_made_for_a_snapshot_is_sent_again_and_not_made_again():
    """The large pieces of two scrapes are the same objects in memory, plain and compressed."""
    maker = Maker()
    maker.page.refresh()
    for headers in ({}, {"accept-encoding": "gzip"}):
        first, second = (maker.page.respond(Request(headers=headers)).chunks for _ in range(2))
        largest = max(range(len(first)), key=lambda index: len(first[index]))
        assert first[largest] is second[largest]

    assert 1 == maker.made


def test_a_refresh_makes_a_page_once_and_only_what_is_new():
    """A second one without a new snapshot has nothing to do; the compressed form follows who asks for it."""
    maker = Maker()
    maker.page.refresh()
    maker.page.refresh()
    assert 1 == maker.made

    maker.page.respond(Request(headers={"accept-encoding": "gzip"}))
    maker.state.put_snapshot(small())
    maker.page.refresh()
    assert 2 == maker.made
    assert [Format.TEXT] == list(maker.page._page.compressed)


def test_a_scrape_during_a_refresh_gets_the_whole_page_before_it():
    """The scrape does not wait, and all rows are of one snapshot."""
    maker = Maker()
    assert {"0"} == maker.values()
    maker.state.put_snapshot(small())
    maker.gate.clear()
    with ThreadPoolExecutor(1) as beside:
        maker.working.acquire()
        refreshing = beside.submit(maker.page.refresh)
        assert maker.working.acquire(timeout=SECONDS)
        during = maker.values()
        maker.gate.set()
        refreshing.result(SECONDS)

    assert ({"0"}, {"1"}) == (during, maker.values())


def test_scrapes_at_once_cost_once():
    """All scrapes that arrive while a page is made share the next page."""
    maker = Maker()
    maker.gate.clear()
    with ThreadPoolExecutor(8) as beside:
        scrapes = [beside.submit(maker.values) for _ in range(8)]
        assert maker.working.acquire(timeout=SECONDS)
        maker.gate.set()
        seen = [scrape.result(SECONDS) for scrape in scrapes]

    assert ([{"0"}] * 8, 1) == (seen, maker.made)


class Arrivals:
    """A lock that records who requests it."""

    def __init__(self):
        self.lock, self.came = threading.Lock(), threading.Semaphore(0)

    def __enter__(self):
        self.came.release()
        self.lock.acquire()

    def __exit__(self, *_):
        self.lock.release()


def test_the_live_part_of_a_scrape_is_never_older_than_the_scrape():
    """Waiting scrapes share the next live part; later scrapes get a later one."""
    began, go_on, calls = threading.Semaphore(0), threading.Semaphore(0), []

    def now():
        calls.append(1)
        began.release()
        assert go_on.acquire(timeout=SECONDS)
        return []

    page = PageCache(StateStore([]), TopK(MetricsSettings()), {"now": now}, SetClock(), {})
    page._live_cache._lock = arrivals = Arrivals()
    with ThreadPoolExecutor(5) as beside:
        scrapes = [beside.submit(page.text)]
        assert began.acquire(timeout=SECONDS)
        scrapes += [beside.submit(page.text) for _ in range(4)]
        for _ in range(5):
            assert arrivals.came.acquire(timeout=SECONDS)
        go_on.release(3)
        for scrape in scrapes:
            scrape.result(SECONDS)
    together = len(calls)
    page.text()

    assert (2, 3) == (together, len(calls))


def test_what_comes_with_snapshots_is_made_once_a_snapshot():
    """As what snapshots themselves are shown by; beside it the live part is made at every scrape."""
    state, calls = StateStore(["shop"]), []

    def counted():
        calls.append(1)
        families = MetricFamilies((ROW,))
        families.add(ROW, {"row": "polls"}, len(calls))
        return families.result()

    page = PageCache(state, TopK(MetricsSettings()), {}, SetClock(), {}, {"polls": counted})
    before = [page.text() for _ in range(3)]
    state.put_snapshot(small())
    page.refresh()
    after = page.text()

    assert ['ackscope_row{row="polls"} 1' in text for text in before] == [True] * 3
    assert 'ackscope_row{row="polls"} 2' in after
    assert 'ackscope_collector_success{collector="polls"} 1' in after


class Ahead:
    """An exposition with a live part, an age and a clock; the live part counts how often it is made."""

    def __init__(self):
        self.clock, self.calls, self.came = SetClock(), 0, SetClock().now()
        live, per_scrape = {"now": self.now}, {"ages": self.ages}
        self.page = PageCache(StateStore([]), TopK(MetricsSettings()), live, self.clock, {}, per_scrape=per_scrape)

    def now(self):
        """How often this was made."""
        self.calls += 1
        families = MetricFamilies((NOW,))
        families.add(NOW, {}, self.calls)
        return families.result()

    def ages(self):
        """Seconds since the beginning."""
        families = MetricFamilies((ROW,))
        families.add(ROW, {"row": "age"}, self.clock.now().since(self.came))
        return families.result()

    def seen(self, form=Format.TEXT):
        """What was counted, and the age."""
        lines = dict(line.rsplit(" ", 1) for line in self.page.text(form).splitlines() if line[0] != "#")
        return int(lines["ackscope_now"]), float(lines['ackscope_row{row="age"}'])


@pytest.mark.parametrize("form", Format)
def test_a_second_ahead_all_but_the_ages_is_made(form):
    """Ages are computed in the scrape; a part that is too old is made in the scrape too."""
    it = Ahead()
    accept = {"accept": form.value, "accept-encoding": "gzip"}
    it.page.respond(Request(headers=accept))
    it.page.tick()
    seen = [it.seen(form)]
    for seconds in (1, 1):
        it.clock.mono += seconds
        seen.append(it.seen(form))

    assert [(2, 0), (2, 1), (3, 2)] == seen
    page = gzip.decompress(body(it.page.respond(Request(headers=accept)))).decode()
    assert page == it.page.text(form).replace("ackscope_now 5", "ackscope_now 4")


def test_what_must_be_reported_at_once_is_made_in_the_scrape():
    """An example is the result of a reload."""
    it = Ahead()
    it.page.respond(Request(headers={"accept-encoding": "gzip"}))
    it.page.tick()
    it.page.invalidate()

    assert (3, 0) == it.seen()


def test_nothing_is_made_ahead_for_nobody():
    """Nothing is made before the first scrape, or long after the last."""
    it = Ahead()
    it.page.tick()
    it.page.respond(Request(headers={"accept-encoding": "gzip"}))
    it.clock.mono += IDLE_SECONDS + 1
    it.page.tick()

    assert it.calls == 1


def test_a_scrape_makes_a_page_that_no_refresh_made():
    """The first scrape does, and later ones if refreshes stopped while snapshots still come."""
    maker = Maker()
    assert {"0"} == maker.values()
    maker.clock.mono += 10 * LATE_SECONDS
    maker.state.put_snapshot(small())
    assert {"0"} == maker.values()
    maker.clock.mono += LATE_SECONDS
    assert {"0"} == maker.values()
    maker.clock.mono += 1

    assert {"1"} == maker.values()


def test_pages_that_nobody_asks_for_are_not_made():
    """The last page is dropped; the next scrape gets a new one."""
    maker = Maker()
    maker.values()
    maker.clock.mono += IDLE_SECONDS + 1
    maker.state.put_snapshot(small())
    maker.page.refresh()

    assert (1, None) == (maker.made, maker.page._page)
    assert {"1"} == maker.values()


def test_a_cluster_whose_snapshot_is_the_same_is_not_written_again():
    """With many clusters, a new snapshot costs only the text of its own cluster."""
    seen = []

    def rows(snapshots, _selection):
        seen.extend(snapshot.cluster for snapshot in snapshots)
        families = MetricFamilies((ROW,))
        families.add(ROW, {"row": snapshots[0].cluster}, len(seen))
        return families.result()

    state = StateStore(["shop", "bank"])
    page = PageCache(state, TopK(MetricsSettings()), {}, SetClock(), {"rows": Collector((ROW,), rows)})
    for cluster in ("shop", "bank", "shop"):
        state.put_snapshot(small(cluster))
        page.refresh()
    lines = [line for line in page.text().splitlines() if "ackscope_row" in line and line[0] != "#"]

    assert ["shop", "bank", "shop"] == seen
    assert ['ackscope_row{row="shop"} 3', 'ackscope_row{row="bank"} 2'] == lines
    assert "" == promtool(page.text())


def test_clusters_are_written_one_by_one_as_they_are_together():
    """No collector combines clusters, and every sample belongs to one cluster."""
    state = StateStore(["shop", "bank"])
    snapshots = [full(cluster=name) for name in ("shop", "bank")]
    for snapshot in snapshots:
        state.put_snapshot(snapshot)
    both = render(
        [
            family
            for collector in COLLECTORS.values()
            for family in collector.collect(snapshots, TopK(MetricsSettings()).select(snapshots))
        ]
    )
    page = PageCache(state, TopK(MetricsSettings()), {}, SetClock()).text()

    assert "" != both
    assert sorted(both.splitlines()) == sorted(page.partition("# HELP ackscope_collector")[0].splitlines())


def test_other_settings_show_in_the_next_page():
    """Though the snapshots are the same."""
    maker = Maker()
    maker.values()
    maker.page.apply(MetricsSettings(), {})

    assert set() == maker.values()


def test_a_collector_that_fails_leaves_the_page_without_its_metrics():
    """And says so on it."""
    maker = Maker()
    broken = {"broken": Collector((), lambda *_: 1 / 0), "rows": Collector((ROW,), maker.rows)}
    maker.page.apply(MetricsSettings(), broken)
    text = maker.page.text()

    assert 'ackscope_collector_success{collector="broken"} 0\n' in text
    assert 'ackscope_collector_success{collector="rows"} 1\n' in text
    assert 'ackscope_row{row="999"} 0\n' in text


def test_a_source_of_selected_objects_gets_the_selection():
    """The same as the collectors."""
    state, seen = StateStore(["shop"]), []
    state.put_snapshot(small())

    def source(selection):
        seen.append(len(selection.of("shop").queues.shown))
        families = MetricFamilies((NOW,))
        families.add(NOW, {}, 7)
        return families.result()

    page = PageCache(state, TopK(MetricsSettings()), {}, SetClock(), per_selection={"now": source})

    assert "ackscope_now 7" in page.text()
    assert [len(small().queues.value)] == seen
