"""Client certificates, for brokers that require one."""

import ssl
import subprocess

import pytest

from ackscope.errors import ConfigError, Unreachable
from exporter.broker.client import ManagementClient
from exporter.broker.settings import ManagementSettings
from tests.unit.exporter.broker.server import json, serve

PATH = "/api/overview"


def make(folder, name, *, passphrase=None):
    """A self-signed certificate for 127.0.0.1: (certificate file, key file)."""
    files = (folder / f"{name}.pem", folder / f"{name}.key")
    kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-days", "2"]
    kind += ["-nodes"] if passphrase is None else ["-passout", f"pass:{passphrase}"]
    whom = ["-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1"]
    command = ["openssl", "req", "-x509", *kind, *whom, "-out", str(files[0]), "-keyout", str(files[1])]
    subprocess.run(command, check=True, capture_output=True)
    return files


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """Name -> (certificate file, key file); the server trusts "ours" and not "foreign"."""
    folder = tmp_path_factory.mktemp("tls")
    made = {name: make(folder, name) for name in ("server", "ours", "foreign")}
    made["locked"] = make(folder, "locked", passphrase="s3cret")
    return made


def let_in(certificates, newest):
    """A server that requires a certificate that it trusts, with a maximum TLS version."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificates["server"])
    context.load_verify_locations(certificates["ours"][0])
    context.verify_mode = ssl.CERT_REQUIRED
    context.maximum_version = newest
    with serve({PATH: json({"tls": True})}) as running:
        running._http.socket = context.wrap_socket(
            running._http.socket, server_side=True, do_handshake_on_connect=False
        )
        yield running


@pytest.fixture
def server(certificates):
    """A TLS 1.3 server."""
    yield from let_in(certificates, ssl.TLSVersion.TLSv1_3)


@pytest.fixture
def older(certificates):
    """A TLS 1.2 server, whose alert always arrives before it closes."""
    yield from let_in(certificates, ssl.TLSVersion.TLSv1_2)


def settings(server, certificates, **files):
    """Settings that trust the server."""
    return ManagementSettings(url=f"https://{server.where}", ca_file=certificates["server"][0], **files)


def test_the_client_certificate_is_sent(server, certificates):
    """With its key in a separate file."""
    cert, key = certificates["ours"]
    client = ManagementClient(settings(server, certificates, cert_file=cert, key_file=key))
    answer = client.get(PATH)
    client.close()

    assert {"tls": True} == answer


def test_certificate_and_key_may_be_in_one_file(server, certificates, tmp_path):
    """As many tools write them."""
    both = tmp_path / "both.pem"
    both.write_bytes(b"".join(file.read_bytes() for file in certificates["ours"]))
    client = ManagementClient(settings(server, certificates, cert_file=both))
    answer = client.get(PATH)
    client.close()

    assert {"tls": True} == answer


@pytest.mark.parametrize(("name", "alert"), [(None, "handshake failure"), ("foreign", "unknown ca")])
def test_a_missing_or_untrusted_client_certificate_is_reported(older, certificates, name, alert):
    """The error names the settings that help."""
    files = dict(zip(("cert_file", "key_file"), certificates[name], strict=True)) if name else {}
    client = ManagementClient(settings(older, certificates, **files))
    with pytest.raises(Unreachable) as caught:
        client.get(PATH)
    client.close()

    assert f"{older.where}{PATH}: the node requires a client certificate, or does not trust ours (" in str(caught.value)
    assert str(caught.value).endswith(f"{alert}); set cert_file and key_file to one that it trusts")


@pytest.mark.parametrize("name", [None, "foreign"])
def test_with_tls_1_3_the_settings_are_named_too(server, certificates, name):
    """The alert may be lost because the server closes immediately; the error then names all possible causes."""
    files = dict(zip(("cert_file", "key_file"), certificates[name], strict=True)) if name else {}
    client = ManagementClient(settings(server, certificates, **files))
    with pytest.raises(Unreachable) as caught:
        client.get(PATH)
    client.close()

    assert "cert_file and key_file" in str(caught.value)


@pytest.mark.parametrize(
    ("cert", "key", "text"),
    [
        ("absent", None, "cert_file: {absent} cannot be read (No such file or directory); check its path and owner"),
        ("ours", "absent", "key_file: {absent} cannot be read (No such file or directory); check its path and owner"),
        (
            "ours",
            None,
            (
                "cert_file: no PEM certificate with its key in {ours}; "
                "provide both, the key without a passphrase (its file as key_file)"
            ),
        ),
        (
            "locked",
            "locked",
            (
                "cert_file: no PEM certificate with its key in {locked} and {locked_key}; "
                "provide both, the key without a passphrase (its file as key_file)"
            ),
        ),
        ("ours", "foreign", "key_file: {foreign_key} is not the key of {ours}"),
    ],
    ids=["no-certificate", "no-key", "no-key-file", "passphrase", "another-key"],
)
def test_unusable_files_are_reported_at_the_start(certificates, tmp_path, cert, key, text):
    """The setting and the file are named before any request."""
    absent = tmp_path / "absent.pem"
    names = {name: files[0] for name, files in certificates.items()}
    keys = {f"{name}_key": files[1] for name, files in certificates.items()}
    files = {"cert_file": {**names, "absent": absent}[cert]}
    if key is not None:
        files["key_file"] = absent if key == "absent" else keys[f"{key}_key"]

    with pytest.raises(ConfigError) as caught:
        ManagementClient(ManagementSettings(url="https://mq", **files), "clusters.shop.management")

    assert f"clusters.shop.management.{text.format(**names, **keys, absent=absent)}" == str(caught.value)
