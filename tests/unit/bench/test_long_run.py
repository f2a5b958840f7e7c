"""The table of the long run, and what counts as growth."""

import pytest

from bench.chaos import long_run
from bench.exporter.soak import is_flat, trend
from bench.tables import WIDTH

DOCUMENT = {
    "broker": "4.3.6",
    "queues": 10_000,
    "minutes": 180.0,
    "made": 10_800,
    "deleted": 10_740,
    "ended": ["its Java"],
    "failed_scrapes": 2,
    "failed_pages": ["page 'queues': its run did not end (TimeoutError)"],
    "trends": {
        "exporter": {
            "rss": {"first": 2e8, "last": 2.2e8, "growth": 0.1, "slope": 0.2},
            "sockets": {"first": 17.0, "last": 17.0, "growth": 0.0, "slope": -0.001},
        },
        "landing files": {"bytes": {"first": None, "last": None, "growth": None, "slope": None}},
    },
    "goals": [{"what": "values that grow", "seen": 2.0, "most": 0.0, "low": None, "high": None}],
}


def test_the_table_fits_and_says_what_grows():
    """What could not be judged is not called flat."""
    text = long_run.lines(DOCUMENT)
    flat = {line.split("  ")[0]: line.split()[-1] for line in text if line.startswith(("exporter, ", "landing "))}

    assert {"exporter, MB RSS": "NO", "exporter, sockets": "yes", "landing files, MB": "NO"} == flat
    assert max(map(len, text)) <= WIDTH
    assert "NOT met: values that grow: 2, at most 0" in text
    assert "ended: its Java" in text


@pytest.mark.parametrize(
    ("values", "flat"),
    [
        ([100.0] * 60, True),
        # A process without sockets.
        ([0.0] * 60, True),
        ([100.0 + number for number in range(60)], False),
        # It shrinks.
        ([200.0 - number for number in range(60)], True),
        # Too few to judge.
        ([100.0], False),
    ],
)
def test_growth(values, flat):
    """Above five percent between the thirds, or along the line."""
    assert flat is is_flat(trend([(number * 60.0, value) for number, value in enumerate(values)]))
