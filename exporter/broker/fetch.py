"""How a family's payload is got: one answer, page by page, or one check after the other."""

from typing import Any

from ackscope.errors import BadAnswer, BrokerError, Unreachable
from exporter.broker.client import ManagementClient
from exporter.broker.fields import Version
from exporter.broker.health import checks_of

PAGE = 500
"""The most objects that the API puts on a page (`rabbit_mgmt_util`)."""

MOST_PAGES = 2000
"""A million queues: more than a broker holds, and a bound for a server that never comes to an end."""


def one(client: ManagementClient, path: str) -> Any:
    """The answer of one request."""
    return client.get(path)


def pages(client: ManagementClient, path: str) -> list[Any]:
    """All objects of a list, page by page: each request costs the broker little, however many there are.

    The pages are not one moment: an object may be on two of them, or slip through where others go in between.

    Raises:
        BrokerError: as the client does; BadAnswer where a page is not one.
    """
    found: list[Any] = []
    for page in range(1, MOST_PAGES + 1):
        # 400 on a later page: the list became shorter than it was a page ago.
        understood = (200,) if page == 1 else (200, 400)
        answer = client.ask(path, {"page": page, "page_size": PAGE}, understood)
        if answer.status == 400:
            return found
        items = answer.body.get("items") if isinstance(answer.body, dict) else None
        if not isinstance(items, list):
            raise BadAnswer(f"{client.address.where}{client.address.path}{path}: page {page} holds no list of items")
        found += items
        last = answer.body.get("page_count")
        if not items or not isinstance(last, int) or page >= last:
            return found
    raise BadAnswer(f"{client.address.where}{client.address.path}{path}: more than {MOST_PAGES} pages; not read on")


class HealthFetcher:
    """Asks the checks that the version at hand has, and remembers those that it turned out not to have."""

    def __init__(self) -> None:
        self._lacking: set[str] = set()
        self._version: Version | None = None

    def fetch(self, client: ManagementClient, path: str, version: Version | None) -> dict[str, Any]:
        """Check name -> {"status", "body"} or {"error"}.

        Raises:
            BrokerError: the node cannot be reached, or no check at all could be asked.
        """
        if version != self._version:
            self._version, self._lacking = version, set()
        lacking = set(self._lacking)
        answers: dict[str, Any] = {}
        failure: BrokerError | None = None
        for check in checks_of(version):
            if check.name in lacking:
                continue
            try:
                answer = client.ask(f"{path}/{check.path}", understood=(200, 404, 503))
            except Unreachable:
                raise
            except BrokerError as error:
                answers[check.name] = {"error": str(error)}
                failure = error
                continue
            if answer.status == 404:
                lacking.add(check.name)
            else:
                answers[check.name] = {"status": answer.status, "body": answer.body}
        if not any("status" in answer for answer in answers.values()):
            raise failure or BadAnswer(
                f"{client.address.where}{client.address.path}{path}: 404 to every health check; "
                "is this the management API of RabbitMQ 3.8 or later, and the path prefix of the address right?"
            )
        self._lacking = lacking
        return answers
