"""A real S3 server on loopback, for a `with` block: moto, which has conditional puts; and a relay before it."""

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import requests

from ackscope import object_path

BUCKET = "history"
SECRET = "s3cr3t-of-the-test"


@contextmanager
def s3_server(port: int = 0) -> Iterator[dict[str, str]]:
    """Start the server with one bucket; yield the environment of its clients."""
    port = port or free_port()
    url = f"http://127.0.0.1:{port}"
    process = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and process.poll() is None:
            with suppress(requests.RequestException):
                if requests.put(f"{url}/{BUCKET}", timeout=10).ok:
                    break
            time.sleep(0.1)
        else:
            raise RuntimeError("moto did not start; install it: pip install 'moto[server]'")
        yield {
            "AWS_ENDPOINT_URL": url,
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1",
        }
    finally:
        process.kill()
        process.wait()


class Relay:
    """A TCP relay to the server that can be cut: connections end, and new ones are refused."""

    def __init__(self, target: tuple[str, int]) -> None:
        self._target, self._is_cut, self._open = target, False, list[socket.socket]()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Take the bucket away."""
        self._is_cut = True
        for it in self._open:
            with suppress(OSError):
                it.shutdown(socket.SHUT_RDWR)

    def restore(self) -> None:
        """Bring it back."""
        self._is_cut = False

    def close(self) -> None:
        """End."""
        self.cut()
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if self._is_cut:
                    client.close()
                    continue
                server = socket.create_connection(self._target)
                self._open += [client, server]
                for one, other in ((client, server), (server, client)):
                    threading.Thread(target=_pump, args=(one, other), daemon=True).start()


def _pump(one: socket.socket, other: socket.socket) -> None:
    with suppress(OSError):
        while data := one.recv(65_536):
            other.sendall(data)
    for it in (one, other):
        with suppress(OSError):
            it.shutdown(socket.SHUT_RDWR)
        it.close()


@contextmanager
def environment(values: dict[str, str]) -> Iterator[None]:
    """Set variables for this process and its children."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    # A client stays with the server that it was made for.
    object_path._stores.clear()
    try:
        yield
    finally:
        object_path._stores.clear()
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def upload(folder: Path, target) -> None:
    """Copy a folder into the bucket."""
    for path in folder.rglob("*"):
        if path.is_file():
            (target / path.relative_to(folder)).write_bytes(path.read_bytes())
