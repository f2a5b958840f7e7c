"""The SDK's own client asks: what is wrong, and what do I do?"""

import json
import os
import subprocess
import sys
import time

import anyio
import bcrypt
import pytest
import requests
from mcp import StdioServerParameters
from mcp.client.client import Client
from mcp.client.stdio import stdio_client

from exporter.mcp_server.api import ExporterApi
from exporter.mcp_server.limit import MAX_BYTES, bounded
from exporter.mcp_server.server import make_server
from exporter.mcp_server.tools import ToolBox
from exporter.web.config import WebConfig
from lab.ports import free_ports
from tests.unit.exporter.mcp_server.asked import TEN, serving_faults


@pytest.fixture(scope="module")
def exporter():
    """An exporter with ten faults and more."""
    with serving_faults() as url:
        yield url


def asked(url, *calls, **more):
    """(is an error, text) of each tool call, in order."""

    async def ask():
        async with Client(make_server(ToolBox(api=ExporterApi(url), **more))) as client:
            return [await client.call_tool(name, arguments) for name, arguments in calls]

    results = anyio.run(ask)
    return [(it.is_error, it.content[0].text) for it in results]


@pytest.mark.parametrize("rule", TEN)
def test_what_is_wrong_and_what_do_i_do(exporter, rule):
    """Two calls: the finding, and its cause, evidence and steps. Each answer is below 4 kB."""
    (_, listed), (failed, text) = asked(exporter, ("findings", {"cluster": rule}), ("explain", {"cluster": rule}))
    worst, explained = json.loads(listed)["findings"][0], json.loads(text)

    assert not failed
    assert max(len(listed.encode()), len(text.encode())) <= MAX_BYTES
    assert rule == worst["rule"] == explained["rule"]
    assert explained["cause"]
    assert explained["evidence"]
    assert explained["steps"][0]["do"]
    assert worst["do_first"].startswith(explained["steps"][0]["do"][:30])
    assert explained["runbook"] == f"{exporter}/runbook?rule={rule}"


def test_all_clusters_at_once_are_cut_and_counted(exporter):
    """The worst are first; what is missing is said."""
    ((_, text),) = asked(exporter, ("findings", {}))
    document = json.loads(text)
    shown, cut = len(document["findings"]), document["cut"]["findings"]

    assert len(text.encode()) <= MAX_BYTES
    assert "critical" == document["findings"][0]["severity"]
    assert sum(document["counts"].values()) == shown + cut


def test_one_finding_is_chosen_by_rule_and_subject(exporter):
    """And what is not there is said."""
    answers = asked(
        exporter,
        ("explain", {"rule": "stuck-consumer", "name": "orders", "vhost": "/"}),
        ("explain", {"rule": "stuck-consumer", "name": "other"}),
    )
    found, missing = (json.loads(text) for _, text in answers)

    assert ("stuck-consumer", "orders") == (found["rule"], found["subject"]["name"])
    assert None is missing["finding"]


def test_a_queue_has_its_rates_its_consumers_and_its_findings(exporter):
    """With where it was read."""
    ((_, text),) = asked(exporter, ("queue", {"name": "orders", "cluster": "stuck-consumer"}))
    document = json.loads(text)

    assert "stuck-consumer" in {it["rule"] for it in document["findings"]}
    assert document["lines"]["ready"]["latest"] > document["lines"]["ready"]["first"]
    assert ("ctag1", 1) == (document["consumers"][0]["tag"], document["consumer_count"])
    assert "/api/queues" in document["source"]


def test_a_client_has_its_connections_and_its_findings(exporter):
    """By a part of its name."""
    ((_, text),) = asked(exporter, ("client", {"name": "billing", "cluster": "stuck-consumer"}))
    document = json.loads(text)

    assert {"connections": 1, "channels": 1, "consumers": 1} == document["counts"]
    assert "stuck-consumer" in {it["rule"] for it in document["findings"]}


def test_a_mistake_is_one_line(exporter):
    """It says what there is."""
    unknown, ambiguous = asked(exporter, ("findings", {"cluster": "stuck-consume"}), ("queue", {"name": "orders"}))

    assert (True, True) == (unknown[0], ambiguous[0])
    assert "did you mean 'stuck-consumer'?" in unknown[1]
    assert "choose one of stuck-consumer, dlx-missing" in ambiguous[1]


def test_an_exporter_that_is_away_is_said():
    """Without a traceback."""
    ((failed, text),) = asked("http://127.0.0.1:9", ("findings", {}))

    assert failed
    assert "http://127.0.0.1:9: no connection; is the exporter running?" in text


