"""Fetches payloads: a paged list, several endpoints, an endpoint node by node, or queue totals."""

from collections.abc import Iterator, Sequence, Sized
from typing import Any, NamedTuple
from urllib.parse import quote

from ackscope.errors import BadAnswer, BrokerError, Unreachable
from exporter.broker.client import ManagementClient
from exporter.broker.http_errors import AdministratorsOnly

PAGE_SIZE = 500
"""The largest page that the API allows (`rabbit_mgmt_util`)."""

MAX_PAGES = 2000
"""One million queues: more than a broker can hold, and a bound for a server that never ends its list."""

QUEUES_PATH = "/api/queues"

UNRESPONSIVE_RETRY_SECONDS = 60.0
"""An endpoint that hangs while others answer costs a full timeout, so it is retried only this often."""


class ListPage(NamedTuple):
    """One page of a list.

    Attributes:
        page_count: number of pages; 0 if the broker does not report it.
    """

    items: list[Any]
    page_count: int


def fetch_pages(client: ManagementClient, path: str, columns: str = "") -> list[Any]:
    """Fetch all objects of a list, page by page, so that each request is cheap even if the list is long.

    The pages are not one consistent view: while queues are created or deleted, one may be on two pages or on none.

    Args:
        client: sends the requests.
        path: path of the list.
        columns: columns to request of each object; "" for all.

    Raises:
        BrokerError: as the client does; BadAnswer if an answer is not a page.
    """
    found: list[Any] = []
    previous: list[Any] = []
    for number in range(1, MAX_PAGES + 1):
        items, page_count = fetch_page(client, path, number, columns)
        if items and items == previous:
            # It would go on for all pages: the broker would get thousands of requests in each poll.
            where = f"{client.address.where}{client.address.path}{path}"
            raise BadAnswer(f"{where}: page {number} is page {number - 1} again; check what a proxy in between returns")
        found += items
        previous = items
        if not items or number >= page_count:
            return found
    raise BadAnswer(f"{client.address.where}{client.address.path}{path}: more than {MAX_PAGES} pages; stopped reading")


def fetch_page(client: ManagementClient, path: str, number: int, columns: str = "") -> ListPage:
    """Fetch one page of a list, numbered from 1; it is empty beyond the end. See `fetch_pages`.

    Raises:
        BrokerError: as the client does; BadAnswer if the answer is not a page.
    """
    # 400 for a later page means that the list has become shorter since the previous page.
    accepted = (200,) if number == 1 else (200, 400)
    selection = {"columns": columns} if columns else {}
    answer = client.request(path, {"page": number, "page_size": PAGE_SIZE, **selection}, accepted)
    if answer.status == 400:
        return ListPage([], 0)
    items = answer.body.get("items") if isinstance(answer.body, dict) else None
    if not isinstance(items, list):
        raise BadAnswer(f"{client.address.where}{client.address.path}{path}: page {number} has no list of items")
    page_count = answer.body.get("page_count")
    return ListPage(items, page_count if isinstance(page_count, int) else 0)


def fetch_totals(client: ManagementClient) -> Iterator[Any]:
    """Fetch all queues with their totals only, which costs about a tenth of their statistics.

    Items are decoded as they are consumed, so that 100,000 of them are never in memory together.

    Raises:
        BrokerError: as the client does; invalid JSON may be detected only after some items. BadAnswer if the answer is
            not a list.
    """
    items = client.stream_list(QUEUES_PATH, {"disable_stats": "true", "enable_queue_totals": "true"})
    if items is None:
        raise BadAnswer(
            f"{client.address.where}{client.address.path}{QUEUES_PATH}: the answer is not a list of queues; "
            "check what a proxy in between returns"
        )
    return items


def fetch_queue(client: ManagementClient, vhost: str, name: str) -> dict[str, Any] | None:
    """Fetch one queue with all its statistics; None if it no longer exists.

    Raises:
        BrokerError: as the client does; BadAnswer if the answer is not an object.
    """
    path = f"{QUEUES_PATH}/{quote(vhost, safe='')}/{quote(name, safe='')}"
    answer = client.request(path, accepted=(200, 404))
    if answer.status == 404:
        return None
    if not isinstance(answer.body, dict):
        raise BadAnswer(
            f"{client.address.where}{client.address.path}{path}: the answer is not a queue; "
            "check what a proxy in between returns"
        )
    return answer.body


PLUGIN_PATHS = frozenset({"/api/shovels", "/api/federation-links", "/api/stream/consumers", "/api/stream/publishers"})
"""Endpoints that only exist with a plugin enabled, so all of them may be absent."""


def fetch_multiple(client: ManagementClient, paths: Sequence[str]) -> dict[str, Any]:
    """Fetch the answer of each path, without paths that the broker lacks (404: a disabled plugin, an older version).

    A path for administrators only has {"error": text} instead. The tag `monitoring` suffices for the others.

    Raises:
        BrokerError: a path could not be read. The answers of the others would look complete without it.
    """
    answers: dict[str, Any] = {}
    for path in paths:
        try:
            answer = client.request(path, accepted=(200, 404))
        except AdministratorsOnly as error:
            answers[path] = {"error": str(error)}
            continue
        if answer.status == 200:
            answers[path] = answer.body
    if not answers and not PLUGIN_PATHS.issuperset(paths):
        # Every version has at least one of these paths, so this is not a broker. Request one for the usual 404 error.
        client.get(paths[0])
    return answers


def fetch_per_node(client: ManagementClient, path: str, nodes: Sequence[str]) -> dict[str, Any]:
    """Fetch the answer of each node for a path with `{node}`, without nodes that the broker does not know (404).

    A node that could not be read has {"error": text} instead, so that a hanging node does not hide the others.

    Raises:
        BrokerError: no node could be read, or no node is known.
    """
    require_nodes(client, path, nodes)
    return _fetch_each(client, path, "{node}", nodes)


def require_nodes(client: ManagementClient, path: str, nodes: Sized) -> None:
    """Check that nodes are known, without which a path cannot be read.

    Raises:
        Unreachable: none is known.
    """
    if not nodes:
        where = f"{client.address.where}{client.address.path}"
        raise Unreachable(f"{where}{path}: no running node is known; see why /api/nodes cannot be read")


def fetch_per_connection(client: ManagementClient, path: str, names: Sequence[str]) -> dict[str, Any]:
    """Fetch the answer for each of some connections for a path with `{name}`, without those that were closed (404).

    A connection that could not be read has {"error": text} instead.

    Raises:
        BrokerError: no connection could be read.
    """
    return _fetch_each(client, path, "{name}", names)


def _fetch_each(client: ManagementClient, path: str, placeholder: str, names: Sequence[str]) -> dict[str, Any]:
    answers: dict[str, Any] = {}
    failure: BrokerError | None = None
    for name in names:
        try:
            answer = client.request(path.replace(placeholder, quote(name, safe="")), accepted=(200, 404))
        except BrokerError as error:
            answers[name] = {"error": str(error)}
            failure = error
            continue
        if answer.status == 200:
            answers[name] = answer.body
    if failure is not None and all(is_error(answer) for answer in answers.values()):
        raise failure
    return answers


def is_error(answer: object) -> bool:
    """Whether an answer of `fetch_multiple` or `fetch_per_node` stands for a failed request."""
    return isinstance(answer, dict) and "error" in answer
