"""One of three nodes hangs: freshness of the other data, and the exporter's resources."""

import argparse
import signal
import threading
import time
from contextlib import suppress
from typing import Any

import psutil
import requests

from ackscope.errors import BrokerError
from bench.bench import Bench, Document, progress
from bench.exporter.scraping import by_label, scrape
from bench.exporting import Exporter, exporting, wait_for
from bench.tables import table
from bench.usage import MB, usage
from exporter.broker.families import FAMILIES, FetchMode
from lab.cluster import Lab, start_lab
from lab.many import make_queues, names
from lab.node import LabNode

INTERVALS = 2.0
"""Data is fresh up to this age, in effective poll intervals."""

_SETTLED = 40.0
_LOOK = 2.0
_RECOVERED_WITHIN = 180.0
_ALONE_SECONDS, _ALONE_EVERY = 300.0, 5.0
_SIZES = ("sockets", "threads", "files")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--broker", default="4.3", help="version (default 4.3)")
    parser.add_argument("--node", type=int, choices=(1, 2, 3), default=3, help="that hangs; 1 is polled (default 3)")
    parser.add_argument("--hung", type=float, default=180, metavar="N", help="seconds that it hangs (default 180)")
    parser.add_argument("--queues", type=int, default=300, help="a third of them quorum (default 300)")


def measure(args: argparse.Namespace) -> Document:
    """Measure before and during the hang, then the time to recover."""
    with start_lab(args.broker, 3) as lab:
        everyone = names(args.queues)
        for index, kind in enumerate(("classic", "classic", "quorum")):
            make_queues(lab.nodes[index].management, everyone[index::3], kind)
        with exporting(lab.nodes[0], probes=False) as exporter:
            wait_for(lambda: _freshness(exporter)[0], "the first readings")
            time.sleep(_SETTLED)
            before = _look(exporter, lab)
            progress(f"node {args.node} hangs for {args.hung:g} s")
            process = lab.processes[args.node - 1]
            process.signal(signal.SIGSTOP)
            alone = Alone(lab.nodes[0])
            try:
                looks = _watch(exporter, lab, args.hung)
            finally:
                process.signal(signal.SIGCONT)
                asked = alone.stop()
            progress("it goes on")
            recovery = _recovery(exporter)
            time.sleep(_LOOK)
            after = _look(exporter, lab)
    return {
        "broker": lab.broker,
        "node": args.node,
        "hung": args.hung,
        "queues": args.queues,
        "before": before,
        "after": after,
        "looks": len(looks),
        "failed_scrapes": sum(look is None for look in looks),
        "families": _families(before, [look for look in looks if look is not None], asked),
        "most": {name: max(look[name] for look in looks if look) for name in (*_SIZES, "rss", "scrape")},
        "recovery": recovery,
    }


class Alone:
    """Requests one endpoint of each family from the polled node, in parallel to the exporter, until `stop`.

    It shows the broker's own latency: a response about the whole cluster waits for the node that hangs.
    """

    def __init__(self, node: LabNode) -> None:
        self._node, self._ending = node, threading.Event()
        self._took = dict.fromkeys(FAMILIES, 0.0)
        for name, family in FAMILIES.items():
            path = family.paths[0].replace("{node}", node.name)
            target = f"{path}/local-alarms" if family.mode is FetchMode.HEALTH_CHECKS else path
            threading.Thread(target=self._ask, args=(name, target), daemon=True).start()

    def stop(self) -> dict[str, float]:
        """Return the seconds of the slowest response of each family, including pending ones."""
        self._ending.set()
        return dict(self._took)

    def _ask(self, name: str, target: str) -> None:
        while not self._ending.is_set():
            began = time.monotonic()
            waiting = threading.Event()
            threading.Thread(target=self._count, args=(name, began, waiting), daemon=True).start()
            with suppress(requests.RequestException):
                requests.get(self._node.management + target, timeout=_ALONE_SECONDS)
            waiting.set()
            self._ending.wait(_ALONE_EVERY)

    def _count(self, name: str, began: float, done: threading.Event) -> None:
        while not (done.wait(0.05) or self._ending.is_set()):
            self._took[name] = max(self._took[name], time.monotonic() - began)


def _look(exporter: Exporter, lab: Lab) -> dict[str, Any]:
    """Return the freshness and the resources of the exporter now."""
    page = scrape(f"{exporter.url}/metrics")
    force = by_label(page.text, "ackscope_poll_interval_seconds", "family")
    seen = usage(exporter.process.pid)
    return {
        "scrape": page.seconds,
        "ages": by_label(page.text, "ackscope_poll_age_seconds", "family"),
        "success": by_label(page.text, "ackscope_poll_success", "family"),
        "force": force,
        "rss": seen.rss,
        **{name: getattr(seen, name) for name in _SIZES},
        "towards_broker": _towards(exporter.process.pid, lab),
    }


