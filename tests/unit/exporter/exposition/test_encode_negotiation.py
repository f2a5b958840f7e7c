import pytest

from exporter.exposition.encode import Format, accepts_gzip, negotiate_format

PROMETHEUS_2 = (
    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
    "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
)
PROMETHEUS_3 = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;"
    "version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)


@pytest.mark.parametrize(
    "accept",
    [
        PROMETHEUS_2,
        PROMETHEUS_3,
        "application/openmetrics-text",
        'Application/OpenMetrics-Text; version="1.0.0"; charset=utf-8',
        "text/plain;q=0.3, application/*;q=0.4",
        "application/openmetrics-text;q=0.2, text/plain;q=0, */*;q=0.1",
        "text/plain;version=1.0.0, application/openmetrics-text;q=0.1",
    ],
)
def test_openmetrics_for_those_who_ask_for_it(accept):
    """The weight decides, then the most specific type; unsupported versions are ignored."""
    assert Format.OPENMETRICS is negotiate_format(accept)


@pytest.mark.parametrize(
    "accept",
    [
        "",
        "*/*",
        "text/html,application/xhtml+xml,*/*;q=0.8",
        "text/plain, application/openmetrics-text",
        "application/openmetrics-text;version=0.0.1",
        "application/openmetrics-text;version=2.0.0, text/*;q=0.1",
        "application/openmetrics-text;q=0",
        "application/openmetrics-text;q=0.4, text/plain;version=0.0.4;q=0.5",
        "application/openmetrics-text;q=much, text/plain;q=0.1",
        "application/openmetrics-text;q=nan",
        "application/vnd.google.protobuf",
        ";;,q=,=",
    ],
)
def test_the_text_format_for_everybody_else(accept):
    """This includes a tie, and clients that accept neither format."""
    assert Format.TEXT is negotiate_format(accept)


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("gzip", True),
        ("deflate, GZIP;q=0.5", True),
        ("x-gzip", True),
        ("*", True),
        ("gzip;q=0", False),
        ("gzip;q=0, *", False),
        ("identity, gzip;q=0.5", False),
        ("identity", False),
        ("", False),
    ],
)
def test_who_takes_gzip(header, expected):
    """As the Accept-Encoding header has it."""
    assert expected == accepts_gzip(header)
