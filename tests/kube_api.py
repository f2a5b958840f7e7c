"""A stand-in of the Kubernetes API: lists, watches and secrets over TLS, as a real API server answers them.

It is no copy of one: it has what discovery uses. Lists come in pages of one version, watches are chunked and end with a
bookmark, old versions expire (410, as a status or as an event), tokens expire (401), rights can be missing (403).
`make kube-test` compares its answers with those of a real one (`tests/ship/test_kube_stand_in.py`).
"""

import base64
import json
import ssl
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from tests.unit.exporter.web.certificates import make

GROUP = "/apis/rabbitmq.com/v1beta1"
BOOKMARK_SECONDS = 2.0
"""How long before the end of a watch its bookmark comes. A real one sends none in watches of 30 s."""
AVAILABLE = [{"type": "AllReplicasReady", "status": "True"}, {"type": "ClusterAvailable", "status": "True"}]
STARTING = [{"type": "AllReplicasReady", "status": "False"}, {"type": "ClusterAvailable", "status": "False"}]


def rabbitmq(namespace, name, *, conditions=AVAILABLE, spec=None, status=None, **metadata):
    """A `RabbitmqCluster` as the operator leaves it; `status` replaces what it says of the default user."""
    secret = f"{name}-default-user"
    reference = {"name": secret, "namespace": namespace, "keys": {"username": "username", "password": "password"}}
    service = {"name": name, "namespace": namespace}
    default = {
        "defaultUser": {"secretReference": reference, "serviceReference": service},
        "binding": {"name": secret},
    }
    return {
        "apiVersion": "rabbitmq.com/v1beta1",
        "kind": "RabbitmqCluster",
        "metadata": {"namespace": namespace, "name": name, "creationTimestamp": "2020-01-01T00:00:00Z", **metadata},
        "spec": {"replicas": 1, **(spec or {})},
        "status": {"conditions": conditions, **(default if status is None else status)},
    }


