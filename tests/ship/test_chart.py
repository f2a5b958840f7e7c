"""The chart: linted, rendered with twelve sets of values, checked by the schemas of Kubernetes and by ackscope."""

import argparse
import importlib
import importlib.util
import json
import re
import subprocess

import jsonschema
import pytest
import yaml

from ackscope import __version__
from ackscope.__main__ import COMMANDS
from ackscope.settings import load
from exporter.settings import ExporterSettings
from tests.ship.kube_schemas import COMPOSE, module, write_schemas
from tests.ship.running import ROOT, needed, run

CHART = ROOT / "deploy/helm/ackscope"
SETS = sorted(CHART.glob("ci/*.yaml"))
KUBERNETES = "1.34.0"


def helm(*words):
    """Run helm."""
    return run(needed("helm"), *words)


def render(values):
    """The objects of the chart with some values."""
    words = ["template", "shop", CHART, "--namespace", "rabbits", "--kube-version", KUBERNETES, "--values", values]
    return [each for each in yaml.safe_load_all(helm(*words)) if each]


def containers(objects):
    """Name and container of everything that runs."""
    for each in objects:
        spec = each.get("spec", {})
        pod = spec.get("jobTemplate", {}).get("spec", spec).get("template", {}).get("spec", {})
        for container in pod.get("containers", ()):
            yield each["metadata"]["name"], pod, container


@pytest.fixture(scope="session")
def schemas(tmp_path_factory):
    """The folder of schemas for kubeconform."""
    folder = tmp_path_factory.mktemp("schemas")
    write_schemas(folder)
    return folder


def conforms(schemas, text):
    """Run kubeconform."""
    location = f"{schemas}/{{{{.ResourceKind}}}}{{{{.KindSuffix}}}}.json"
    words = [needed("kubeconform"), "-strict", "-summary", "-output", "json", "-schema-location", location, "-"]
    done = subprocess.run(words, input=text, capture_output=True, text=True, check=False)
    return done.returncode, json.loads(done.stdout)


def test_there_are_twelve_sets():
    """Each has something that the others have not."""
    assert 12 == len(SETS)


@pytest.mark.parametrize("values", SETS, ids=lambda path: path.stem)
def test_lint_and_schemas_accept_every_set(values, schemas):
    """`helm lint --strict`, and every object against the schema of its kind."""
    helm("lint", "--strict", "--quiet", CHART, "--kube-version", KUBERNETES, "--values", values)
    objects = render(values)
    code, report = conforms(schemas, yaml.safe_dump_all(objects))

    assert (0, len(objects)) == (code, report["summary"]["valid"]), report["resources"]
    assert 0 == report["summary"]["skipped"]


def test_the_schemas_refuse_what_the_api_does_not_know(schemas):
    """Or the test above could not fail."""
    deployment = next(each for each in render(SETS[0]) if each["kind"] == "Deployment")
    deployment["spec"]["template"]["spec"]["contianers"] = []
    code, report = conforms(schemas, yaml.safe_dump(deployment))

    assert (1, 1) == (code, report["summary"]["invalid"])