def _towards(pid: int, lab: Lab) -> int:
    """Return the number of connections of the exporter to the API of the first node."""
    port = int(lab.nodes[0].management.rpartition(":")[2])
    return sum(getattr(each.raddr, "port", None) == port for each in psutil.Process(pid).net_connections())


def _watch(exporter: Exporter, lab: Lab, seconds: float) -> list[dict[str, Any] | None]:
    """Look every 2 s; None for a failed scrape."""
    looks: list[dict[str, Any] | None] = []
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        time.sleep(_LOOK)
        look = None
        with suppress(BrokerError):
            look = _look(exporter, lab)
        looks.append(look)
    return looks


def _freshness(exporter: Exporter) -> tuple[bool, list[str]]:
    """Return whether every family was read, and the names of those that are not fresh."""
    text = scrape(f"{exporter.url}/metrics").text
    ages = by_label(text, "ackscope_poll_age_seconds", "family")
    force = by_label(text, "ackscope_poll_interval_seconds", "family")
    success = by_label(text, "ackscope_poll_success", "family")
    stale = [name for name, age in ages.items() if success.get(name) != 1 or age > INTERVALS * force.get(name, age)]
    return bool(ages) and ages.keys() == success.keys(), stale


def _recovery(exporter: Exporter) -> float | None:
    """Return the seconds until all families are fresh again, or None after 180 s."""
    began = time.monotonic()
    while time.monotonic() - began < _RECOVERED_WITHIN:
        if not _freshness(exporter)[1]:
            return time.monotonic() - began
        time.sleep(0.5)
    return None


def _families(before: dict[str, Any], looks: list[dict[str, Any]], asked: dict[str, float]) -> list[dict[str, Any]]:
    """Return the maximum age of each family in seconds and in effective intervals, and its share of failures."""
    found = []
    for name in before["ages"]:
        ages = [(look["ages"][name], look["force"].get(name)) for look in looks if name in look["ages"]]
        found.append(
            {
                "family": name,
                "before": before["ages"][name],
                "interval": before["force"].get(name),
                "oldest": max((age for age, _ in ages), default=None),
                "intervals": max((age / force for age, force in ages if force), default=None),
                "alone": asked.get(name),
                "failing": sum(look["success"].get(name) == 0 for look in looks) / max(1, len(looks)),
            }
        )
    return found


def lines(document: Document) -> list[str]:
    """Return the ages by family, then the resources of the exporter."""
    families = [
        (
            each["family"],
            _figure(each["interval"]),
            _figure(each["oldest"]),
            _figure(each["intervals"]),
            _figure(each["alone"]),
            f"{each['failing'] * 100:.0f} %",
            _fresh(each),
        )
        for each in document["families"]
    ]
    before, most, after = document["before"], document["most"], document["after"]
    sizes: list[tuple[str, ...]] = [(name, str(before[name]), str(most[name]), str(after[name])) for name in _SIZES]
    sizes.append(("MB RSS", *(f"{each['rss'] / MB:.1f}" for each in (before, most, after))))
    sizes.append(("scrape ms", *(f"{each['scrape'] * 1000:.1f}" for each in (before, most, after))))
    back = "not seen" if document["recovery"] is None else f"{document['recovery']:.1f} s after it went on"
    hung = f"node 1 is polled, node {document['node']} hung for {document['hung']:g} s"
    return [
        f"RabbitMQ {document['broker']}, 3 nodes, {document['queues']} queues; {hung}",
        "",
        *table(("family", "every s", "oldest s", "intervals", "asked alone s", "failing", "fresh"), families),
        "",
        *table(("of the exporter", "before", "most", "after"), sizes),
        "",
        f"scrapes meanwhile {document['looks']}, failed {document['failed_scrapes']}",
        f"everything fresh again: {back}",
        (
            "asked alone: the slowest answer to a client that asks node 1 for the same, beside the exporter; "
            "as asked: not fresh, but no older than that wait makes it"
        ),
    ]


def _fresh(each: dict[str, Any]) -> str:
    """Return whether a family stayed fresh: "yes", "NO", or "as asked" if the broker's response was as late."""
    if each["intervals"] is None:
        return "-"
    if each["intervals"] <= INTERVALS:
        return "yes"
    waited = (each["alone"] or 0.0) + INTERVALS * each["interval"]
    return "as asked" if each["oldest"] <= waited else "NO"


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


BENCH = Bench(
    name="hung",
    room="exporter",
    shows="a node of three that hangs: freshness of the rest, what piles up, recovery",
    measure=measure,
    lines=lines,
    add_arguments=add_arguments,
    short=("--hung", "45"),
)

if __name__ == "__main__":
    raise SystemExit(BENCH.main())
