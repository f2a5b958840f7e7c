import base64
import logging
import ssl
import threading

import bcrypt
import pytest
import requests

from exporter.web import connections
from exporter.web import server as server_module
from exporter.web.config import WebConfig
from tests.unit.exporter.made import SetClock, eventually
from tests.unit.exporter.web.certificates import make
from tests.unit.exporter.web.raw import HUGE, connect, rest, serving

HASH, OTHER = (bcrypt.hashpw(word, bcrypt.gensalt(4)).decode() for word in (b"secret", b"other"))
TLS = "cert_file: server.pem, key_file: server.key"
CLIENTS = f"{TLS}, client_ca_file: ca.pem, client_auth_type"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with a CA, its server and client certificates, and a foreign certificate."""
    folder = tmp_path_factory.mktemp("web")
    make(folder, "ca")
    make(folder, "server", issuer="ca")
    make(folder, "client", "DNS:prometheus.shop,URI:spiffe://shop/p,IP:2001:db8::1", issuer="ca")
    make(folder, "stranger")
    return folder


@pytest.fixture
def serve(folder):
    """Serves with a configuration of this text."""

    def start(text, **chunks):
        (folder / "web.yml").write_text(text)
        return serving(web=WebConfig(folder / "web.yml", **chunks))

    return start


def get(server, folder, **chunks):
    """A request that trusts the authority; of a client where it has a certificate."""
    return requests.get(f"{server.url}/short", verify=str(folder / "ca.pem"), timeout=10, **chunks)


def cert(folder, name):
    """A client's certificate and key."""
    return (str(folder / f"{name}.pem"), str(folder / f"{name}.key"))


def spoken(server, folder, **changes):
    """Version and suite that a client of these limits, and of all suites, agrees on."""
    context = ssl.create_default_context(cafile=folder / "ca.pem")
    context.set_ciphers("ALL")
    for name, value in changes.items():
        setattr(context, name, value)
    with connect(server) as plain, context.wrap_socket(plain, server_hostname="127.0.0.1") as sock:
        return sock.version(), sock.cipher()[0]


def test_tls(serve, folder):
    """The address has https, the certificate is that of the file, and the answer is the same."""
    with serve(f"tls_server_config: {{{TLS}}}") as server:
        assert server.url.startswith("https://127.0.0.1:")
        assert b"{}" == get(server, folder).content
        assert "TLSv1.3" == spoken(server, folder)[0]


def test_a_client_that_speaks_no_tls_is_no_error(serve, folder, caplog):
    """This covers a client with another protocol, and one that closes without sending."""
    with serve(f"tls_server_config: {{{TLS}}}") as server, caplog.at_level(logging.WARNING):
        with connect(server) as client:
            client.sendall(b"GET /short HTTP/1.1\r\nHost: x\r\n\r\n")
            assert not rest(client).startswith(b"HTTP")
        connect(server).close()
        eventually(lambda: server.open_connections == 0)

        assert 200 == get(server, folder).status_code
    assert "" == caplog.text


def test_a_handshake_that_does_not_go_on_is_cut_off(serve, monkeypatch):
    """Its thread is released, and it blocks no other client, because each connection has its own thread."""
    monkeypatch.setattr(server_module, "REQUEST_SECONDS", 0.2)
    with serve(f"tls_server_config: {{{TLS}}}") as server, connect(server) as client:
        client.sendall(b"\x16\x03\x01")

        assert b"" == rest(client)
        eventually(lambda: server.open_connections == 0)


def test_a_client_that_reads_slowly_is_cut_off(serve, folder, monkeypatch):
    """It reads a little all the time, but the deadline is for the whole answer."""
    monkeypatch.setattr(connections, "SEND_SECONDS", 0.5)
    context = ssl.create_default_context(cafile=folder / "ca.pem")
    with serve(f"tls_server_config: {{{TLS}}}") as server, connect(server) as plain:
        client = context.wrap_socket(plain, server_hostname="127.0.0.1")
        with client:
            client.sendall(b"GET /huge HTTP/1.1\r\nHost: x\r\n\r\n")
            taken, pause = 0, threading.Event()
            eventually(lambda: server.open_connections == 1)
            while server.open_connections == 1:
                taken += len(client.recv(1 << 14))
                assert taken < len(HUGE)
                pause.wait(0.01)


