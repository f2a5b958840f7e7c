"""Scrapes as Prometheus makes them, timed to the last byte, and what their text says."""

import gzip
import http.client
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from ackscope.errors import BrokerError

ACCEPT = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
    "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.5,text/plain;version=0.0.4;q=0.4,*/*;q=0.1"
)
"""What Prometheus sends."""

_TIMEOUT = 180.0
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True, slots=True)
class ScrapedPage:
    """One scrape.

    Attributes:
        seconds: from the start of the connection to the last byte.
        sent: bytes of the body as they came, compressed where the server does that.
        text: the body.
    """

    seconds: float
    sent: int
    text: str

    @property
    def series(self) -> int:
        """How many samples it has."""
        return sum(1 for line in self.text.splitlines() if line and line[0] != "#")


def fetch(url: str, *, compressed: bool = True) -> tuple[float, bytes, bool]:
    """Seconds, the body as it came, and whether that is gzip.

    Raises:
        BrokerError: no answer of 200.
    """
    address = urlsplit(url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=_TIMEOUT)
    headers = {"Accept": ACCEPT, "Accept-Encoding": "gzip" if compressed else "identity"}
    began = time.perf_counter()
    try:
        connection.request("GET", f"{address.path}?{address.query}", headers=headers)
        answer = connection.getresponse()
        body = answer.read()
        seconds = time.perf_counter() - began
    except (OSError, http.client.HTTPException) as error:
        raise BrokerError(f"{address.netloc}{address.path}: {type(error).__name__}") from None
    finally:
        connection.close()
    if answer.status != 200:
        raise BrokerError(f"{address.netloc}{address.path}: {answer.status} {body[:200].decode(errors='replace')}")
    return seconds, body, answer.headers.get("Content-Encoding") == "gzip"


def scrape(url: str) -> ScrapedPage:
    """Scrape once; decompressing is not counted.

    Raises:
        BrokerError: no answer of 200.
    """
    seconds, body, packed = fetch(url)
    return ScrapedPage(seconds, len(body), (gzip.decompress(body) if packed else body).decode())


def turns(seconds: float, every: float) -> Iterator[float]:
    """The moments of a stretch at which to scrape, waited for: at once, and then every so many seconds.

    None begins after the end of the stretch, and the last one is followed by what is left of it.
    """
    due = began = time.monotonic()
    while (now := max(due, time.monotonic())) < began + seconds:
        time.sleep(max(0.0, due - time.monotonic()))
        yield now
        due += every
    time.sleep(max(0.0, began + seconds - time.monotonic()))


def samples(text: str, name: str) -> list[tuple[dict[str, str], float]]:
    """Labels and value of every sample of a metric, as they stand in the text."""
    found = []
    for line in text.splitlines():
        if line.startswith((f"{name}{{", f"{name} ")):
            head, _, rest = line.rpartition("} ") if "{" in line else line.partition(" ")
            found.append((dict(_LABEL.findall(head)), float(rest.split()[0])))
    return found


def by_label(text: str, name: str, label: str) -> dict[str, float]:
    """Value of one label -> sample; the last one where several have it."""
    return {labels[label]: value for labels, value in samples(text, name) if label in labels}