@pytest.mark.parametrize("values", SETS, ids=lambda path: path.stem)
def test_the_exporter_accepts_its_configuration(values, tmp_path):
    """With the files and the variables that the pod gets, every secret in its place."""
    objects = render(values)
    (config,) = (each for each in objects if each["kind"] == "ConfigMap" and "ackscope.yml" in each["data"])
    (pod, container) = next((pod, each) for name, pod, each in containers(objects) if name.endswith("-exporter"))
    secrets = [each["projected"]["sources"] for each in pod["volumes"] if each["name"] == "secrets"]
    for source in secrets[0] if secrets else ():
        for item in source["secret"]["items"]:
            path = tmp_path / "secrets" / item["path"]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(_CERTIFICATE if item["path"].endswith("ca.crt") else "hush\n")
    for name in (each["name"] for each in pod["volumes"] if each["name"].startswith("extra-")):
        path = tmp_path / "extra" / name.removeprefix("extra-") / "url"
        path.parent.mkdir(parents=True)
        path.write_text("https://pager.example.org/hook\n")
    environ = {each["name"]: each.get("value", f"user-{each['name'].lower()}") for each in container["env"]}
    environ.pop("ACKSCOPE_WEB_CONFIG", None)
    for key, text in (("SERVER_CA_FILE", _CERTIFICATE), ("TOKEN_FILE", "hush")):
        (tmp_path / key).write_text(text)
        environ[f"ACKSCOPE_DISCOVERY__KUBERNETES__{key}"] = str(tmp_path / key)
    file = tmp_path / "ackscope.yml"
    file.write_text(re.sub("/etc/ackscope/(?=secrets|extra)", f"{tmp_path}/", config["data"]["ackscope.yml"]))
    settings = load(ExporterSettings, file, environ)

    assert "0.0.0.0:9419" == settings.listen
    wanted = yaml.safe_load(values.read_text())

    assert set(wanted.get("clusters", ())) == set(settings.clusters)
    assert ("discovery" in wanted) is settings.discovery.kubernetes.enabled
    for name, cluster in settings.clusters.items():
        address = cluster.management.address()

        assert f"user-ackscope_clusters__{name.lower()}__management__username" == address.username
        assert "hush" == address.password


@pytest.mark.parametrize("values", SETS, ids=lambda path: path.stem)
def test_every_container_runs_a_command_that_ackscope_takes_with_few_rights(values):
    """Nothing is mounted that is not declared, and no secret is in an argument or a variable."""
    for name, pod, container in containers(render(values)):
        command, *words = container["args"]
        parser = argparse.ArgumentParser()
        parser.add_argument("--log.format")
        importlib.import_module(COMMANDS[command].module).add_arguments(parser)
        parser.parse_args(words)
        security = container["securityContext"]
        volumes = {volume["name"] for volume in pod["volumes"]}

        assert (True, False, ["ALL"]) == (
            security["readOnlyRootFilesystem"],
            security["allowPrivilegeEscalation"],
            security["capabilities"]["drop"],
        ), name
        assert pod["automountServiceAccountToken"] is False
        assert {mount["name"] for mount in container["volumeMounts"]} <= volumes
        assert container["resources"]["limits"]["memory"]


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ([], "clusters: name at least one"),
        (["--set", "discovery.allNamespaces=true", "--set", "discovery.namespaces={a}"], "discovery"),
        (["--set", "dashboard.replcas=2"], "'replcas' not allowed"),
        (["--set-json", 'clusters={"a":{"management":{"url":"http://u:p@h:1","secret":{"name":"s"}}}}'], "pattern"),
        (["--set-json", 'clusters={"a":{"management":{"url":"http://h:1"}}}'], "secret"),
        (["--values", SETS[0], "--set", "persistence.enabled=false"], "pipeline.enabled needs persistence.enabled"),
        (["--values", SETS[0], "--set", "pipeline.mode=batch"], "mode"),
    ],
)
def test_wrong_values_are_refused(options, line):
    """By the schema of the values, or by one line of the chart."""
    words = [needed("helm"), "template", "x", CHART, "--kube-version", KUBERNETES, *options]
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=False)

    assert 0 != done.returncode
    assert line in done.stderr


