"""Authentication at a real broker: client certificates, and tokens of an OAuth 2 server."""

import base64
import hashlib
import hmac
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import orjson
import pytest

from ackscope.clock import SystemClock
from ackscope.errors import Refused, Unreachable
from exporter.broker.client import ManagementClient
from exporter.broker.settings import ManagementSettings
from exporter.broker.snapshot_builder import read_once
from lab.cluster import Lab, start_lab
from lab.node import Extra
from lab.ports import free_ports
from tests.unit.exporter.broker.server import json, serve

pytestmark = [pytest.mark.integration, pytest.mark.slow]

KEY = b"a key that the broker and its token server share"
MONITOR = ("rabbitmq.tag:monitoring", "rabbitmq.read:*/*")


class Guarded(NamedTuple):
    """A broker whose management API requires certificates on one port, and accepts tokens on all."""

    lab: Lab
    tls: str
    files: dict[str, Path]


def encoded(data: bytes) -> str:
    """Base64 as in a token."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def token(*scopes: str, life: float = 60.0) -> str:
    """A token (JWT, HS256) that the broker trusts."""
    head = {"alg": "HS256", "typ": "JWT", "kid": "shared"}
    body = {"aud": ["rabbitmq"], "sub": "monitor", "scope": list(scopes), "exp": int(time.time() + life)}
    text = ".".join(encoded(orjson.dumps(part)) for part in (head, body))
    return f"{text}.{encoded(hmac.new(KEY, text.encode(), hashlib.sha256).digest())}"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """One node of the newest version."""
    folder = tmp_path_factory.mktemp("tls")
    files = {name: folder / f"{name}.pem" for name in ("server", "server-key", "ca", "ca-key", "ours", "ours-key")}
    for name in ("server", "ca", "ours"):
        kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "10"]
        whom = ["-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1"]
        if name == "ours":
            # Erlang rejects self-signed client certificates.
            kind += ["-CA", str(files["ca"]), "-CAkey", str(files["ca-key"])]
            whom += ["-addext", "basicConstraints=CA:FALSE"]
        made = ["-out", str(files[name]), "-keyout", str(files[f"{name}-key"])]
        subprocess.run(["openssl", "req", "-x509", *kind, *whom, *made], check=True, capture_output=True)
    (port,) = free_ports(1)
    lines = (
        "management.ssl.ip = 127.0.0.1",
        f"management.ssl.port = {port}",
        "management.ssl.certfile = {folder}/server.pem",
        "management.ssl.keyfile = {folder}/server-key.pem",
        "management.ssl.cacertfile = {folder}/ca.pem",
        "management.ssl.verify = verify_peer",
        "management.ssl.fail_if_no_peer_cert = true",
        "auth_backends.1 = internal",
        "auth_backends.2 = oauth2",
        "auth_oauth2.resource_server_id = rabbitmq",
    )
    secret = f'#{{<<"kty">> => <<"oct">>, <<"alg">> => <<"HS256">>, <<"k">> => <<"{encoded(KEY)}">>}}'
    keys = f'[{{default_key, <<"shared">>}}, {{signing_keys, #{{<<"shared">> => {{map, {secret}}}}}}}]'
    advanced = f"[{{rabbitmq_auth_backend_oauth2, [{{key_config, {keys}}}]}}].\n"
    extra = Extra(
        plugins=("rabbitmq_auth_backend_oauth2",),
        config="".join(f"{line}\n" for line in lines),
        files={
            **{file.name: file.read_bytes() for file in files.values()},
            "advanced.config": advanced.encode(),
        },
    )
    with start_lab("4.3", extra=extra) as lab:
        yield Guarded(lab, f"https://guest:guest@127.0.0.1:{port}", files)


def test_a_broker_that_requires_a_certificate_is_read(guarded):
    """Every family, over TLS, with our certificate."""
    files = guarded.files
    settings = ManagementSettings(
        url=guarded.tls, ca_file=files["server"], cert_file=files["ours"], key_file=files["ours-key"]
    )

    snapshot = read_once("lab", settings, SystemClock(), 20)

    assert {} == {name: part.error for name, part in snapshot.parts.items() if part.error}
    assert guarded.lab.broker == snapshot.overview.value.rabbitmq_version


def test_a_missing_client_certificate_is_reported(guarded):
    """With the settings that help."""
    client = ManagementClient(ManagementSettings(url=guarded.tls, ca_file=guarded.files["server"]))
    with pytest.raises(Unreachable) as caught:
        client.get("/api/overview")
    client.close()

    assert "cert_file and key_file" in str(caught.value)


def test_tokens_are_requested_and_accepted(guarded):
    """One token per reader, with a scope that is enough to see everything."""
    where = guarded.lab.nodes[0].management.partition("@")[2]
    requests = []

    def grant(request):
        requests.append(request.rfile.read(int(request.headers["Content-Length"])))
        json({"access_token": token(*MONITOR), "token_type": "bearer", "expires_in": 60})(request)

    with serve({"/token": grant}) as server:
        oauth2 = {"token_url": f"http://{server.where}/token", "client_id": "monitor", "client_secret": "s3cret"}
        snapshot = read_once("lab", ManagementSettings(url=f"http://{where}", oauth2=oauth2), SystemClock(), 20)

    assert {} == {name: part.error for name, part in snapshot.parts.items() if part.error}
    assert guarded.lab.broker == snapshot.overview.value.rabbitmq_version
    assert requests


@pytest.mark.parametrize(
    ("scopes", "life"), [(MONITOR, -60.0), (("rabbitmq.read:*/*",), 60.0)], ids=["ended", "without-the-tag"]
)
def test_an_unusable_token_is_reported_in_one_line(guarded, scopes, life):
    """An expired one, and one without the tag `monitoring`."""
    where = guarded.lab.nodes[0].management.partition("@")[2]
    client = ManagementClient(ManagementSettings(url=f"http://{where}", token=token(*scopes, life=life)))
    with pytest.raises(Refused) as caught:
        client.get("/api/overview")
    client.close()

    assert f"{where}/api/overview: 401 the token is refused" in str(caught.value)
    assert str(caught.value).endswith("a scope such as rabbitmq.tag:monitoring")