class KubeApi:
    """A running stand-in.

    Attributes:
        url: its address.
        ca_file: the certificate of its authority.
        tokens: those that are accepted.
        refused: resources (`rabbitmqclusters`, `secrets`) that the account has no right to.
        gone_as_event: whether an expired version is an event of the watch, as of Kubernetes 1.34, and not its status.
        seen: every path with its query, in order of arrival.
    """

    def __init__(self, folder):
        folder.mkdir(exist_ok=True)
        certificate, key = make(folder, "kube")
        self.ca_file, self.token_file = certificate, folder / "token"
        self.tokens, self.refused, self.gone_as_event, self.seen = {"one"}, set(), True, []
        self.token_file.write_text("one\n")
        self._lock = threading.Condition()
        self._version, self._oldest, self._epoch = 100, 0, 0
        self._objects, self._events, self._secrets, self._pages = {}, [], {}, {}
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                outer._answer(self)

            def log_message(self, *args):
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *args):
                pass  # clients go away in the midst of an answer

        self._http = Server(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self._http.socket = context.wrap_socket(self._http.socket, server_side=True, do_handshake_on_connect=False)
        self.url = f"https://127.0.0.1:{self._http.server_address[1]}"

    def settings(self, **more):
        """The section of the configuration that uses it."""
        files = {"server_ca_file": str(self.ca_file), "token_file": str(self.token_file)}
        return {"kubernetes": {"enabled": True, "server": self.url, "refresh": "1s", **files, **more}}

    def put(self, document):
        """Create or change an object."""
        key = (document["metadata"]["namespace"], document["metadata"]["name"])
        self._change("MODIFIED" if key in self._objects else "ADDED", key, document)

    def delete(self, namespace, name):
        """Remove an object."""
        self._change("DELETED", (namespace, name), self._objects[(namespace, name)])

    def _change(self, kind, key, document):
        with self._lock:
            self._version += 1
            document = json.loads(json.dumps(document))
            document["metadata"]["resourceVersion"] = str(self._version)
            before = self._objects.get(key)
            self._objects = {name: it for name, it in self._objects.items() if name != key}
            if kind != "DELETED":
                self._objects[key] = document
            self._events.append((self._version, kind, document, before))
            self._lock.notify_all()

    def secret(self, namespace, name, **data):
        """Create or change a secret."""
        encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
        self._secrets[(namespace, name)] = encoded

    def compact(self):
        """Forget all versions up to the present one, and end all watches: the next ones get a 410."""
        with self._lock:
            self._version += 1
            self._oldest = self._version
            self._events = []
        self.break_watches()

    def break_watches(self):
        """Cut the connections of all watches, without the end of their answers."""
        with self._lock:
            self._epoch += 1
            self._lock.notify_all()

    def watches(self):
        """How many watches were asked for."""
        return sum("watch=true" in it for it in self.seen)

    def lists(self):
        """How many lists were asked for."""
        return sum("rabbitmqclusters" in it and "watch=true" not in it for it in self.seen)

    def _answer(self, request):
        self.seen.append(request.path)
        parts = urlsplit(request.path)
        query = {key: it[0] for key, it in parse_qs(parts.query).items()}
        words = parts.path.strip("/").split("/")
        namespace = words[words.index("namespaces") + 1] if "namespaces" in words else ""
        if request.headers.get("Authorization", "").removeprefix("Bearer ") not in self.tokens:
            self._status(request, 401, "Unauthorized", "Unauthorized")
        elif any(it in words for it in self.refused):
            group = "" if "secrets" in words else "rabbitmq.com"
            resource, name = ("secrets", f' "{words[-1]}"') if not group else ("rabbitmqclusters", ".rabbitmq.com")
            verb = "get" if not group else "watch" if query.get("watch") == "true" else "list"
            where = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
            text = f'User "system:serviceaccount:ackscope:ackscope" cannot {verb} resource "{resource}" in API group'
            self._status(request, 403, "Forbidden", f'{resource}{name} is forbidden: {text} "{group}" {where}')
        elif "secrets" in words:
            data = self._secrets.get((namespace, words[-1]))
            if data is None:
                self._status(request, 404, "NotFound", f'secrets "{words[-1]}" not found')
            else:
                self._json(request, 200, {"kind": "Secret", "apiVersion": "v1", "data": data})
        elif not parts.path.startswith(GROUP) or words[-1] != "rabbitmqclusters":
            self._send(request, 404, "text/plain", b"404 page not found\n")
        elif query.get("watch") == "true":
            self._watch(request, namespace, query)
        else:
            self._list(request, namespace, query)

    def _list(self, request, namespace, query):
        with self._lock:
            version, objects = str(self._version), sorted(self._objects.items())
        first, limit = 0, int(query.get("limit", "0"))
        if "continue" in query:
            version, _, first = query["continue"].partition(".")
            first = int(first) if first.isdecimal() else None
            if first is None or not version.isdecimal():
                self._status(request, 400, "BadRequest", "continue key is not valid")
                return
            if int(version) < self._oldest:
                self._status(request, 410, "Expired", "The provided continue parameter is too old")
                return
            items = self._pages[version]
        else:
            items = self._pages[version] = [it for _, it in objects if _fits(it, namespace, query)]
        after = first + limit if limit else len(items)
        metadata = {"resourceVersion": version, "continue": f"{version}.{after}" if after < len(items) else ""}
        page = {"apiVersion": "rabbitmq.com/v1beta1", "kind": "RabbitmqClusterList", "metadata": metadata}
        self._json(request, 200, {**page, "items": items[first:after]})

    def _watch(self, request, namespace, query):
        version, seconds = int(query["resourceVersion"]), float(query["timeoutSeconds"])
        gone = f"too old resource version: {version} ({self._oldest})"
        if version < self._oldest and not self.gone_as_event:
            self._status(request, 410, "Expired", gone)
            return
        request.send_response(200)
        request.send_header("Content-Type", "application/json")
        request.send_header("Transfer-Encoding", "chunked")
        request.end_headers()
        if version < self._oldest:
            _chunk(request, {"type": "ERROR", "object": _failure(410, "Expired", gone)})
            _end(request)
            return
        epoch, until = self._epoch, time.monotonic() + seconds
        bookmark = until - BOOKMARK_SECONDS if seconds > BOOKMARK_SECONDS else until
        while (now := time.monotonic()) < until:
            with self._lock:
                news = [it for it in self._events if it[0] > version]
                if not news and epoch == self._epoch:
                    self._lock.wait(min(0.5, until - now))
                latest = self._version
            if epoch != self._epoch:
                request.connection.close()
                request.close_connection = True
                return
            for changed, kind, document, before in news:
                version = changed
                fits, did = _fits(document, namespace, query), before and _fits(before, namespace, query)
                if fits:
                    _chunk(request, {"type": kind if did else "ADDED", "object": document})
                elif did:
                    # Without the label it is deleted for this watch, and shown as it was.
                    metadata = {**before["metadata"], "resourceVersion": str(changed)}
                    _chunk(request, {"type": "DELETED", "object": {**before, "metadata": metadata}})
            if now >= bookmark and not news:
                bookmark = until
                known = {"apiVersion": "rabbitmq.com/v1beta1", "kind": "RabbitmqCluster"}
                _chunk(request, {"type": "BOOKMARK", "object": {**known, "metadata": {"resourceVersion": str(latest)}}})
        _end(request)

    def _status(self, request, code, reason, message):
        self._json(request, code, _failure(code, reason, message))

    def _json(self, request, code, document):
        self._send(request, code, "application/json", json.dumps(document).encode())

    def _send(self, request, code, kind, body):
        request.send_response(code)
        request.send_header("Content-Type", kind)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)


def _failure(code, reason, message):
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    }


def _fits(document, namespace, query):
    metadata = document["metadata"]
    wanted = dict(it.split("=") for it in query.get("labelSelector", "").split(",") if it)
    return namespace in ("", metadata["namespace"]) and wanted.items() <= metadata.get("labels", {}).items()


def _chunk(request, document):
    line = json.dumps(document).encode() + b"\n"
    # In two pieces: an event may be torn anywhere.
    for piece in (line[:20], line[20:]):
        request.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
        request.wfile.flush()


def _end(request):
    request.wfile.write(b"0\r\n\r\n")


@contextmanager
def kube_api(folder):
    """Run a stand-in while the block runs; its files go into a folder."""
    api = KubeApi(folder)
    thread = threading.Thread(target=api._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield api
    finally:
        api.break_watches()
        api._http.shutdown()
        api._http.server_close()
        thread.join()
