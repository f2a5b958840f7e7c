"""A real Kubernetes API: etcd and kube-apiserver on free ports of loopback, without a controller, node or operator.

`scripts/setup.sh kube` builds kube-apiserver with Go (`kube_apiserver/go.mod` pins it), and installs Debian's etcd.
"""

import json
import shutil
import subprocess
import time
from contextlib import contextmanager

import requests
from joserfc import jwt
from joserfc.jwk import ECKey

from lab.ports import free_ports
from tests.ship.running import eventually, needed
from tests.unit.exporter.web.certificates import make

ADMIN = "admin"
CLUSTERS = "/apis/rabbitmq.com/v1beta1"
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_ISSUER = "https://kubernetes.default.svc"
_AUDIT = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "rules": [{"level": "Metadata", "userGroups": ["system:serviceaccounts"]}, {"level": "None"}],
}
"""Requests of service accounts are written down."""


class KubeServer:
    """A running API server.

    Args:
        folder: for all of its files.

    Attributes:
        url: its address, the same after a restart.
        ca_file: the certificates that its own is checked with.
    """

    def __init__(self, folder):
        folder.mkdir(exist_ok=True)
        self._folder, self._processes, self._resources = folder, {}, {}
        self._certificate, self._key = make(folder, "accounts")
        (folder / "tokens.csv").write_text(f'{ADMIN},root,1,"system:masters"\n')
        (folder / "audit.json").write_text(json.dumps(_AUDIT))
        self.ca_file = folder / "certificates/apiserver.crt"
        self._port, self._client, self._peer = free_ports(3)
        self.url = f"https://127.0.0.1:{self._port}"

    def start_etcd(self):
        """Start etcd, with the data of the time before."""
        client, peer = (f"http://127.0.0.1:{port}" for port in (self._client, self._peer))
        self._start(
            *("etcd", "--data-dir", "etcd", "--listen-client-urls", client, "--advertise-client-urls", client),
            *("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer),
            *("--initial-cluster", f"default={peer}"),
        )

    def start(self, *flags):
        """Start the API server, with more flags, and wait until it is ready."""
        self._start(
            *("kube-apiserver", "--etcd-servers", f"http://127.0.0.1:{self._client}", "--secure-port", self._port),
            *("--bind-address", "127.0.0.1", "--advertise-address", "127.0.0.1", "--cert-dir", "certificates"),
            *("--service-account-key-file", self._certificate, "--service-account-signing-key-file", self._key),
            *("--service-account-issuer", _ISSUER, "--service-cluster-ip-range", "10.0.0.0/24"),
            *("--authorization-mode", "RBAC", "--token-auth-file", "tokens.csv"),
            *("--audit-policy-file", "audit.json", "--audit-log-path", "audit.log", *flags),
        )
        eventually(self._ready)

    def _ready(self):
        assert self._processes["kube-apiserver"].poll() is None, self._said("kube-apiserver")

        try:
            return self.ask("GET", "/readyz").ok
        except (requests.ConnectionError, OSError):
            return False

    def _start(self, program, *words):
        command = [needed(program, "kube"), *map(str, words)]
        with (self._folder / f"{program}.log").open("ab") as log:
            self._processes[program] = subprocess.Popen(command, stdout=log, stderr=log, cwd=self._folder)

    def _said(self, program):
        return (self._folder / f"{program}.log").read_text(errors="replace")[-3000:]

    def stop(self, program="kube-apiserver", *, kill=False):
        """Stop the API server or `etcd`; with `kill` all connections are cut."""
        process = self._processes.pop(program)
        (process.kill if kill else process.terminate)()
        process.wait(90)

    def close(self):
        """Stop both."""
        for program in reversed(list(self._processes)):
            self.stop(program, kill=True)

    def asked(self, verb):
        """Paths of all requests of service accounts with this verb, such as `list` and `watch`, in their order."""
        lines = (self._folder / "audit.log").read_text().splitlines()
        stage = "ResponseStarted" if verb == "watch" else "ResponseComplete"
        found = [json.loads(line) for line in lines if line.endswith("}")]
        return [it["requestURI"] for it in found if (it["verb"], it["stage"]) == (verb, stage)]

    def ask(self, method, path, body=None, *, token=ADMIN, kind="application/json", **query):
        """The answer to one request."""
        headers = {"Authorization": f"Bearer {token}", "Content-Type": kind, "Accept": "application/json"}
        text = None if body is None else json.dumps(body)
        verify = str(self.ca_file)
        return requests.request(
            method, self.url + path, data=text, headers=headers, params=query, verify=verify, timeout=30
        )

    def call(self, method, path, body=None, **more):
        """The document that answers a request, which must succeed."""
        answer = self.ask(method, path, body, **more)

        assert answer.ok, f"{method} {path}: {answer.status_code} {answer.text[:1000]}"

        return answer.json()

    def path(self, document, namespace="default"):
        """Where an object is; one without a namespace belongs into the one that is given."""
        version, kind, metadata = document["apiVersion"], document["kind"], document["metadata"]
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        if (version, kind) not in self._resources:
            for each in self.call("GET", root)["resources"]:
                if "/" not in each["name"]:
                    self._resources[(version, each["kind"])] = each
        resource = self._resources[(version, kind)]
        inside = f"/namespaces/{metadata.get('namespace', namespace)}" if resource["namespaced"] else ""
        return f"{root}{inside}/{resource['name']}/{metadata['name']}"

    def apply(self, document, namespace="default", **query):
        """The answer to a server-side apply, as of `kubectl apply --server-side`; a field that is unknown is an error.

        Args:
            document: the object.
            namespace: for one that names none.
            query: more parameters, such as `dryRun="All"`.
        """
        query = {"fieldManager": "tests", "fieldValidation": "Strict", "force": "true", **query}
        kind = "application/apply-patch+yaml"
        return self.ask("PATCH", self.path(document, namespace), document, kind=kind, **query)

    def define(self, definition):
        """Create a CustomResourceDefinition, and wait until it is served."""
        self.call("POST", _DEFINITIONS, definition)
        spec = definition["spec"]
        for version in spec["versions"]:
            group = f"/apis/{spec['group']}/{version['name']}"
            for path in (group, f"{group}/{spec['names']['plural']}"):
                eventually(lambda path=path: self.ask("GET", path).ok)

    def undefine(self, definition):
        """Delete a CustomResourceDefinition, and wait until it is no longer served."""
        spec = definition["spec"]
        self.call("DELETE", f"{_DEFINITIONS}/{definition['metadata']['name']}")
        path = f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}"
        eventually(lambda: self.ask("GET", path).status_code == 404)

    def namespace(self, name):
        """Create a namespace."""
        self.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})

    def put(self, document):
        """Create or change a `RabbitmqCluster` as the operator does: the status is a resource of its own."""
        document = {**document, "metadata": {**document["metadata"]}}
        metadata, status = document["metadata"], document.pop("status")
        where = self.path(document)
        made = self.apply({**document, "metadata": {**metadata, "finalizers": [FINALIZER]}})

        assert made.ok, made.text

        merge = "application/merge-patch+json"
        return self.call("PATCH", f"{where}/status", {"status": {"conditions": [], **status}}, kind=merge)

    def delete(self, namespace, name):
        """Delete a `RabbitmqCluster`: it stays, marked, until `release`."""
        self.call("DELETE", f"{CLUSTERS}/namespaces/{namespace}/rabbitmqclusters/{name}")

    def release(self, namespace, name):
        """Let a deleted object go, as the operator does when it has removed what belongs to it."""
        path = f"{CLUSTERS}/namespaces/{namespace}/rabbitmqclusters/{name}"
        self.call("PATCH", path, {"metadata": {"finalizers": None}}, kind="application/merge-patch+json")

    def remove(self, namespace, name):
        """Delete an object and let it go."""
        self.delete(namespace, name)
        self.release(namespace, name)

    def clear(self):
        """Delete all objects and let them go."""
        for item in self.call("GET", f"{CLUSTERS}/rabbitmqclusters")["items"]:
            self.remove(item["metadata"]["namespace"], item["metadata"]["name"])

    def back_up(self):
        """Copy the data of etcd, which is stopped with the API server for that time."""
        self._while_stopped("etcd", "backup")

    def restore(self):
        """Put the data of etcd back as they were at the time of the copy."""
        self._while_stopped("backup", "etcd")

    def _while_stopped(self, source, target):
        for program in ("kube-apiserver", "etcd"):
            self.stop(program, kill=True)
        shutil.rmtree(self._folder / target, ignore_errors=True)
        shutil.copytree(self._folder / source, self._folder / target)
        self.start_etcd()
        self.start()

    def compact(self):
        """Let etcd forget all versions up to the present one."""
        version = self.call("GET", f"{CLUSTERS}/rabbitmqclusters")["metadata"]["resourceVersion"]
        done = requests.post(
            f"http://127.0.0.1:{self._client}/v3/kv/compaction",
            json={"revision": version, "physical": True},
            timeout=30,
        )

        assert done.ok, done.text

    def secret(self, namespace, name, **data):
        """Create or change a secret."""
        made = self.apply(
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"namespace": namespace, "name": name},
                "stringData": data,
            }
        )

        assert made.ok, made.text

    def token(self, namespace, account, seconds=3600):
        """A token of a service account, as the kubelet asks for it."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        return self.call("POST", path, {"spec": {"expirationSeconds": seconds}})["status"]["token"]

    def short_token(self, namespace, account, seconds):
        """A token that is refused after some seconds. The API gives none below ten minutes, so it is signed here."""
        uid = self.call("GET", f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}")["metadata"]["uid"]
        now = int(time.time())
        claims = {
            "iss": _ISSUER,
            "aud": [_ISSUER],
            "sub": f"system:serviceaccount:{namespace}:{account}",
            "iat": now - 600,
            "nbf": now - 600,
            "exp": now + seconds - _LEEWAY,
            "kubernetes.io": {"namespace": namespace, "serviceaccount": {"name": account, "uid": uid}},
        }
        return jwt.encode({"alg": "ES256"}, claims, ECKey.import_key(self._key.read_text()))


FINALIZER = "deletion.finalizers.rabbitmqclusters.rabbitmq.com"
"""Of the operator."""
_LEEWAY = 60
"""The API server takes a token for as many seconds longer."""


@contextmanager
def kube_server(folder):
    """Run an API server while the block runs; its files go into a folder."""
    server = KubeServer(folder)
    try:
        server.start_etcd()
        server.start()
        yield server
    finally:
        server.close()
