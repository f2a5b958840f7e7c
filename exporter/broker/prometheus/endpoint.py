"""HTTP clients of the Prometheus endpoints of one cluster's nodes."""

import time
from collections.abc import Iterable, Mapping, Sequence

import requests

from ackscope.errors import BadAnswer, ConfigError, UsageError
from ackscope.snapshot import Overview
from exporter.broker.cost_model import AdaptiveTimeout
from exporter.broker.credentials import credentials_from
from exporter.broker.http_errors import (
    METRICS_ENDPOINT,
    map_metrics_status_error,
    map_transport_error,
    not_metrics_error,
)
from exporter.broker.prometheus.settings import DEFAULT_PORT, PrometheusSettings
from exporter.broker.session import open_session, request_timeout

MAX_BYTES = 256 * 1024 * 1024
"""Largest answer that is read, to bound our memory. All figures of 10,000 queues have 30 MB."""


class MetricsEndpoint:
    """Client of one endpoint. One request at a time: it belongs to one thread.

    Args:
        settings: credentials and TLS.
        url: its address.
        what: name of the settings in error messages, such as `clusters.shop.prometheus`.

    Raises:
        UsageError: invalid address.
        ConfigError: a file of the settings cannot be used.

    Attributes:
        received, requests, seconds: cost so far, as in `ManagementClient`. The round trip is included: no answer is so
            small that it would tell it.
    """

    def __init__(self, settings: PrometheusSettings, url: str, what: str = "prometheus") -> None:
        access = settings.at(url)
        self.address = access.address(what)
        self.received, self.requests, self.seconds = 0, 0, 0.0
        self._credentials = credentials_from(access, what) if settings.has_credentials(url) else None
        self._user = self.address.username if self._credentials is not None and not settings.bearer else None
        self._session = open_session(access, what)
        self._session.headers.update({"Accept": "text/plain", "Accept-Encoding": "identity"})
        self._timeout = AdaptiveTimeout(settings.timeout)

    def text(self, path: str, families: Sequence[str] = ()) -> str:
        """Return the metrics at a path.

        Args:
            path: `/metrics` or `/metrics/detailed`.
            families: families of metrics, for `/metrics/detailed`.

        Raises:
            BrokerError: no connection, no complete answer in time, or another answer than metrics.
        """
        timeout, began = self._timeout.timeout_for(path), time.monotonic()
        self.requests += 1
        try:
            status, body = self._send(path, families, timeout)
        except requests.RequestException as error:
            self._timeout.record_failure(path, time.monotonic() - began)
            raise map_transport_error(self.address, path, error, timeout, METRICS_ENDPOINT) from None
        else:
            self._timeout.record_success(path, time.monotonic() - began)
        finally:
            self.seconds += time.monotonic() - began
        if status != 200:
            raise map_metrics_status_error(self.address, path, status, self._user)
        try:
            return body.decode()
        except UnicodeDecodeError:
            raise not_metrics_error(self.address, path) from None

    def close(self) -> None:
        """Close its connection."""
        self._session.close()

    def _send(self, path: str, families: Sequence[str], timeout: float) -> tuple[int, bytearray]:
        with self._session.get(
            f"{self.address.scheme}://{self.address.where}{self.address.path}{path}",
            params={"family": list(families)} if families else None,
            headers={} if self._credentials is None else {"Authorization": self._credentials.header()},
            timeout=request_timeout(timeout),  # type: ignore[arg-type]  # requests hands it to urllib3 as it is
            allow_redirects=False,
            stream=True,
        ) as response:
            body = bytearray()
            for chunk in response.iter_content(65536):
                body += chunk
                if len(body) > MAX_BYTES:
                    raise BadAnswer(f"{self.address.where}{path}: the answer is larger than {MAX_BYTES // 2**20} MiB")
            self.received += len(body)
            return response.status_code, body


class NodeEndpoints:
    """One client for each endpoint of a cluster: those of the settings, else port 15692 of each running node.

    Args:
        settings: the endpoints.
        management_host: host of the management API, which is a node's; None without one.
        what: name of the settings in error messages, such as `clusters.shop.prometheus`.

    Raises:
        UsageError: invalid address.
        ConfigError: a file of the settings cannot be used.
    """

    def __init__(self, settings: PrometheusSettings, management_host: str | None, what: str = "prometheus") -> None:
        self._settings, self._host, self._what = settings, management_host, what
        self._known = {url: MetricsEndpoint(settings, url, what) for url in settings.urls}
        self._retired = (0.0, 0, 0)

    @property
    def cost(self) -> tuple[float, int, int]:
        """Seconds of broker time, requests and bytes so far."""
        seconds, requests_sent, received = self._retired
        return (
            seconds + sum(each.seconds for each in self._known.values()),
            requests_sent + sum(each.requests for each in self._known.values()),
            received + sum(each.received for each in self._known.values()),
        )

    def follow(self, overview: Overview | None, running: Iterable[str]) -> Mapping[str, MetricsEndpoint]:
        """Return the client of each address. Without configured addresses, there is one for each running node.

        Raises:
            BadAnswer: the name of a node gives no address.
        """
        if self._settings.urls:
            return self._known
        urls = {f"http://{self._host_of(node, overview)}:{DEFAULT_PORT}": node for node in running}
        for url in [url for url in self._known if url not in urls]:
            gone = self._known.pop(url)
            gone.close()
            seconds, requests_sent, received = self._retired
            self._retired = (seconds + gone.seconds, requests_sent + gone.requests, received + gone.received)
        for url in urls:
            if url not in self._known:
                try:
                    self._known[url] = MetricsEndpoint(self._settings, url, self._what)
                except (UsageError, ConfigError) as error:
                    raise BadAnswer(str(error)) from None
        return self._known

    def close(self) -> None:
        """Close all connections."""
        for each in self._known.values():
            each.close()

    def _host_of(self, node: str, overview: Overview | None) -> str:
        """The host of a node: that of the management API for the node that answers there."""
        host = self._host if overview is not None and overview.node == node else None
        host = host or node.partition("@")[2] or "localhost"
        return f"[{host}]" if ":" in host and not host.startswith("[") else host
