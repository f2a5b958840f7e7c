import threading
from http import HTTPStatus

import bcrypt
import pytest
import requests

from exporter.web import connections, users
from exporter.web.config import WebConfig
from exporter.web.http import Lane, Response, Route
from tests.unit.exporter.made import eventually
from tests.unit.exporter.web.raw import SECONDS, answered, connect, exchange, serving

HASH = bcrypt.hashpw(b"secret", bcrypt.gensalt(4)).decode()


def asked(server, *headers):
    """Status and text of a request with these headers."""
    lines = b"".join(header.encode() + b"\r\n" for header in headers)
    answer = exchange(server, b"GET /short HTTP/1.1\r\n" + lines + b"\r\n")
    return int(answer.split()[1]), answer.rpartition(b"\r\n\r\n")[2].decode()


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1:9419", "127.1.2.3", "[::1]:9419", "x", "X:1"])
def test_loopback_answers_under_its_own_names(host):
    """And under those of `allowed_hosts`, with any port, because ports are forwarded."""
    with serving() as server:
        assert 200 == asked(server, f"Host: {host}")[0]


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:9419", "127.0.0.1.evil.example", "10.0.0.1", "", "[", "a:b:c"]
)
def test_loopback_answers_under_no_other_name(host):
    """As a page does that has its name resolved to 127.0.0.1 for the browser (DNS rebinding)."""
    with serving() as server:
        status, text = asked(server, f"Host: {host}")

    assert (421, f"host {host!r} is not served on loopback; add it to allowed_hosts if it should be\n") == (
        status,
        text,
    )


def test_scripts_of_other_sites_are_not_answered_on_loopback():
    """They could not read the answer, but would learn from its time and length."""
    with serving() as server:
        assert (403, "scripts of other sites are not answered\n") == asked(server, "Host: x", "Origin: http://evil")
        assert 200 == asked(server, "Host: x", "Origin: http://x")[0]


def test_a_port_that_is_not_only_on_loopback_answers_under_any_name():
    """Its names are not known to the exporter."""
    with serving(host="0.0.0.0") as server:
        assert 200 == asked(server, "Host: metrics.example")[0]


@pytest.fixture
def slow_hash(monkeypatch):
    """Hashes take until the event is set; counts them."""
    go_on, hashed = threading.Event(), []

    def check(password, _):
        hashed.append(password)
        assert go_on.wait(SECONDS)
        return password == b"secret"

    monkeypatch.setattr(users.bcrypt, "checkpw", check)
    return go_on, hashed


def test_passwords_are_hashed_one_at_a_time_and_the_next_one_is_turned_away(tmp_path, slow_hash):
    """At once, with 429. The same password waits for the same hash; one that is known waits for none."""
    go_on, hashed = slow_hash
    (tmp_path / "web.yml").write_text(f"basic_auth_users: {{ann: {HASH}}}")
    statuses = []

    def get(password):
        statuses.append(requests.get(f"{server.url}/short", auth=("ann", password), timeout=SECONDS).status_code)

    with serving(web=WebConfig(tmp_path / "web.yml")) as server:
        go_on.set()
        get("secret")
        go_on.clear()
        first = threading.Thread(target=get, args=("guess",))
        first.start()
        eventually(lambda: hashed == [b"secret", b"guess"])
        other = requests.get(f"{server.url}/short", auth=("ann", "other guess"), timeout=SECONDS)
        get("secret")
        go_on.set()
        first.join()

    assert (429, "1") == (other.status_code, other.headers["Retry-After"])
    assert [200, 200, 401] == statuses
    assert [b"secret", b"guess"] == hashed


