"""Speed of the dashboard: first paint, rerun, refresh, and 20 viewers at the same time."""

import argparse
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlencode

from bench.bench import Bench, Document, progress
from bench.dashboard.browsing import HEADING, chromium, opened, wait_until
from bench.dashboard.history import queue_names
from bench.dashboard.scene import DashboardScene, cpu, findings, scene
from bench.dashboard.viewer import Viewer, watch_together
from bench.exporter.goals import Goal, ratio
from bench.exporter.scraping import scrape
from bench.tables import median, ms, table
from bench.usage import MB, usage

PAINT, RERUN, REFRESH = 1.5, 0.3, 0.1
"""Limits: first paint as a multiple of an empty page; CPU seconds of a rerun; CPU seconds of a refresh of Now."""

SLOWED = 1.5
"""Limit: scrape duration with 20 viewers as a multiple of the duration with one viewer."""

_QUEUE = urlencode({"queue": queue_names(1)[0], "vhost": "/"})
PAGES = (
    ("", ""),
    ("confirms", ""),
    ("queues", ""),
    ("queues", _QUEUE),
    ("consumers", ""),
    ("redeliveries", ""),
    ("nodes", ""),
    ("history", ""),
    ("timeline", ""),
    ("topology", ""),
    ("semantics", ""),
    ("probe", ""),
)
"""Path and query of the pages to rerun."""