@pytest.mark.parametrize(
    ("settings", "version", "suites"),
    [
        ("max_version: TLS12", "TLSv1.2", "ECDHE-ECDSA-"),
        ("min_version: TLS13", "TLSv1.3", "TLS_"),
        (
            "max_version: TLS12, cipher_suites: [TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256]",
            "TLSv1.2",
            "ECDHE-ECDSA-CHACHA20-POLY1305",
        ),
        (
            "max_version: TLS12, cipher_suites: [TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA]",
            "TLSv1.2",
            "ECDHE-ECDSA-AES128-SHA",
        ),
    ],
)
def test_version_and_suite_are_those_of_the_file(serve, folder, settings, version, suites):
    """As the handshake of a client shows."""
    with serve(f"tls_server_config: {{{TLS}, {settings}}}") as server:
        seen = spoken(server, folder)

    assert (version, True) == (seen[0], seen[1].startswith(suites))


def test_a_client_that_is_too_old_is_refused(serve, folder):
    """It supports at most TLS 1.2, the server requires 1.3."""
    with serve(f"tls_server_config: {{{TLS}, min_version: TLS13}}") as server, pytest.raises(ssl.SSLError):
        spoken(server, folder, maximum_version=ssl.TLSVersion.TLSv1_2)


@pytest.mark.parametrize(
    ("wanted", "refused"), [("prefer_server_cipher_suites: true", 0), ("prefer_server_cipher_suites: false", 1)]
)
def test_whose_order_of_suites_counts(serve, folder, wanted, refused):
    """Ours, or the client's."""
    go = ("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256")
    suites = ("ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-ECDSA-AES128-GCM-SHA256")
    context = ssl.create_default_context(cafile=folder / "ca.pem")
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(":".join(reversed(suites)))
    text = f"tls_server_config: {{{TLS}, cipher_suites: [{', '.join(go)}], {wanted}}}"
    with serve(text) as server, connect(server) as plain:
        seen = context.wrap_socket(plain, server_hostname="127.0.0.1")
        with seen:
            assert suites[refused] == seen.cipher()[0]


@pytest.mark.parametrize(("curve", "ok"), [("secp384r1", True), ("prime256v1", False)])
def test_only_the_curve_of_the_file_is_agreed_on(serve, folder, curve, ok):
    """A client with other curves cannot connect."""
    context = ssl.create_default_context(cafile=folder / "ca.pem")
    context.set_ecdh_curve(curve)
    with serve(f"tls_server_config: {{{TLS}, curve_preferences: [CurveP384]}}") as server, connect(server) as plain:
        try:
            context.wrap_socket(plain, server_hostname="127.0.0.1").close()
            agreed = True
        except OSError:
            agreed = False

    assert ok == agreed


@pytest.mark.parametrize(
    ("kind", "nobody", "stranger"),
    [("VerifyClientCertIfGiven", True, False), ("RequireAndVerifyClientCert", False, False)],
)
def test_certificates_of_clients(serve, folder, kind, nobody, stranger):
    """A certificate of the CA is accepted, others never are; no certificate is accepted if none is required."""

    def answered(**chunks):
        try:
            return get(server, folder, **chunks).status_code == 200
        except (requests.ConnectionError, ssl.SSLError):
            return False

    with serve(f"tls_server_config: {{{CLIENTS}: {kind}}}") as server:
        assert answered(cert=cert(folder, "client"))
        assert (nobody, stranger) == (answered(), answered(cert=cert(folder, "stranger")))


@pytest.mark.parametrize(
    ("allowed", "ok"),
    [
        ("prometheus.shop", True),
        ("spiffe://shop/p", True),
        ("'2001:DB8:0::1'", True),
        ("other, prometheus.shop", True),
        ("prometheus", False),
        ("'*.shop'", False),
    ],
)
def test_names_of_clients(serve, folder, allowed, ok):
    """One name of any kind must match exactly."""
    text = f"tls_server_config: {{{CLIENTS}: RequireAndVerifyClientCert, client_allowed_sans: [{allowed}]}}"
    with serve(text) as server:
        try:
            status = get(server, folder, cert=cert(folder, "client")).status_code
        except requests.ConnectionError:
            status = None

    assert (200 if ok else None) == status


def test_basic_auth_stands_before_every_path(serve):
    """Those for health too; nothing shows a wrong path from a right one."""
    with serve(f"basic_auth_users: {{ann: {HASH}}}") as server:
        nobody = [requests.get(server.url + path, timeout=10) for path in ("/short", "/none")]
        wrong = requests.get(f"{server.url}/short", auth=("ann", "other"), timeout=10)
        ann = requests.get(f"{server.url}/short", auth=("ann", "secret"), timeout=10)

    assert ([401, 401], 401, 200) == ([it.status_code for it in nobody], wrong.status_code, ann.status_code)
    assert 'Basic realm="ackscope", charset="UTF-8"' == wrong.headers["WWW-Authenticate"]
    assert b"unauthorized\n" == nobody[1].content


