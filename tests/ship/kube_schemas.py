"""JSON schemas of Kubernetes and of the Prometheus and Spark operators for kubeconform, from their Go modules.

Strict: a field that the API does not know is an error, because the API server would drop it silently.
"""

import json
from pathlib import Path

import yaml

from tests.ship.running import needed, run

KUBERNETES = ("k8s.io/kubernetes", "v1.34.4")
PROMETHEUS_OPERATOR = ("github.com/prometheus-operator/prometheus-operator", "v0.85.0")
SPARK_OPERATOR = ("github.com/kubeflow/spark-operator/v2", "v2.4.0")
CLUSTER_OPERATOR = ("github.com/rabbitmq/cluster-operator/v2", "v2.16.0")
COMPOSE = ("github.com/compose-spec/compose-go/v2", "v2.16.2")


class _Loader(yaml.SafeLoader):
    """Reads `- =` as text, as everybody but PyYAML does."""


_Loader.add_constructor("tag:yaml.org,2002:value", lambda _, node: node.value)


def module(name, version):
    """The folder of a Go module, downloaded through the module proxy at first use."""
    # Outside of any module of Go; the checksum database of Go checks what arrives.
    return Path(json.loads(run(needed("go"), "mod", "download", "-json", f"{name}@{version}", cwd="/tmp"))["Dir"])


def write_schemas(folder):
    """Write one file for each kind, named as kubeconform asks for it: `deployment-apps-v1.json`."""
    _write_kubernetes(module(*KUBERNETES), folder)
    _write_custom(module(*PROMETHEUS_OPERATOR) / "example/prometheus-operator-crd", folder)
    _write_custom(module(*SPARK_OPERATOR) / "config/crd/bases", folder)


def definitions():
    """The CustomResourceDefinitions that discovery and the chart need, as the operators ship them."""
    folder = module(*PROMETHEUS_OPERATOR) / "example/prometheus-operator-crd"
    paths = [folder / f"monitoring.coreos.com_{name}.yaml" for name in ("servicemonitors", "prometheusrules")]
    paths.append(module(*CLUSTER_OPERATOR) / "config/crd/bases/rabbitmq.com_rabbitmqclusters.yaml")
    return [yaml.load(path.read_text(), _Loader) for path in paths]


def _write_kubernetes(source, folder):
    definitions = json.loads((source / "api/openapi-spec/swagger.json").read_text())["definitions"]
    text = json.dumps({"definitions": {name: _strict(each) for name, each in definitions.items()}})
    shared = text.replace("#/definitions/", "definitions.json#/definitions/")
    (folder / "definitions.json").write_text(shared)
    for name, definition in definitions.items():
        for kind in definition.get("x-kubernetes-group-version-kind", ()):
            group = kind["group"].partition(".")[0]
            stem = "-".join(word for word in (kind["kind"].lower(), group, kind["version"]) if word)
            document = {"$ref": f"definitions.json#/definitions/{name}"}
            (folder / f"{stem}.json").write_text(json.dumps(document))


def _write_custom(source, folder):
    for path in source.glob("*.yaml"):
        spec = yaml.load(path.read_text(), _Loader)["spec"]
        for version in spec["versions"]:
            schema = _strict(version["schema"]["openAPIV3Schema"])
            schema["properties"]["metadata"] = {"$ref": "definitions.json#/definitions/" + _METADATA}
            stem = f"{spec['names']['kind'].lower()}-{spec['group'].partition('.')[0]}-{version['name']}"
            (folder / f"{stem}.json").write_text(json.dumps(schema))


_METADATA = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


def _strict(schema):
    """The schema, where objects with known properties have no others."""
    if isinstance(schema, list):
        return [_strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: _strict(value) for key, value in schema.items()}
    if schema.get("format") == "int-or-string" or schema.get("x-kubernetes-int-or-string") is True:
        return {"type": ["integer", "string"]}
    open_ended = "additionalProperties" in schema or schema.get("x-kubernetes-preserve-unknown-fields") is True
    if schema.get("type") == "object" and isinstance(schema.get("properties"), dict) and not open_ended:
        made["additionalProperties"] = False
    return made
