"""Scrapes like those of Prometheus, timed to the last byte, and parsing of their text."""

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
"""Value of the header `Accept` that Prometheus sends."""

_TIMEOUT = 180.0
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True, slots=True)
class ScrapedPage:
    """One scrape of a page.

    Attributes:
        seconds: from the start of the connection to the last byte.
        sent: bytes of the body as received, compressed if the server compresses.
        text: body, decompressed.
    """

    seconds: float
    sent: int
    text: str

    @property
    def series(self) -> int:
        """Number of samples."""
        return sum(1 for line in self.text.splitlines() if line and line[0] != "#")


def fetch(url: str, *, compressed: bool = True) -> tuple[float, bytes, bool]:
    """Fetch a page. Returns the seconds, the body as received, and whether it is gzip.

    Raises:
        BrokerError: the status is not 200, or there is no response.
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
    """Scrape once; the time does not include decompression.

    Raises:
        BrokerError: the status is not 200, or there is no response.
    """
    seconds, body, packed = fetch(url)
    return ScrapedPage(seconds, len(body), (gzip.decompress(body) if packed else body).decode())


def turns(seconds: float, every: float) -> Iterator[float]:
    """Sleep and yield at every turn of a stretch: at once, and then every `every` seconds.

    No turn begins after the end of the stretch. After the last one, it sleeps until the end.
    """
    due = began = time.monotonic()
    while (now := max(due, time.monotonic())) < began + seconds:
        time.sleep(max(0.0, due - time.monotonic()))
        yield now
        due += every
    time.sleep(max(0.0, began + seconds - time.monotonic()))


def samples(text: str, name: str) -> list[tuple[dict[str, str], float]]:
    """Return labels and value of every sample of a metric, in order of the text."""
    found = []
    for line in text.splitlines():
        if line.startswith((f"{name}{{", f"{name} ")):
            head, _, rest = line.rpartition("} ") if "{" in line else line.partition(" ")
            found.append((dict(_LABEL.findall(head)), float(rest.split()[0])))
    return found


def by_label(text: str, name: str, label: str) -> dict[str, float]:
    """Return the samples by the value of one label; the last one if several have the same."""
    return {labels[label]: value for labels, value in samples(text, name) if label in labels}