def test_headers_of_the_file_replace_ours(serve):
    """An empty one takes ours away; the others stay."""
    changed = "X-Frame-Options: sameorigin, Content-Security-Policy: '', X-XSS-Protection: '0'"
    with serve(f"http_server_config: {{headers: {{{changed}}}}}") as server:
        headers = requests.get(f"{server.url}/short", timeout=10).headers

    assert ("sameorigin", "0") == (headers["X-Frame-Options"], headers["X-XSS-Protection"])
    assert "Content-Security-Policy" not in headers
    assert "nosniff" == headers["X-Content-Type-Options"]


def test_more_requests_than_the_rate_are_turned_away(serve):
    """The answer is 429 until the interval is over, for all clients together."""
    clock = SetClock()
    with serve(f"rate_limit: {{interval: 10s, burst: 2}}\nbasic_auth_users: {{ann: {HASH}}}", clock=clock) as server:
        seen = [requests.get(server.url, timeout=10).status_code for _ in range(3)]
        clock.mono += 10
        after = requests.get(server.url, auth=("ann", "secret"), timeout=10).status_code

    assert ([401, 401, 429], 200) == (seen, after)


def test_a_new_certificate_is_shown_to_the_next_connection(tmp_path):
    """A renewal replaces the file without a notification."""
    make(tmp_path, "ca")
    make(tmp_path, "server", issuer="ca")
    (tmp_path / "web.yml").write_text(f"tls_server_config: {{{TLS}}}")
    with serving(web=WebConfig(tmp_path / "web.yml")) as server:
        before = shown(server)
        make(tmp_path, "new", issuer="ca")
        for kind in ("pem", "key"):
            (tmp_path / f"new.{kind}").replace(tmp_path / f"server.{kind}")
        after = shown(server)

    assert before != after
    assert after.strip() == (tmp_path / "server.pem").read_text().strip()


def test_new_users_count_from_the_next_request(tmp_path):
    """On an open connection too; a password that is no longer right is not remembered as right."""
    path = tmp_path / "web.yml"
    path.write_text(f"basic_auth_users: {{ann: {HASH}}}")
    with serving(web=WebConfig(path)) as server, requests.Session() as session:
        session.auth = ("ann", "secret")
        before = session.get(server.url, timeout=10).status_code
        write_anew(path, f"basic_auth_users: {{ann: {OTHER}}}")
        after = session.get(server.url, timeout=10).status_code

    assert (200, 401) == (before, after)


def test_a_wrong_new_file_is_reported_once_and_the_one_before_stays(tmp_path, caplog):
    """It stays until the file is valid. The file is checked again, because the error may be in another file."""
    clock, path = SetClock(), tmp_path / "web.yml"
    path.write_text(f"basic_auth_users: {{ann: {HASH}}}")
    web = WebConfig(path, clock)
    ann = {"authorization": "Basic " + base64.b64encode(b"ann:secret").decode()}
    with caplog.at_level(logging.WARNING):
        write_anew(path, "basic_auth_users: {ann: secret}")
        during = [web.refuse(ann) for _ in range(3)]
        clock.mono += 60
        web.refuse(ann)
        logged = len(caplog.records)
        write_anew(path, f"basic_auth_users: {{ann: {OTHER}}}")
        after = web.refuse(ann)

    problem = "the password of 'ann' is not a bcrypt hash; create one with: htpasswd -nBC 10 ann"

    assert ([None] * 3, 401) == (during, after.status)
    assert 1 == logged == len(caplog.records)
    assert (str(path), f"basic_auth_users: {problem}") == (
        caplog.records[0].msg["file"],
        caplog.records[0].msg["error"],
    )


def test_tls_does_not_end_while_it_runs(tmp_path, caplog):
    """A missing or truncated file must not switch to plain HTTP, which would expose passwords."""
    make(tmp_path, "server")
    path = tmp_path / "web.yml"
    path.write_text(f"tls_server_config: {{{TLS}}}")
    web = WebConfig(path)
    with caplog.at_level(logging.WARNING):
        write_anew(path, "")
        web.refuse({})
        path.unlink()
        web.refuse({})

    problems = [
        "TLS can only be turned on or off with a restart",
        "cannot be read (No such file or directory); give an existing file",
    ]

    assert web.tls
    assert problems == [record.msg["error"] for record in caplog.records]


def shown(server):
    """The certificate that the next connection gets."""
    return ssl.get_server_certificate(("127.0.0.1", int(server.url.rpartition(":")[2])))


def write_anew(path, text):
    """Replace a file by a new one, as editors do."""
    beside = path.with_suffix(".new")
    beside.write_text(text)
    beside.replace(path)


def test_without_a_file_there_is_nothing_in_the_way():
    """Plain, for everybody."""
    web = WebConfig()

    assert (False, None, {}) == (web.tls, web.refuse({}), web.headers)
    assert (None, True, False) == (web.context(), web.admits(None), web.must_hash("Basic eDp5"))
