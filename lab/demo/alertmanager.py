"""A real Alertmanager, for the tests of delivery: it sends all alerts to one webhook at once."""

import shutil
from pathlib import Path

import yaml

from ackscope.errors import MissingPart
from lab.demo.prometheus import answers
from lab.demo.services import Service, Services


def start_alertmanager(services: Services, folder: Path, *, listen: str, webhook: str) -> Service:
    """Start Alertmanager on `listen`, with its data in `folder`; each alert is a notification to `webhook`.

    Raises:
        MissingPart: the command is missing.
    """
    binary = shutil.which("prometheus-alertmanager") or shutil.which("alertmanager")
    if binary is None:
        raise MissingPart("Alertmanager is missing: run make setup-test, or apt-get install prometheus-alertmanager")
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "alertmanager.yml"
    route = {"receiver": "hook", "group_by": ["..."], "group_wait": "0s", "group_interval": "1s"}
    hook = {"name": "hook", "webhook_configs": [{"url": webhook, "send_resolved": True}]}
    config.write_text(yaml.safe_dump({"route": route, "receivers": [hook]}))
    service = services.start(
        "alertmanager",
        [
            binary,
            f"--config.file={config}",
            f"--storage.path={folder / 'data'}",
            f"--web.listen-address={listen}",
            "--cluster.listen-address=",
        ],
    )
    service.wait_until(lambda: answers(f"http://{listen}/-/ready"), "a response from /-/ready", 60)
    return service