def test_discovery_has_the_rights_that_it_needs_and_no_others():
    """In its namespaces, for the exporter alone; without discovery there are neither rights nor a token."""
    near, everywhere, without = (render(CHART / f"ci/{name}-values.yaml") for name in _DISCOVERY)
    roles = [each for each in (*near, *everywhere) if each["kind"] in {"Role", "ClusterRole"}]
    bindings = [each for each in (*near, *everywhere) if each["kind"] in {"RoleBinding", "ClusterRoleBinding"}]
    tokens = [
        (name, [volume["name"] for volume in pod["volumes"] if "serviceAccountToken" in json.dumps(volume)])
        for objects in (near, without)
        for name, pod, _ in containers(objects)
    ]

    assert [("Role", "rabbits"), ("Role", "depots"), ("ClusterRole", None)] == [
        (each["kind"], each["metadata"].get("namespace")) for each in roles
    ]
    assert {
        ("rabbitmqclusters", ("get", "list", "watch")),
        ("secrets", ("get",)),
    } == {(rule["resources"][0], tuple(rule["verbs"])) for each in roles for rule in each["rules"]}
    assert [each["metadata"]["name"] for each in roles] == [each["roleRef"]["name"] for each in bindings]
    assert {("shop-ackscope", "rabbits")} == {
        (it["name"], it["namespace"]) for each in bindings for it in each["subjects"]
    }
    assert [("shop-ackscope-exporter", ["kubernetes"])] == [it for it in tokens if it[1]]
    assert not [each for each in without if "Role" in each["kind"]]


_DISCOVERY = ("discovery", "discovery-everywhere", "minimal")


def test_rules_and_dashboards_in_the_cluster_are_those_of_deploy():
    """Prometheus templates in them survive the templates of the chart."""
    objects = render(CHART / "ci/monitored-values.yaml")
    rules = [each["spec"] for each in objects if each["kind"] == "PrometheusRule"]
    boards = {
        name: json.loads(text)
        for each in objects
        if each["kind"] == "ConfigMap" and "ackscope.yml" not in each["data"]
        for name, text in each["data"].items()
    }
    wanted = [
        yaml.safe_load((ROOT / f"deploy/prometheus/ackscope-{name}.yml").read_text())
        for name in ("alerts", "recording")
    ]

    assert wanted == rules
    assert boards == {
        f"ackscope-{path.name}": json.loads(path.read_text()) for path in (ROOT / "deploy/grafana").glob("*.json")
    }


@pytest.mark.parametrize("values", ["values.yaml", "discovery-values.yaml"])
def test_the_plain_manifests_are_rendered_from_the_chart(values, schemas):
    """And conform too; `python deploy/helm/build.py` renders them."""
    found = importlib.util.spec_from_file_location("build", ROOT / "deploy/helm/build.py")
    build = importlib.util.module_from_spec(found)
    found.loader.exec_module(build)
    text = (ROOT / "deploy/kubernetes" / build.KUBERNETES_FILES[values][0]).read_text()

    assert build.rendered(needed("helm"), values) == text
    assert 0 == conforms(schemas, text)[0]
    assert "helm" not in text.partition("\n")[2].lower()


@pytest.mark.parametrize("name", ["bucket", "folder"])
def test_the_spark_manifests_conform(schemas, name):
    """Against the definitions of the Spark operator, too."""
    text = (ROOT / f"deploy/spark/kubernetes-{name}.yaml").read_text()
    code, report = conforms(schemas, text)

    assert (0, 0) == (code, report["summary"]["skipped"]), report["resources"]
    assert len(list(yaml.safe_load_all(text))) == report["summary"]["valid"]


def test_the_chart_packs(tmp_path):
    """With the version of the package."""
    helm("package", CHART, "--destination", tmp_path)

    assert [f"ackscope-{__version__}.tgz"] == [path.name for path in tmp_path.iterdir()]


def test_the_compose_file_conforms_to_the_specification():
    """The schema of the compose specification."""
    schema = json.loads((module(*COMPOSE) / "schema/compose-spec.json").read_text())
    document = yaml.safe_load((ROOT / "deploy/compose/compose.yml").read_text())
    jsonschema.validate(document, schema)


def test_alertmanager_accepts_its_configuration():
    """A real amtool."""
    run(needed("amtool"), "check-config", ROOT / "deploy/compose/alertmanager.yml")


_CERTIFICATE = (ROOT / "tests/ship/ca.crt").read_text()