def test_two_requests_of_one_login_share_its_hash(tmp_path, slow_hash):
    """As browsers send them."""
    go_on, hashed = slow_hash
    (tmp_path / "web.yml").write_text(f"basic_auth_users: {{ann: {HASH}}}")
    statuses = []

    def get():
        statuses.append(requests.get(f"{server.url}/short", auth=("ann", "secret"), timeout=SECONDS).status_code)

    with serving(web=WebConfig(tmp_path / "web.yml")) as server:
        both = [threading.Thread(target=get) for _ in range(2)]
        for each in both:
            each.start()
        eventually(lambda: server.open_connections == 2 and hashed)
        go_on.set()
        for each in both:
            each.join()

    assert ([200, 200], [b"secret"]) == (statuses, hashed)


def test_what_is_dear_is_done_one_at_a_time_and_holds_up_nothing():
    """The next one gets a 429 at once; a scrape and another path are answered meanwhile."""
    began, go_on = threading.Event(), threading.Event()

    def pack(_request):
        began.set()
        assert go_on.wait(SECONDS)
        return Response(b"packed")

    routes = {
        "/bundle": Route("costly", pack, lane=Lane.EXCLUSIVE),
        "/other": Route("costly too", lambda _: Response(b"other"), lane=Lane.EXCLUSIVE),
        "/metrics": Route("scrape", lambda _: Response(b"scraped"), lane=Lane.SCRAPE),
        "/short": Route("api", lambda _: Response(b"short")),
    }
    with serving(routes) as server:
        packed = []
        first = threading.Thread(
            target=lambda: packed.append(requests.get(f"{server.url}/bundle", timeout=SECONDS).text)
        )
        first.start()
        assert began.wait(SECONDS)
        second = requests.get(f"{server.url}/bundle", timeout=SECONDS)
        texts = [requests.get(server.url + path, timeout=SECONDS).text for path in ("/metrics", "/short")]
        go_on.set()
        first.join()
        third = requests.get(f"{server.url}/bundle", timeout=SECONDS)

    assert (429, "5", "busy with other requests of this kind; retry in a few seconds\n") == (
        second.status_code,
        second.headers["Retry-After"],
        second.text,
    )
    assert (["scraped", "short"], ["packed"], 200) == (texts, packed, third.status_code)


@pytest.mark.parametrize("lane", [Lane.API, Lane.OUTWARD, Lane.EXCLUSIVE])
def test_a_scrape_waits_for_no_other_path(lane):
    """All threads of the other lanes are busy, and as many requests as there may be wait for them."""
    go_on = threading.Event()

    def slow(_request):
        assert go_on.wait(SECONDS)
        return Response(b"slow")

    routes = {
        "/slow": Route("slow", slow, lane=lane),
        "/metrics": Route("scrape", lambda _: Response(b"scraped"), lane=Lane.SCRAPE),
        "/-/healthy": Route("health", lambda _: Response(b"alive"), lane=Lane.NOW),
    }
    with serving(routes) as server:
        clients = [threading.Thread(target=exchange, args=(server, b"GET /slow HTTP/1.0\r\n\r\n")) for _ in range(70)]
        for client in clients:
            client.start()
        texts = [requests.get(server.url + path, timeout=SECONDS).text for path in ("/metrics", "/-/healthy")]
        go_on.set()
        for client in clients:
            client.join()

    assert ["scraped", "alive"] == texts


def test_a_client_that_is_turned_away_waits_before_its_next_request(monkeypatch):
    """It is reported at once, but the next request of its connection is read later; other clients are answered."""
    monkeypatch.setattr(connections, "BUSY_SECONDS", 3600.0)
    routes = {
        "/busy": Route("busy", lambda _: Response(b"busy", status=HTTPStatus.TOO_MANY_REQUESTS)),
        "/short": Route("short", lambda _: Response(b"short")),
    }
    with serving(routes) as server, connect(server) as client:
        client.sendall(b"GET /busy HTTP/1.1\r\nHost: x\r\n\r\nGET /short HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"busy" == answered(client)
        assert b"short" == requests.get(f"{server.url}/short", timeout=SECONDS).content
        client.setblocking(False)

        with pytest.raises(BlockingIOError):
            client.recv(1)
