"""How fast the page is: the first look, a rerun, a refresh, and twenty viewers at once."""

import argparse
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlencode

from bench.bench import Bench, Document, tell
from bench.dashboard.browsing import HEADING, chromium, opened
from bench.dashboard.history import queue_names
from bench.dashboard.scene import Scene, cpu, findings, scene
from bench.dashboard.viewer import Viewer, watch_together
from bench.exporter.goals import Goal, ratio
from bench.exporter.scraping import scrape
from bench.tables import median, ms, table
from bench.usage import MB, usage

PAINT, RERUN, REFRESH = 1.5, 0.3, 0.1
"""Most: times an empty page; processor seconds of a rerun; and of a refresh of what moves on the first page."""

SLOWED = 1.5
"""Most times that a scrape of the exporter may take as long beside twenty viewers as beside one."""

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
"""Path and query of what is run again."""

_EVERY_PAGE = 5.0
_SCRAPE_EVERY = 1.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--broker", default="4.3", help="version that is recorded (default 4.3)")
    parser.add_argument("--queues", type=int, default=10_000, help="of the cluster (default 10000)")
    parser.add_argument("--sick", type=int, default=1, help="of a hundred queues, a finding each (default 1)")
    parser.add_argument("--days", type=int, default=30, help="of history (default 30)")
    parser.add_argument("--paints", type=int, default=10, help="first looks at each, alternating (default 10)")
    parser.add_argument("--reruns", type=int, default=8, help="of each page (default 8)")
    parser.add_argument("--viewers", type=int, default=20, help="at once (default 20)")
    parser.add_argument("--rounds", type=int, default=2, help="stretches with one viewer and with all (default 2)")
    parser.add_argument("--seconds", type=float, default=45, help="each of these (default 45)")


def measure(args: argparse.Namespace) -> Document:
    """All of it on one scene."""
    with scene(args.broker, args.queues, args.sick, args.days) as at:
        paint = _paint(at, args.paints)
        nothing = _reruns(at.empty, "", "", args.reruns)
        reruns = [_reruns((at.page, at.url), path, query, args.reruns) for path, query in PAGES]
        refresh = _refreshes(at, args.reruns)
        viewers = _viewers(at, args.viewers, args.rounds, args.seconds)
        last = findings(at.exporter)
        seen = {"broker": at.broker, "findings": at.findings, "last_findings": last, "rollups": at.rollups}
    asked = {"queues": args.queues, "days": args.days, "seconds": args.seconds, "viewers": args.viewers}
    document = {
        **seen,
        **asked,
        "paint": paint,
        "nothing": nothing,
        "reruns": reruns,
        "refresh": refresh,
        "watched": viewers,
    }
    return {**document, "goals": [goal.as_dict() for goal in goals(document)]}


def _paint(at: Scene, times: int) -> dict[str, Any]:
    """First looks, alternating; the first of each is not counted: the servers compile what they run."""
    took: dict[str, list[float]] = {"now": [], "empty": []}
    received: dict[str, int] = {}
    with chromium() as browser:
        for number in range(times + 1):
            tell(f"first looks, {number} of {times}")
            for name, url in (("empty", at.empty[1]), ("now", at.url)):
                with opened(browser, url, HEADING) as (_, found):
                    if number:
                        took[name].append(found.seconds)
                    received[name] = found.received
    return {"seconds": {name: median(each) for name, each in took.items()}, "all": took, "bytes": received}


def _reruns(server: tuple[int, str], path: str, query: str, times: int) -> dict[str, Any]:
    """Processor seconds of a page's server for runs of one page, as far apart as its data needs to be old."""
    pid, url = server
    tell(f"reruns of {url}/{path} {query}")
    with Viewer(url, path, query) as viewer:
        spent = list(_each(pid, times, viewer.run))
        received = viewer.seen.received // (times + 1)
    return {"page": path or "now", "query": query, "cpu": median(spent), "most": max(spent), "bytes": received}


def _refreshes(at: Scene, times: int) -> dict[str, Any]:
    """The same for the quickest part of the first page: what is refreshed while somebody looks."""
    tell("refreshes")
    with Viewer(at.url) as viewer:
        name = min(viewer.fragments, key=viewer.fragments.__getitem__)
        before = viewer.seen.received
        spent = list(_each(at.page, times, lambda: viewer.run(name)))
        received = (viewer.seen.received - before) // times
    return {"every": viewer.fragments[name], "cpu": median(spent), "most": max(spent), "bytes": received}