def test_a_bundle_is_saved_and_can_be_diagnosed(exporter, tmp_path):
    """Or only its size is returned."""
    ((_, text),) = asked(exporter, ("bundle", {"cluster": "stuck-consumer"}), bundles=tmp_path)
    ((_, only),) = asked(exporter, ("bundle", {"cluster": "stuck-consumer"}))
    file = json.loads(text)["file"]
    done = subprocess.run(
        [sys.executable, "-m", "ackscope", "diagnose", "--json", "--bundle", file],
        capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert "stuck-consumer" == json.loads(done.stdout)["findings"][0]["rule"]
    assert "file" not in json.loads(only)
    assert json.loads(only)["bytes"] > 1000


def answer(sentence, rows=0):
    """An answer of the pipeline."""
    return {"question": "x", "told": [sentence], "rows": [{"n": 1}] * rows, "because": None}


def test_history_is_read_from_the_answers_of_the_pipeline(exporter, tmp_path):
    """By question, or the first sentences of all."""
    (tmp_path / "_answers").mkdir()
    document = {
        "made_at": "2027-01-15T08:00:00Z",
        "worst": {"unacked": answer("orders is worst", 50)},
        "weeks": answer("more this week"),
        "capacity": answer("full in 9 days", 500),
    }
    (tmp_path / "_answers" / "node-down.json").write_text(json.dumps(document))
    calls = [{}, {"question": "capacity"}, {"question": "worst", "by": "unacked"}, {"question": "worst", "by": "x"}]
    answers = asked(exporter, *(("history", {"cluster": "node-down", **it}) for it in calls), rollups=tmp_path)
    every, capacity, worst = (json.loads(text) for _, text in answers[:3])

    assert ["more this week"] == every["questions"]["weeks"]
    assert ["full in 9 days"] == capacity["capacity"]["told"]
    assert capacity["cut"]["capacity.rows"]
    assert ["orders is worst"] == worst["worst"]["told"]
    assert (True, True) == (answers[3][0], "known: unacked" in answers[3][1])


def test_the_tools_say_that_they_only_read(exporter):
    """Tools that are not configured are not offered."""

    async def ask():
        async with Client(make_server(ToolBox(api=ExporterApi(exporter)))) as client:
            return (await client.list_tools()).tools

    tools = anyio.run(ask)

    assert {"findings", "explain", "queue", "client", "bundle"} == {it.name for it in tools}
    assert all(it.annotations.read_only_hint for it in tools)
    assert all(it.description for it in tools)


def test_over_stdio(exporter):
    """As an assistant starts it."""

    async def ask():
        words = ["-m", "ackscope", "mcp", "--exporter", exporter]
        async with Client(
            stdio_client(StdioServerParameters(command=sys.executable, args=words, env=dict(os.environ)))
        ) as client:
            return await client.call_tool("explain", {"cluster": "dlx-missing"})

    assert "dlx-missing" == json.loads(anyio.run(ask).content[0].text)["rule"]


def test_over_http_with_the_login_of_the_exporter(tmp_path):
    """The same file for both; without the login nothing is answered."""
    web, password = tmp_path / "web.yml", tmp_path / "password"
    hashed = bcrypt.hashpw(b"hush", bcrypt.gensalt(4)).decode()
    web.write_text(f"basic_auth_users: {{ann: '{hashed}'}}\n")
    password.write_text("hush\n")
    (port,) = free_ports(1)
    with serving_faults(WebConfig.load(web), {"stuck-consumer": TEN["stuck-consumer"]}) as url:
        words = ["--exporter", url, "--username", "ann", "--password-file", str(password)]
        process = subprocess.Popen(
            [sys.executable, "-m", "ackscope", "mcp", *words, "--http", f"127.0.0.1:{port}", "--web.config.file", web]
        )
        try:
            refused = until_answered(f"http://127.0.0.1:{port}/mcp")
            body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "explain", "arguments": {}}}
            headers = {"Accept": "application/json, text/event-stream"}
            answered = requests.post(
                f"http://127.0.0.1:{port}/mcp", json=body, headers=headers, auth=("ann", "hush"), timeout=20
            )
            foreign = requests.post(
                f"http://127.0.0.1:{port}/mcp",
                json=body,
                headers={**headers, "Host": "evil.example"},
                auth=("ann", "hush"),
                timeout=20,
            )
        finally:
            process.terminate()
            process.wait(20)

    assert (401, 421) == (refused.status_code, foreign.status_code)
    assert "Basic" in refused.headers["WWW-Authenticate"]
    assert "stuck-consumer" == json.loads(answered.json()["result"]["content"][0]["text"])["rule"]


def until_answered(url):
    """The first answer of a server that starts."""
    until = time.monotonic() + 60
    while True:
        try:
            return requests.post(url, json={}, timeout=10)
        except requests.ConnectionError:
            assert time.monotonic() < until, "not reachable within 60 s"
            time.sleep(0.1)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--http", "0.0.0.0:0"], "is not loopback, and everybody there could read all findings"),
        (["--http", "localhost"], "invalid listen address 'localhost'"),
        (["--exporter", "http://ann:hush@host:9419"], "give its URL without user and password"),
        (["--username", "ann"], "belong together"),
        (["--rollups", "/no/such"], "/no/such is not a directory"),
    ],
)
def test_a_wrong_option_is_one_line(words, line):
    """With exit code 3."""
    done = subprocess.run(
        [sys.executable, "-m", "ackscope", "mcp", *words], capture_output=True, text=True, check=False
    )

    assert (3, 1) == (done.returncode, done.stderr.count("\n"))
    assert line in done.stderr
    assert "hush" not in done.stderr


def test_an_answer_is_cut_where_it_is_longest():
    """Lists first, then texts, down to nothing but the number of what is missing."""
    many = json.loads(bounded({"few": [1, 2], "many": ["x" * 50] * 200}))
    long = json.loads(bounded({"text": "x" * 9000, "other": "y" * 100}))

    assert ([1, 2], {"many": 200 - len(many["many"])}) == (many["few"], many["cut"])
    assert ("y" * 100, {"texts": 1}) == (long["other"], long["cut"])
    assert long["text"].endswith(" ...")
    assert {"a": 1} == json.loads(bounded({"a": 1}))
    assert '{"a":"x\\u202ey"}' == bounded({"a": "x\u202ey"})
