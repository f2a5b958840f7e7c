import threading
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus

import pytest

from ackscope.clock import SystemClock
from ackscope.snapshot import FAMILIES
from exporter.exposition.settings import MetricsSettings
from exporter.targets.page import TargetPage, reading_timeout
from exporter.targets.settings import ModuleSettings
from exporter.web.http import Request
from tests.unit.exporter.broker.server import VERSIONS, broker, json, serve
from tests.unit.exporter.made import promtool

PASSWORD = "s3cret"


def page(*servers, **changes):
    """A page with one module, `prod`, that may read these servers."""
    targets = tuple(server.where for server in servers) or ("host:15672",)
    module = ModuleSettings.model_validate({"targets": targets, "username": "guest", "password": PASSWORD, **changes})
    return TargetPage({"prod": module}, MetricsSettings(), SystemClock())


def ask(pages, headers=None, **query):
    """Status and text."""
    answer = pages.respond(Request(query, headers or {}))
    return answer.status, b"".join((answer.body, *answer.chunks)).decode()


@pytest.mark.parametrize("version", VERSIONS)
def test_a_broker_is_read_when_it_is_requested(version):
    """All families; its metrics are those of a cluster of that name; promtool has nothing against them."""
    with serve(broker(version)) as server:
        status, text = ask(page(server, families=FAMILIES), module="prod", target=server.where)

    assert (HTTPStatus.OK, "") == (status, promtool(text))
    assert "probe_success 1\n" in text
    assert f'rabbitmq_queue_messages{{cluster="{server.where}"' in text
    assert f'ackscope_poll_success{{cluster="{server.where}",family="queues"}} 1\n' in text


def test_only_what_the_module_names_is_read():
    """Families that others depend on are read too, and nothing else, to limit the cost for the broker."""
    with serve(broker("4.3.6")) as server:
        _, text = ask(page(server, families=["channels"]), module="prod", target=server.where)
        requested = {path.partition("?")[0] for path in server.seen}

    assert {"/api/overview", "/api/nodes", "/api/channels"} == requested
    assert "probe_success 1\n" in text
    assert 'family="queues"' not in text


def test_a_family_that_fails_is_reported_beside_the_others():
    """Part of the truth is shown as such."""
    with serve(broker("4.3.6")) as server:
        server.routes["/api/channels"] = json({"error": "no"}, 500)
        status, text = ask(page(server), module="prod", target=server.where)

    assert HTTPStatus.OK == status
    assert "probe_success 0\n" in text
    assert f'ackscope_poll_success{{cluster="{server.where}",family="channels"}} 0\n' in text
    assert f'ackscope_poll_success{{cluster="{server.where}",family="queues"}} 1\n' in text


def test_a_broker_that_is_away_is_an_answer():
    """The failure is reported as for every failed probe; there are no metrics of the broker."""
    status, text = ask(page(targets=["127.0.0.1:1"]), module="prod", target="127.0.0.1:1")

    assert HTTPStatus.OK == status
    assert "probe_success 0\n" in text
    assert "rabbitmq_" not in text


def test_a_broker_that_hangs_is_given_up_in_time():
    """Before the scraper does."""
    hang = threading.Event()
    with serve(broker("4.3.6")) as server:
        server.routes["/api/queues"] = lambda _: hang.wait(30)
        status, text = ask(
            page(server), {"x-prometheus-scrape-timeout-seconds": "1.5"}, module="prod", target=server.where
        )
        hang.set()

    assert HTTPStatus.OK == status
    assert f'ackscope_poll_success{{cluster="{server.where}",family="queues"}} 0\n' in text
    assert f'ackscope_poll_success{{cluster="{server.where}",family="nodes"}} 1\n' in text


def test_no_more_readings_at_once_than_the_module_has():
    """A further request is asked to retry later."""
    hang, requested = threading.Event(), threading.Event()
    with serve(broker("4.3.6")) as server, ThreadPoolExecutor(1) as beside:
        answer = server.routes["/api/nodes"]
        server.routes["/api/nodes"] = lambda request: (requested.set(), hang.wait(30), answer(request))
        pages = page(server, at_once=1)
        first = beside.submit(ask, pages, module="prod", target=server.where)
        requested.wait(10)
        second = ask(pages, module="prod", target=server.where)
        hang.set()
        first.result(20)
        third, _ = ask(pages, module="prod", target=server.where)

    expected = "module prod: limit of 1 concurrent reads reached; retry later\n"

    assert (HTTPStatus.TOO_MANY_REQUESTS, expected) == second
    assert HTTPStatus.OK == third


def test_one_token_is_good_for_many_readings_of_many_brokers():
    """The token server is asked once, not with every scrape."""
    with serve(broker("4.3.6")) as one, serve(broker("4.0.5")) as other:
        one.routes["/oauth/token"] = json({"access_token": "t1", "expires_in": 600})
        oauth2 = {"token_url": f"http://{one.where}/oauth/token", "client_id": "shop", "client_secret": PASSWORD}
        pages = page(one, other, username=None, password=None, oauth2=oauth2)
        texts = [ask(pages, module="prod", target=it.where)[1] for it in (one, other, one)]

    assert all("probe_success 1\n" in text for text in texts)
    assert 1 == one.seen.count("/oauth/token")


def test_what_is_not_allowed_is_never_requested():
    """No connection is made to an unlisted host, and the password is not sent."""
    with serve(broker("4.3.6")) as server:
        status, text = ask(page(targets=["elsewhere:15672"]), module="prod", target=server.where)

        assert [] == server.seen
    assert HTTPStatus.BAD_REQUEST == status
    assert text.startswith(f"target '{server.where}' is not allowed by this module")
    assert PASSWORD not in text


@pytest.mark.parametrize(
    ("modules", "query", "expected"),
    [
        (True, {"module": "prd"}, "module='prd' is not known, did you mean 'prod'?; known: prod\n"),
        (True, {"module": ""}, "module= is missing; known: prod\n"),
        (True, {"module": "prod"}, "target= is missing; use target=HOST:PORT\n"),
        (False, {"module": "prod"}, "module='prod' is unknown; no modules are configured\n"),
    ],
)
def test_what_is_not_known_is_refused_in_a_line(modules, query, expected):
    """With what is known."""
    pages = page() if modules else TargetPage({}, MetricsSettings(), SystemClock())

    assert (HTTPStatus.BAD_REQUEST, expected) == ask(pages, **query)


def test_a_scraper_of_openmetrics_gets_it():
    """With its end mark."""
    with serve(broker("4.3.6")) as server:
        headers = {"accept": "application/openmetrics-text; version=1.0.0"}
        _, text = ask(page(server), headers, module="prod", target=server.where)

    assert text.endswith("# EOF\n")


@pytest.mark.parametrize(
    ("header", "expected"),
    [(None, 9.5), ("10.000000", 9.5), ("0.2", 0.5), ("1e9", 60.0), ("soon", 9.5), ("nan", 9.5), ("-inf", 0.5)],
)
def test_how_long_a_reading_may_take(header, expected):
    """The limit is the scrape timeout minus the time to answer, within bounds for any header."""
    assert expected == reading_timeout(header)
