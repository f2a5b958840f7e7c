"""Copy rules and dashboards into the chart, which may only use its own files: `python deploy/helm/build.py`.

With a helm on PATH or in .tools/bin it also renders the plain manifests of deploy/kubernetes.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

KUBERNETES = "1.34.0"
"""The version that manifests are rendered for; a helm built from source takes an old one by itself."""

DEPLOY = Path(__file__).parents[1]
CHART = DEPLOY / "helm/ackscope"
KUBERNETES_FILES = {
    "values.yaml": ("ackscope.yaml", "kubectl apply --namespace ackscope -f ackscope.yaml"),
    # With --namespace, kubectl refuses objects of other namespaces.
    "discovery-values.yaml": (
        "ackscope-discovery.yaml",
        "kubectl config set-context --current --namespace ackscope; kubectl apply -f ackscope-discovery.yaml",
    ),
}
"""Values in deploy/kubernetes -> the manifests that are rendered with them, and how to apply these."""


def copies() -> Iterator[tuple[Path, Path]]:
    """Source and target of each file."""
    for path in sorted((DEPLOY / "grafana").glob("*.json")):
        yield path, CHART / "files/dashboards" / path.name
    for name in ("ackscope-alerts.yml", "ackscope-recording.yml"):
        yield DEPLOY / "prometheus" / name, CHART / "files/rules" / name


def rendered(helm: str, values: str) -> str:
    """Plain manifests: the chart with values of deploy/kubernetes, without the marks of a release."""
    file = DEPLOY / "kubernetes" / values
    words = ["--namespace", "ackscope", "--values", str(file), "--kube-version", KUBERNETES]
    text = subprocess.run(
        [helm, "template", "ackscope", str(CHART), *words], capture_output=True, text=True, check=True
    ).stdout
    lines = (line for line in text.splitlines() if not line.strip().startswith(("helm.sh/", "annotations: {helm.sh/")))
    head = f"# Rendered by deploy/helm/build.py with {values}: {KUBERNETES_FILES[values][1]}"
    body = "\n".join(lines).replace("app.kubernetes.io/managed-by: Helm", "app.kubernetes.io/managed-by: kubectl")
    return f"{head}\n{body}\n"


def main() -> None:
    """Write everything."""
    for source, target in copies():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
    search = f"{DEPLOY.parent / '.tools/bin'}:{os.environ['PATH']}"
    helm = shutil.which("helm", path=search)
    if helm is None:
        print("no helm: the manifests of deploy/kubernetes are as they were; scripts/setup.sh ship installs it")
    else:
        for values, (manifests, _) in KUBERNETES_FILES.items():
            (DEPLOY / "kubernetes" / manifests).write_text(rendered(helm, values))


if __name__ == "__main__":
    main()
