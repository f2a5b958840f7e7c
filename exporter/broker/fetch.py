"""How a family's payload is got: one answer, page by page, several endpoints, or node by node."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

from ackscope.errors import BadAnswer, BrokerError, Unreachable
from exporter.broker.client import ManagementClient
from exporter.broker.failures import ForAdministrators

PAGE = 500
"""The most objects that the API puts on a page (`rabbit_mgmt_util`)."""

MOST_PAGES = 2000
"""A million queues: more than a broker holds, and a bound for a server that never comes to an end."""


QUEUES = "/api/queues"

SILENT_SECONDS = 60.0
"""What hangs while others answer costs a whole time limit: it is asked again after this long."""


class Page(NamedTuple):
    """One page of a list.

    Attributes:
        pages: how many there are; 0 where that is not told.
    """

    items: list[Any]
    pages: int


def one(client: ManagementClient, path: str, *, patient: bool = False) -> Any:
    """The answer of one request; see `ManagementClient.get`."""
    return client.get(path, patient=patient)


def pages(client: ManagementClient, path: str, columns: str = "") -> list[Any]:
    """All objects of a list, page by page: each request costs the broker little, however many there are.

    The pages are not one moment: an object may be on two of them, or slip through where others go in between.

    Args:
        client: asks.
        path: of the list.
        columns: of each object, those that are wanted; "" for all.

    Raises:
        BrokerError: as the client does; BadAnswer where a page is not one.
    """
    found: list[Any] = []
    for number in range(1, MOST_PAGES + 1):
        items, last = page(client, path, number, columns)
        found += items
        if not items or number >= last:
            return found
    raise BadAnswer(f"{client.address.where}{client.address.path}{path}: more than {MOST_PAGES} pages; not read on")


def page(client: ManagementClient, path: str, number: int, columns: str = "") -> Page:
    """One page of a list, counted from 1; an empty one past its end. See `pages`.

    Raises:
        BrokerError: as the client does; BadAnswer where the answer is no page.
    """
    # 400 on a later page: the list became shorter than it was a page ago.
    understood = (200,) if number == 1 else (200, 400)
    wanted = {"columns": columns} if columns else {}
    answer = client.ask(path, {"page": number, "page_size": PAGE, **wanted}, understood)
    if answer.status == 400:
        return Page([], 0)
    items = answer.body.get("items") if isinstance(answer.body, dict) else None
    if not isinstance(items, list):
        raise BadAnswer(f"{client.address.where}{client.address.path}{path}: page {number} holds no list of items")
    last = answer.body.get("page_count")
    return Page(items, last if isinstance(last, int) else 0)


def totals(client: ManagementClient) -> Iterator[Any]:
    """All queues with their totals only: about a tenth of what all their statistics cost the broker.

    They are decoded as they are taken, so that those of 100,000 queues are not all in memory at once.

    Raises:
        BrokerError: as the client does, that it is not JSON perhaps only after some items; BadAnswer where the answer
            is no list.
    """
    body = client.each(QUEUES, {"disable_stats": "true", "enable_queue_totals": "true"})
    if body is None:
        raise BadAnswer(f"{client.address.where}{client.address.path}{QUEUES}: no list of queues")
    return body


def queue(client: ManagementClient, vhost: str, name: str) -> dict[str, Any] | None:
    """One queue with all its statistics; None where it is gone.

    Raises:
        BrokerError: as the client does; BadAnswer where the answer is no object.
    """
    path = f"{QUEUES}/{quote(vhost, safe='')}/{quote(name, safe='')}"
    answer = client.ask(path, understood=(200, 404))
    if answer.status == 404:
        return None
    if not isinstance(answer.body, dict):
        raise BadAnswer(f"{client.address.where}{client.address.path}{path}: no queue")
    return answer.body


PLUGINS = frozenset({"/api/shovels", "/api/federation-links"})
"""What only brokers with a plugin of its own have: all of it may be missing."""


def several(client: ManagementClient, paths: Sequence[str]) -> dict[str, Any]:
    """Path -> answer; a path that the broker does not have (404: a plugin that is off, an older version) is left out.

    One that is for administrators only has {"error": why} in its place: the tag `monitoring` is enough for the rest.

    Raises:
        BrokerError: one of them could not be read: what the others say would look like all there is.
    """
    answers: dict[str, Any] = {}
    for path in paths:
        try:
            answer = client.ask(path, understood=(200, 404))
        except ForAdministrators as error:
            answers[path] = {"error": str(error)}
            continue
        if answer.status == 200:
            answers[path] = answer.body
    if not answers and not PLUGINS.issuperset(paths):
        # Every version has at least one of them: this is no broker. Asked again, so that it is told as elsewhere.
        client.get(paths[0])
    return answers


def by_node(client: ManagementClient, path: str, nodes: Sequence[str]) -> dict[str, Any]:
    """Node -> answer, for a path with `{node}` in it; a node that the broker does not know (404) is left out.

    A node that could not be asked has {"error": why} in its place: one that hangs must not hide the others.

    Raises:
        BrokerError: no node at all could be asked, or none is known.
    """
    if not nodes:
        where = f"{client.address.where}{client.address.path}"
        raise Unreachable(f"{where}{path}: no running node is known to ask about; see why /api/nodes cannot be read")
    answers: dict[str, Any] = {}
    failure: BrokerError | None = None
    for node in nodes:
        try:
            answer = client.ask(path.replace("{node}", quote(node, safe="")), understood=(200, 404))
        except BrokerError as error:
            answers[node] = {"error": str(error)}
            failure = error
            continue
        if answer.status == 200:
            answers[node] = answer.body
    if failure is not None and all(isinstance(answer, dict) and "error" in answer for answer in answers.values()):
        raise failure
    return answers
