"""An assistant asks about a real broker, over stdio: through the exporter, and the broker itself."""

import json
import os
import sys
from pathlib import Path

import anyio
import pytest
from mcp import StdioServerParameters
from mcp.client.client import Client
from mcp.client.stdio import stdio_client

from exporter.mcp_server.limit import MAX_BYTES
from tests.integration.exporter.running import Management, eventually, exporting

pytestmark = pytest.mark.integration

QUEUE = "exporter-test.mcp"
QUICK = {"consumers": {"no_consumer_growing": 1, "no_consumer_quiet": 1}, "early": 86400}


@pytest.fixture
def node(lab_43):
    """A node with a queue that nobody consumes."""
    management = Management(lab_43.nodes[0])
    management.declare(QUEUE, "classic")
    management.publish(QUEUE, 3)
    yield lab_43.nodes[0]
    management.sweep("exporter-test.")


def asked(words, *calls):
    """The documents of some tool calls of one session."""

    async def ask():
        server = StdioServerParameters(
            command=sys.executable, args=["-m", "ackscope", "mcp", *words], env=dict(os.environ)
        )
        async with Client(stdio_client(server)) as client:
            return [await client.call_tool(name, arguments) for name, arguments in calls]

    results = anyio.run(ask)
    assert not any(it.is_error for it in results), results
    assert max(len(it.content[0].text.encode()) for it in results) <= MAX_BYTES
    return [json.loads(it.content[0].text) for it in results]


def test_a_finding_a_queue_and_a_fresh_diagnosis(node, tmp_path):
    """What the exporter knows of the queue, what the broker says now, and a bundle of both."""
    with exporting(node, tmp_path, diagnosis=QUICK, probes={"enabled": []}) as exporter:
        eventually(lambda: any(it["subject"]["name"] == QUEUE for it in exporter.cluster("findings")["findings"]))
        words = ["--exporter", exporter.url, "--management", node.management, "--bundles", str(tmp_path)]
        findings, explained, queue, fresh, bundle = asked(
            words,
            ("findings", {}),
            ("explain", {"name": QUEUE}),
            ("queue", {"name": QUEUE}),
            ("diagnose", {}),
            ("bundle", {}),
        )

    assert "shop" in findings["clusters"][0]["cluster"]
    assert ("no-consumer", QUEUE) == (explained["rule"], explained["subject"]["name"])
    assert 3 == queue["lines"]["ready"]["latest"]
    assert "no-consumer" in {it["rule"] for it in queue["findings"]}
    assert fresh["clusters"][0]["broker"].startswith("4.3")
    assert fresh["clusters"][0]["rules_checked"] > 50
    assert Path(bundle["file"]).stat().st_size == bundle["bytes"]
