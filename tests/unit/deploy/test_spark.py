"""The files for Spark: ackscope takes their arguments, Spark takes their options, and all have the same settings."""

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from pipeline import command
from pipeline.spark_settings import REQUIRED, configured

FOLDER = Path(__file__).parents[3] / "deploy/spark"
SCRIPTS = sorted(FOLDER.glob("*.sh"))
OBJECTS = [
    each
    for path in sorted(FOLDER.glob("kubernetes-*.yaml"))
    for each in yaml.safe_load_all(path.read_text())
    if each is not None
]
APPLICATIONS = [each for each in OBJECTS if each["kind"].endswith("SparkApplication")]
CRON_JOBS = [each for each in OBJECTS if each["kind"] == "CronJob"]

# Of sparkoperator.k8s.io/v1beta2; `make ship-test` checks the manifests against the whole definition.
SPEC = {
    "type",
    "pythonVersion",
    "mode",
    "image",
    "imagePullPolicy",
    "sparkVersion",
    "mainApplicationFile",
    "arguments",
    "sparkConf",
    "restartPolicy",
    "volumes",
    "driver",
    "executor",
}
POD = {"cores", "memory", "memoryOverhead", "envFrom", "volumeMounts", "securityContext", "podSecurityContext"}
SCHEDULED = {
    "schedule",
    "concurrencyPolicy",
    "successfulRunHistoryLimit",
    "failedRunHistoryLimit",
    "template",
}


def defaults():
    """The settings of the file."""
    return configured({"SPARK_CONF_DIR": str(FOLDER)})


def taken(words):
    """The arguments as `ackscope pipeline` reads them; fails if it does not take them."""
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return parser.parse_args(words)


def application(each):
    """The specification of an application, scheduled or not."""
    return each["spec"].get("template", each["spec"])


def name(each):
    """Of an object."""
    return each["metadata"]["name"]


def test_there_is_a_job_for_everything():
    """Of a bucket `run`, of a folder `stream`; and nightly work of both."""
    jobs = [application(each)["arguments"][0] for each in APPLICATIONS]
    pods = [each["spec"]["jobTemplate"]["spec"]["template"]["spec"] for each in CRON_JOBS]
    nightly = [
        [container["args"][2] for key in ("initContainers", "containers") for container in pod.get(key, ())]
        for pod in pods
    ]

    assert ["run", "stream", "compact"] == jobs
    assert [["compact", "expire"], ["expire"]] == nightly


@pytest.mark.parametrize("each", APPLICATIONS, ids=name)
def test_an_application_has_known_fields_and_arguments(each):
    """The operator drops fields that it does not know."""
    spec = application(each)
    scheduled = each["kind"] == "ScheduledSparkApplication"

    assert "sparkoperator.k8s.io/v1beta2" == each["apiVersion"]
    assert set(each["spec"]) == (SCHEDULED if scheduled else SPEC)
    assert SPEC == set(spec)
    assert set(spec["driver"]) - {"serviceAccount"} <= POD
    assert set(spec["executor"]) - {"instances"} <= POD
    assert all(isinstance(word, str) for word in spec["arguments"])
    assert taken(spec["arguments"]).master is None


@pytest.mark.parametrize("each", APPLICATIONS, ids=name)
def test_an_application_has_the_settings_of_the_file(each):
    """Sizes have fields of their own in the operator; the rest is the same, and contradicts nothing that rows need."""
    spec, known = application(each), defaults()
    sizes = {
        f"spark.{part}.{key}": str(spec[part][key])
        for part, keys in {
            "driver": ("memory", "memoryOverhead"),
            "executor": ("instances", "cores", "memory", "memoryOverhead"),
        }.items()
        for key in keys
    }

    assert known == sizes | spec["sparkConf"]
    assert not REQUIRED.keys() & known.keys()


def test_the_manifests_and_the_image_agree():
    """On the path of the application, the version of Spark, the user, and what is a secret."""
    text = (FOLDER / "Containerfile").read_text()
    specs = [application(each) for each in APPLICATIONS]
    pods = [each["spec"]["jobTemplate"]["spec"]["template"]["spec"] for each in CRON_JOBS]
    containers = [it for pod in pods for key in ("initContainers", "containers") for it in pod.get(key, ())]

    assert {spec["mainApplicationFile"] for spec in specs} == {
        "local://" + re.search(r"COPY ackscope_job.py (\S+)", text)[1]
    }
    assert 'ENTRYPOINT ["/opt/ackscope/entrypoint.sh"]' in text
    assert 1 == len({it["image"] for it in [*specs, *containers]})
    assert {"10001"} == {
        str(spec[part]["securityContext"]["runAsUser"]) for spec in specs for part in ("driver", "executor")
    }
    assert "USER 10001:10001" in text
    for it in containers:
        program, room, *words = it["args"]

        assert ("ackscope", "pipeline") == (program, room)
        assert taken(words)
    for it in [*(spec[part] for spec in specs for part in ("driver", "executor")), *containers]:
        assert "env" not in it
        assert {mount["name"] for mount in it["volumeMounts"]} <= {"tmp", "work", "data"}