def _each(pid: int, times: int, run: Any) -> Iterator[float]:
    for _ in range(times):
        time.sleep(_EVERY_PAGE)
        before = cpu(pid)
        run()
        # What the server does after it told the end, it does for this run.
        time.sleep(0.1)
        yield cpu(pid) - before


def _viewers(at: Scene, viewers: int, rounds: int, seconds: float) -> dict[str, Any]:
    """One viewer and many, in alternating stretches."""
    found: dict[str, dict[str, list[float]]] = {}
    for number in range(rounds):
        for count in (1, viewers):
            tell(f"{count} viewers, {number + 1} of {rounds}")
            mine = found.setdefault(str(count), {name: [] for name in ("cpu", "asked", "scrapes", "exporter", "run")})
            page, exporter, asked = cpu(at.page), cpu(at.exporter.process.pid), len(at.asked)
            began = time.monotonic()
            with _scraping(f"{at.exporter.url}/metrics") as scrapes:
                seen = watch_together(at.url, count, seconds)
            span = time.monotonic() - began
            mine["cpu"].append((cpu(at.page) - page) / span)
            mine["exporter"].append((cpu(at.exporter.process.pid) - exporter) / span)
            mine["asked"].append((len(at.asked) - asked) / span)
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
    """Scrape as long as the block runs; the value grows by the seconds of each."""
    took: list[float] = []
    over = threading.Event()

    def run() -> None:
        while not over.wait(_SCRAPE_EVERY):
            took.append(scrape(url).seconds)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield took
    finally:
        over.set()
        thread.join()


def goals(document: Document) -> list[Goal]:
    """What was wanted, beside what was seen."""
    paint, watched = document["paint"]["seconds"], document["watched"]
    one, many = watched["one"], watched["many"]
    worst = max(document["reruns"], key=lambda it: it["cpu"])
    # Viewers that wait longer than the page's own pace ask less than they would: too small a machine tells nothing.
    paced = many["run"] <= document["refresh"]["every"]
    asked, scrapes = (ratio(many[name], one[name]) if paced else None for name in ("asked", "scrapes"))
    return [
        Goal("first useful paint, in times of an empty page's", ratio(paint["now"], paint["empty"]), PAINT),
        Goal(f"processor seconds of a rerun, the page {_name(worst)}", worst["cpu"], RERUN),
        Goal("processor seconds of a refresh of Now", document["refresh"]["cpu"], REFRESH),
        Goal("requests to the exporter, in times of one viewer's", asked, SLOWED),
        Goal("scrape of the exporter, in times of one viewer's", scrapes, SLOWED),
    ]


def _name(rerun: dict[str, Any]) -> str:
    return f"{rerun['page']}{', one queue' if rerun['query'] else ''}"


def lines(document: Document) -> list[str]:
    """A table each, and the goals."""
    paint, watched, refresh = document["paint"], document["watched"], document["refresh"]
    looks = [
        (name, ms(paint["seconds"][name]), f"{paint['bytes'][name] / MB:.2f}", str(len(paint["all"][name])))
        for name in ("empty", "now")
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
        f"memory of the page with {document['viewers']} viewers: {watched['rss'] / MB:.0f} MB, "
        f"{watched['peak'] / MB:.0f} MB at the peak"
    )
    note = (
        "Viewers speak Streamlit's protocol over websockets and refresh as the page tells a browser to. Runs are "
        f"{_EVERY_PAGE:g} s apart, so that what the page keeps of the exporter is read again."
    )
    return [
        measured,
        "",
        *table(("first look, from cold", "ms", "MB", "looks"), looks),
        "",
        *table(("rerun: processor of the server", "middle ms", "most ms", "kB sent"), rerun),
        "",
        *table(("together", "page", "asks /s", "exporter", "scrape ms", "refresh ms"), many),
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
    shows="first look, reruns, refreshes and twenty viewers, at 10,000 queues, 100 findings, 30 days of history",
    measure=measure,
    lines=lines,
    add_arguments=add_arguments,
    short=("--paints", "5", "--reruns", "4", "--rounds", "1", "--seconds", "30"),
)

if __name__ == "__main__":
    raise SystemExit(BENCH.main())