_LIST = "now, list of findings"
_RERUN_SECONDS = 5.0
_SCRAPE_SECONDS = 1.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the benchmark."""
    parser.add_argument("--broker", default="4.3", help="RabbitMQ version to record (default 4.3)")
    parser.add_argument("--queues", type=int, default=10_000, help="number of queues (default 10000)")
    parser.add_argument("--sick", type=int, default=1, help="queues with a finding, per 100 queues (default 1)")
    parser.add_argument("--days", type=int, default=30, help="days of history (default 30)")
    parser.add_argument("--paints", type=int, default=10, help="first paints of each page, alternating (default 10)")
    parser.add_argument("--reruns", type=int, default=8, help="reruns of each page (default 8)")
    parser.add_argument("--viewers", type=int, default=20, help="viewers at the same time (default 20)")
    parser.add_argument("--rounds", type=int, default=2, help="rounds with one viewer and with all (default 2)")
    parser.add_argument("--seconds", type=float, default=45, help="seconds per round (default 45)")


def measure(args: argparse.Namespace) -> Document:
    """Run all measurements on one setup."""
    with scene(args.broker, args.queues, args.sick, args.days) as at:
        paint = _paint(at, args.paints)
        nothing = _reruns(at.empty, "", "", args.reruns)
        reruns = [_reruns((at.page, at.url), path, query, args.reruns) for path, query in PAGES]
        refresh = _refreshes(at, args.reruns)
        viewers = _viewers(at, args.viewers, args.rounds, args.seconds)
        last = findings(at.exporter)
        seen = {"broker": at.broker, "findings": at.findings, "last_findings": last, "rollups": at.rollups}
    options = {"queues": args.queues, "days": args.days, "seconds": args.seconds, "viewers": args.viewers}
    document = {
        **seen,
        **options,
        "paint": paint,
        "nothing": nothing,
        "reruns": reruns,
        "refresh": refresh,
        "watched": viewers,
    }
    return {**document, "goals": [goal.as_dict() for goal in goals(document)]}


def _paint(at: DashboardScene, times: int) -> dict[str, Any]:
    """Measure first paints of both pages alternately, and when the list of findings follows.

    The first paint of each page is not counted, because its server compiles the code.
    """
    took: dict[str, list[float]] = {"empty": [], "now": [], _LIST: []}
    received: dict[str, int] = {}
    with chromium() as browser:
        for number in range(times + 1):
            progress(f"first paints: {number} of {times}")
            for name, url in (("empty", at.empty[1]), ("now", at.url)):
                with opened(browser, url, HEADING) as (page, found):
                    received[name] = found.received
                    if not number:
                        continue
                    took[name].append(found.seconds)
                    if name == "now":
                        wait_until(page, "() => document.querySelector('.st-key-finding-rows button')", url)
                        took[_LIST].append(page.evaluate("() => performance.now()") / 1000)
                        received[_LIST] = found.received
    return {"seconds": {name: median(each) for name, each in took.items()}, "all": took, "bytes": received}


def _reruns(server: tuple[int, str], path: str, query: str, times: int) -> dict[str, Any]:
    """Measure CPU seconds of the server per run of a page; runs are far enough apart for its caches to expire."""
    pid, url = server
    progress(f"reruns of {url}/{path} {query}")
    with Viewer(url, path, query) as viewer:
        spent = list(_each(pid, times, viewer.run))
        received = viewer.stats.received // (times + 1)
    return {"page": path or "now", "query": query, "cpu": median(spent), "most": max(spent), "bytes": received}


def _refreshes(at: DashboardScene, times: int) -> dict[str, Any]:
    """Measure CPU seconds per refresh of the most frequent fragment of the first page."""
    progress("refreshes")
    with Viewer(at.url) as viewer:
        name = min(viewer.fragments, key=viewer.fragments.__getitem__)
        before = viewer.stats.received
        spent = list(_each(at.page, times, lambda: viewer.run(name)))
        received = (viewer.stats.received - before) // times
    return {"every": viewer.fragments[name], "cpu": median(spent), "most": max(spent), "bytes": received}


def _each(pid: int, times: int, run: Any) -> Iterator[float]:
    for _ in range(times):
        time.sleep(_RERUN_SECONDS)
        before = cpu(pid)
        run()
        # The server still works for this run after it has reported the end.
        time.sleep(0.1)
        yield cpu(pid) - before


def _viewers(at: DashboardScene, viewers: int, rounds: int, seconds: float) -> dict[str, Any]:
    """Measure one viewer and many viewers, in alternating rounds."""
    found: dict[str, dict[str, list[float]]] = {}
    for number in range(rounds):
        for count in (1, viewers):
            progress(f"{count} viewers: round {number + 1} of {rounds}")
            mine = found.setdefault(str(count), {name: [] for name in ("cpu", "asked", "scrapes", "exporter", "run")})
            page, exporter, requests = cpu(at.page), cpu(at.exporter.process.pid), len(at.requests)
            began = time.monotonic()
            with _scraping(f"{at.exporter.url}/metrics") as scrapes:
                seen = watch_together(at.url, count, seconds)
            span = time.monotonic() - began
            mine["cpu"].append((cpu(at.page) - page) / span)
            mine["exporter"].append((cpu(at.exporter.process.pid) - exporter) / span)
            mine["asked"].append((len(at.requests) - requests) / span)
            mine["scrapes"] += scrapes
            mine["run"] += [run for each in seen for run in each.runs[1:]]
    held = usage(at.page)
    return {
        "one": {name: median(each) for name, each in found["1"].items()},
        "many": {name: median(each) for name, each in found[str(viewers)].items()},
        "peak": held.peak,
        "rss": held.rss,
    }


@contextmanager
def _scraping(url: str) -> Iterator[list[float]]:
    """Scrape periodically while the block runs; the list grows by the duration of each scrape."""
    took: list[float] = []
    over = threading.Event()

    def run() -> None:
        while not over.wait(_SCRAPE_SECONDS):
            took.append(scrape(url).seconds)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield took
    finally:
        over.set()
        thread.join()


def goals(document: Document) -> list[Goal]:
    """Return the limits and the measured values."""
    paint, watched = document["paint"]["seconds"], document["watched"]
    one, many = watched["one"], watched["many"]
    worst = max(document["reruns"], key=lambda it: it["cpu"])
    # Viewers that wait longer than the refresh interval send fewer requests: then the machine is too small to compare.
    paced = many["run"] is not None and many["run"] <= document["refresh"]["every"]
    requests, scrapes = (ratio(many[name], one[name]) if paced else None for name in ("asked", "scrapes"))
    return [
        Goal("first useful paint, as a multiple of an empty page", ratio(paint["now"], paint["empty"]), PAINT),
        Goal(f"CPU seconds of a rerun, the page {_name(worst)}", worst["cpu"], RERUN),
        Goal("CPU seconds of a refresh of Now", document["refresh"]["cpu"], REFRESH),
        Goal("requests to the exporter, as a multiple of one viewer", requests, SLOWED),
        Goal("scrape of the exporter, as a multiple of one viewer", scrapes, SLOWED),
    ]


def _name(rerun: dict[str, Any]) -> str:
    return f"{rerun['page']}{', one queue' if rerun['query'] else ''}"


def lines(document: Document) -> list[str]:
    """Return a table per measurement, and the goals."""
    paint, watched, refresh = document["paint"], document["watched"], document["refresh"]
    looks = [
        (name, ms(seconds), f"{paint['bytes'][name] / MB:.2f}", str(len(paint["all"][name])))
        for name, seconds in paint["seconds"].items()
    ]
    rerun = [
        (_name(it), ms(it["cpu"]), ms(it["most"]), f"{it['bytes'] / 1000:.0f}")
        for it in (
            {**document["nothing"], "page": "an empty page"},
            *document["reruns"],
            {"page": "refresh of now", "query": "", **refresh},
        )
    ]
    many = [
        (
            f"{count} viewer{'s' if count > 1 else ''}",
            f"{it['cpu'] * 100:.1f} %",
            f"{it['asked']:.2f}",
            f"{it['exporter'] * 100:.1f} %",
            ms(it["scrapes"]),
            ms(it["run"]),
        )
        for count, it in ((1, watched["one"]), (document["viewers"], watched["many"]))
    ]
    measured = (
        f"shapes of RabbitMQ {document['broker']}, {document['queues']} queues, "
        f"{document['findings']} findings ({document['last_findings']} at the end), "
        f"{document['days']} days of rollups ({document['rollups'] / 1e6:.0f} MB)"
    )
    memory = (
        f"memory of the dashboard with {document['viewers']} viewers: {watched['rss'] / MB:.0f} MB, "
        f"{watched['peak'] / MB:.0f} MB peak"
    )
    note = (
        "Viewers speak Streamlit's protocol over websockets and refresh like a browser. Runs are "
        f"{_RERUN_SECONDS:g} s apart, so that cached data of the exporter has expired."
    )
    return [
        measured,
        "",
        *table(("first paint, cold cache", "ms", "MB", "loads"), looks),
        "",
        *table(("rerun: CPU time of the server", "median ms", "max ms", "kB sent"), rerun),
        "",
        *table(("together", "page", "requests /s", "exporter", "scrape ms", "refresh ms"), many),
        "",
        memory,
        "",
        *(Goal(**goal).line() for goal in document["goals"]),
        "",
        note,
    ]


BENCH = Bench(
    name="speed",
    room="dashboard",
    shows="first paint, reruns, refreshes and 20 viewers, at 10,000 queues, 100 findings, 30 days of history",
    measure=measure,
    lines=lines,
    add_arguments=add_arguments,
    short=("--paints", "5", "--reruns", "4", "--rounds", "1", "--seconds", "30"),
)

if __name__ == "__main__":
    raise SystemExit(BENCH.main())