@pytest.fixture
def pretended(tmp_path):
    """Run a script where spark-submit, Python and Java print how they are called."""
    home, venv = tmp_path / "spark", tmp_path / "venv"
    for path in (home / "bin/spark-submit", tmp_path / "bin/java"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            '#!/bin/sh\necho "${PYSPARK_DRIVER_PYTHON:-none} ${PYSPARK_PYTHON:-none}"\nprintf "%s\\n" "$@"\n'
        )
        path.chmod(0o755)
    python = venv / "bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(f"#!/bin/sh\necho {home}\n")
    python.chmod(0o755)

    def run(script, *words, **environ):
        values = {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "VENV": str(venv), **environ}
        shell = "bash" if (FOLDER / script).read_text().startswith("#!/bin/bash") else "sh"
        done = subprocess.run(
            [shell, str(FOLDER / script), *words], capture_output=True, text=True, env=values, check=False
        )
        return done.returncode, done.stdout.splitlines(), done.stderr

    run.venv = venv
    return run


JOB = ["run", "--landing", "s3://history/landing", "--rollups", "/with space"]


def test_the_standalone_script(pretended):
    """Its options come first and the job's last, with their spaces."""
    code, lines, _ = pretended("standalone.sh", *JOB, MASTER="spark://m:7077", SPARK_CONF_DIR="/x")
    python = f"{pretended.venv}/bin/python"

    assert (0, f"{python} {python}") == (code, lines[0])
    assert ["--master", "spark://m:7077"] == lines[1:3]
    assert ["--load-spark-defaults", "--properties-file", str(FOLDER / "spark-defaults.conf")] == lines[5:8]
    assert [str(FOLDER / "ackscope_job.py"), *JOB] == lines[8:]

    _, packed, _ = pretended(
        "standalone.sh", *JOB, MASTER="spark://m:7077", ARCHIVE="e.tar.gz", ACKSCOPE_STORAGE_FILE="/etc/s"
    )

    assert f"{python} ./environment/bin/python" == packed[0]
    assert ["--conf", "spark.executorEnv.ACKSCOPE_STORAGE_FILE=/etc/s", "--archives", "e.tar.gz#environment"] == packed[
        8:12
    ]


@pytest.mark.parametrize(
    ("mode", "pythons", "conf"),
    [
        ("cluster", "none none", ["--conf", "spark.yarn.appMasterEnv.PYSPARK_PYTHON=./environment/bin/python"]),
        ("client", "{venv}/bin/python ./environment/bin/python", []),
    ],
)
def test_the_yarn_script(pretended, mode, pythons, conf):
    """Where the driver runs decides which Python it has."""
    environ = {"ARCHIVE": "e.tar.gz", "HADOOP_CONF_DIR": "/etc/hadoop", "DEPLOY_MODE": mode}
    code, lines, _ = pretended("yarn.sh", *JOB, **environ)

    assert (0, pythons.format(venv=pretended.venv)) == (code, lines[0])
    assert ["--master", "yarn", "--deploy-mode", mode] == lines[1:5]
    assert ["--archives", "e.tar.gz#environment", *conf, str(FOLDER / "ackscope_job.py"), *JOB] == lines[10:]


@pytest.mark.parametrize(("script", "variable"), [("standalone.sh", "MASTER"), ("yarn.sh", "ARCHIVE")])
def test_a_script_says_what_it_needs(pretended, script, variable):
    """In one line."""
    code, lines, errors = pretended(script, *JOB)

    assert (True, []) == (code != 0, lines)
    assert (1, True) == (len(errors.splitlines()), f"{variable}: set {variable}" in errors)


def test_the_image_starts_what_spark_asks_for(pretended):
    """The driver with its address; an executor with the options of Java in their order; anything else as it is."""
    python = str(pretended.venv / "bin/python")
    _, driver, _ = pretended(
        "entrypoint.sh", "driver", "--class", "C", PYSPARK_PYTHON=python, SPARK_DRIVER_BIND_ADDRESS="10.0.0.1"
    )
    values = {
        "EXECUTOR_MEMORY": "1g",
        "DRIVER_URL": "spark://d",
        "EXECUTOR_ID": "1",
        "EXECUTOR_CORES": "2",
        "APPLICATION_ID": "a",
        "EXECUTOR_POD_IP": "10.0.0.2",
        "RESOURCE_PROFILE_ID": "0",
        "EXECUTOR_POD_NAME": "pod",
        **{f"JAVA_OPT_{number}": f"-D{number}=x y" for number in range(12)},
    }
    environ = {f"SPARK_{key}": value for key, value in values.items()}
    code, executor, errors = pretended("entrypoint.sh", "executor", PYSPARK_PYTHON=python, **environ)

    assert ["--deploy-mode", "client", "--conf", "spark.driver.bindAddress=10.0.0.1", "--class", "C"] == driver[1:]
    assert (0, "") == (code, errors)
    assert [*(f"-D{number}=x y" for number in range(12)), "-Xms1g", "-Xmx1g", "-cp"] == executor[1:16]
    assert "--podName pod" == " ".join(executor[-2:])
    assert (0, ["as it is"]) == pretended("entrypoint.sh", "echo", "as it is")[:2]


def test_the_application_is_the_pipeline():
    """As spark-submit starts it: a file, with its folder first in the search path."""
    words = [sys.executable, str(FOLDER / "ackscope_job.py"), "run", "--help"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)

    assert 0 == done.returncode, done.stderr
    assert done.stdout.startswith("usage: ackscope pipeline run")


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_scripts_have_no_errors_of_syntax(path):
    """Each by its shell."""
    shell = path.read_text().partition("\n")[0].removeprefix("#!")

    assert 0 == subprocess.run([shell, "-n", str(path)], check=False).returncode
