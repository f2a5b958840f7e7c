"""The tables of the exporter benchmarks: at most 80 columns for any values; missing values are not made up."""

import pytest

from bench.exporter import at_once, growth, hung, limit, peers, soak
from bench.tables import WIDTH

NOTHING = dict.fromkeys(
    (
        "failed",
        "broker_cpu",
        "added_cpu",
        "full_view",
        "totals_after",
        "detailed",
        "scrape",
        "exporter_cpu",
        "rss",
        "peak",
        "oldest_totals",
        "series",
        "bytes",
        "sent",
    )
) | {"added_cpus": []}
LARGE = {
    **NOTHING,
    "broker_cpu": 59.99,
    "added_cpu": 59.99,
    "added_cpus": [0.0, 50.0, 99.0],
    "full_view": 599.9,
    "scrape": 59.9999,
    "exporter_cpu": 59.99,
    "peak": 9999 * 2**20,
    "series": 9_999_999,
    "bytes": 999 * 2**20,
}
AT_ONCE = {
    "broker": "3.10.8",
    "queues": 50_000,
    "busy": 200,
    "seconds": 600.0,
    "stretches": [{"nobody": 59.999, "rabbitmq_exporter": 99.999, "ackscope": 59.999}] * 3,
    "goal": {
        "what": "broker CPU, as a share of rabbitmq_exporter's",
        "seen": 0.2,
        "most": 0.25,
        "low": 0.1,
        "high": None,
    },
}
PEERS = {
    "busy": 200,
    "rounds": 1,
    "seconds": 60,
    "interval": 15,
    "results": [
        {
            "broker": "3.10.8",
            "queues": 50_000,
            "contenders": {
                "nobody": NOTHING,
                "rabbitmq_exporter": LARGE,
                "per-object": {**NOTHING, "failed": "127.0.0.1/metrics/per-object: TimeoutError"},
                "ackscope": LARGE,
            },
            "goals": [{"what": "memory of ackscope, MB at its peak", "seen": None, "most": 200}],
        }
    ],
}
SIZE = {"totals_after": 99.9, "full_view": 999.9, "scrape": 9.9, "cpu": 59.99, "peak": 9999 * 2**20, "series": 999_999}
GROWTH = {
    "broker": "4.3.6",
    "budget": 1.0,
    "sizes": [{"queues": queues, "reading": 9.999, "bytes": 99 * 2**20, **SIZE} for queues in (1000, 100_000)],
    "doublings": [{"from": 50_000, "to": 100_000, "reading": None, "scrape": 1.9, "cpu": 1.1, "peak": 2.4}],
}
LIMIT = {
    "broker": "4.3.6",
    "queues": 10_000,
    "pairs": 5,
    "polling": [{"family": "connections", "requests": 20, "ours": 99.9, "curl": 60.0}],
    "bytes": 99 * 2**20,
    "sent": 9 * 2**20,
    "serving": {"ours": 0.019, "static": 0.01, "ours gzip": 0.021, "static gzip": 0.01},
}
LOOK = {"sockets": 100, "threads": 100, "files": 1000, "rss": 10**9, "scrape": 9.9}
HUNG = {
    "broker": "4.3.6",
    "queues": 300,
    "node": 3,
    "hung": 180,
    "before": LOOK,
    "most": LOOK,
    "after": LOOK,
    "looks": 90,
    "failed_scrapes": 0,
    "families": [
        {"family": "connections", "interval": 5.0, "oldest": 999.9, "intervals": 199.9, "alone": 99.9, "failing": 1.0},
        {"family": "nodes", "interval": 5.0, "oldest": 69.0, "intervals": 13.8, "alone": 60.0, "failing": 0.5},
        {"family": "queues", "interval": None, "oldest": None, "intervals": None, "alone": None, "failing": 0.0},
    ],
    "recovery": None,
}
SOAK = {
    "broker": "4.3.6",
    "queues": 10_000,
    "minutes": 60,
    "made": 9999,
    "deleted": 9999,
    "full_view": None,
    "trends": {
        "rss": {"first": 2e8, "last": 2.2e8, "growth": 0.1, "slope": 0.2},
        "files": {"first": 20, "last": 20, "growth": 0.0, "slope": -0.001},
        "threads": {"first": None, "last": None, "growth": None, "slope": None},
    },
}


@pytest.mark.parametrize(
    ("bench", "document"),
    [(peers, PEERS), (at_once, AT_ONCE), (growth, GROWTH), (limit, LIMIT), (hung, HUNG), (soak, SOAK)],
)
def test_tables_fit_whatever_the_figures(bench, document):
    """Rows that are too wide would be an error; only prose is longer, and that is wrapped when it is printed."""
    lines = bench.lines(document)

    assert all(len(line) <= WIDTH or "  " not in line for line in lines)


def test_a_contender_that_failed_is_reported_with_its_reason():
    """It has a line of its own, not a row of zeros."""
    lines = peers.lines(PEERS)

    assert "per-object: 127.0.0.1/metrics/per-object: TimeoutError" in lines
    assert "could not tell: memory of ackscope, MB at its peak: -, at most 200" in lines


def test_growth_that_is_worse_than_linear_is_said():
    """The text names the largest growth factor per doubling of any measure."""
    assert "linear or better: NO, the largest is 2.40" in growth.lines(GROWTH)


def test_a_limit_that_is_missed_is_said():
    """Polling and serving are judged separately."""
    text = "\n".join(limit.lines(LIMIT))

    assert "NOT met: all together at most 1.2 times as long as curl" in text
    assert "NOT met: at most 2 times as long as the same bytes from memory" in text


def test_a_family_that_is_stale_while_a_node_hangs_is_said():
    """It is not reported if the broker delays every client; a family without a value does not count as fresh."""
    rows = {line.split()[0]: line.split()[-1] for line in hung.lines(HUNG) if line[:5] in {"conne", "nodes", "queue"}}

    assert {"connections": "NO", "nodes": "asked", "queues": "-"} == rows


def test_memory_that_grows_is_not_flat():
    """Files that stay are."""
    rows = {line.split()[0]: line.split()[-1] for line in soak.lines(SOAK) if line}

    assert ("NO", "yes", "-") == (rows["MB"], rows["files"], rows["threads"])
