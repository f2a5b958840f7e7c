"""The recorded results of played faults, and the page that is made from them."""

from dataclasses import asdict, replace
from pathlib import Path

import pytest

from ackscope.errors import UsageError
from bench.diagnosis.coverage import CoverageColumn, columns, page
from bench.diagnosis.faults import Row, _see
from bench.diagnosis.record import RESULTS, FaultResult, read_results, record, results_file
from bench.diagnosis.scene import SOURCES, Held, never_read
from lab.brokers import SUITES, minor
from lab.faults import FAULTS

ROOT = Path(__file__).parents[3]


def result(fault="stuck-consumer", outcome="named", **fields):
    """Return what a run recorded about a fault."""
    spec = FAULTS[fault]
    usual = {"protocol": spec.protocol, "broker": "4.3.6", "nodes": spec.nodes, "date": "2026-11-26"}
    usual |= {"seconds": 12, "client": "right"} if outcome == "named" else {}
    return FaultResult(**{"fault": fault, "rule": spec.rule, "outcome": outcome, **usual, **fields})


def column(*results, version="4.3", source="all"):
    """Return a column with these results."""
    return CoverageColumn(version, source, {each.fault: each for each in results})


def cells(text, first):
    """Return the cells of the last table row that begins with this cell."""
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in text.splitlines() if line[:2] == "| "]
    return [row for row in rows if row[0] == first][-1][1:]


def test_the_page_is_made_from_the_recorded_results():
    """`python -m bench.diagnosis.coverage > docs/coverage.md`."""
    assert page(columns()) == (ROOT / "docs/coverage.md").read_text()


def test_recorded_results_are_of_faults_that_exist():
    """A fault that was renamed, or that another rule should name now, is played again."""
    for version in SUITES:
        for source in SOURCES:
            for each in read_results(results_file(version, source)):
                spec = FAULTS[each.fault]

                assert (spec.rule, spec.protocol, spec.nodes) == (each.rule, each.protocol, each.nodes)
                assert version == minor(each.broker)
                assert version in spec.versions


def test_no_file_of_results_is_ignored():
    """Each belongs to a version and a source."""
    known = {results_file(version, source) for version in SUITES for source in SOURCES}

    assert set() == set(RESULTS.iterdir()) - known


def test_every_fault_has_a_result_or_is_shown_as_not_played():
    """In every column, and nothing is left empty."""
    shown = [each for each in columns() if any(each.result(spec) for spec in FAULTS.values())]
    text = page(columns())
    for name, spec in FAULTS.items():
        rule, client, nodes, *found = cells(text, name)

        assert (f"[{spec.rule}]", spec.protocol, str(spec.nodes), len(shown)) == (rule, client, nodes, len(found))
        for each, cell in zip(shown, found, strict=True):
            played = each.result(spec) is not None

            assert played == (cell not in {"-", "not played", "not applicable"})
            assert ("-" == cell) == (each.version not in spec.versions)


def test_each_word_has_its_meaning():
    """Not played, not applicable and silent are three things."""
    distinguished = column(
        result("stuck-consumer"),
        result("amqp10-slow", client=""),
        result("amqp10-rejects", "inconclusive", reason="outcomes_not_reported", because="It is not reported."),
        result("no-consumer", "silent", also_said=["info orphan-queue"]),
    )
    text = page([distinguished, column(result("disk-alarm", client=""), source="prometheus")])

    assert ["named, 12 s, client", "not played"] == cells(text, "stuck-consumer")[3:]
    assert ["named, 12 s", "not played"] == cells(text, "amqp10-slow")[3:]
    assert ["[inconclusive][outcomes_not_reported]", "not played"] == cells(text, "amqp10-rejects")[3:]
    assert ["**silent**", "not played"] == cells(text, "no-consumer")[3:]
    assert ["not played", "named, 12 s"] == cells(text, "disk-alarm")[3:]
    assert ["-", "-"] == cells(text, "global-prefetch")[3:]
    assert "### outcomes_not_reported\n\nIt is not reported.\n\nRules: [reject-loss].\n" in text
    assert "- 4.3: `no-consumer` ([no-consumer]). Unexpected findings during this time: info orphan-queue." in text


def test_protocols_are_rows_of_their_own():
    """What is named of AMQP 0-9-1 clients says nothing about others."""
    text = page([column(result("slow-consumer"), result("amqp10-slow", client=""), result("mqtt-slow", "silent"))])
    rows = [line.split("|")[2:4] for line in text.splitlines() if line.startswith("| [slow-consumer] ")]

    assert [
        ["AMQP 0-9-1", "named"],
        ["AMQP 1.0", "named, no client"],
        ["stream", "not played"],
        ["MQTT", "**silent**"],
    ] == [[cell.strip() for cell in row] for row in rows]


def test_named_faults_are_counted_by_protocol():
    """Of those that were played; 3.10 has no MQTT fault."""
    left_open = result("amqp10-rejects", "inconclusive", reason="outcomes_not_reported")
    alone = result("amqp10-no-credit", client="other")
    text = page([column(result("amqp10-slow"), alone, left_open), column(result("stuck-consumer"), version="3.10")])
    shown = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.count("|") == 4]

    assert ["AMQP 0-9-1", "not played", "1 of 1"] in shown
    assert ["AMQP 1.0", "2 of 3, 1 without client, 1 inconclusive", "-"] in shown
    assert ["MQTT", "not played", "-"] in shown


def test_several_faults_of_a_rule_are_counted():
    """Without those that the version does not have."""
    named = [result(name) for name in ("channel-limit-reached", "connection-limit-reached")]
    text = page([column(*named), column(named[0], version="3.10"), column(result("memory-alarm"), version="4.0")])
    row = next(line for line in text.splitlines() if line.startswith("| [connection-limit-reached] "))

    assert ["2 named", "1 named, 1 not played", "not played"] == [cell.strip() for cell in row.split("|")[3:-1]]


def test_the_summary_has_every_version_and_source():
    """Also those that were not played."""
    found = [column(result(), result("no-consumer", "silent")), column(version="3.10", source="prometheus")]
    first, second = (line.split("|")[1:-1] for line in page(found).splitlines() if "management API with stat" in line
                     or "no probes" in line)  # fmt: skip

    played = ["2", "1", "12", "0", "1", "0"]
    assert ["4.3.6", *played] == [cell.strip() for cell in (first[0], *first[3:9])]
    assert ["3.10", "0", "-"] == [cell.strip() for cell in (second[0], second[3], second[-1])]


def test_a_result_of_another_rule_is_not_played():
    """Its fault was given to another rule since."""
    moved = replace(result(), rule="slow-consumer")

    assert "not played" == column(moved).word(FAULTS["stuck-consumer"])


def test_a_partial_run_replaces_only_its_own_lines(tmp_path):
    """The file stays sorted, and a run with the same result changes no byte."""
    path = results_file("4.3", "all", tmp_path / "results")
    record(path, [result("stuck-consumer"), result("no-consumer", "silent")])
    before = path.read_bytes()
    record(path, [result("no-consumer", "silent")])

    assert before == path.read_bytes()

    record(path, [result("no-consumer", seconds=3)])

    assert [("no-consumer", 3), ("stuck-consumer", 12)] == [(each.fault, each.seconds) for each in read_results(path)]
    assert before.splitlines()[1] == path.read_bytes().splitlines()[1]


def test_a_damaged_line_is_one_line(tmp_path):
    """File and line."""
    path = tmp_path / "4.3-all.jsonl"
    record(path, [result()])
    path.write_bytes(path.read_bytes() + b'{"fault": "no-consumer"}\n')

    with pytest.raises(UsageError, match=r"^4\.3-all\.jsonl, line 2: .*; play the fault again with --record$"):
        read_results(path)


def row(**fields):
    """Return a row of a run as `--json` prints it."""
    usual = {"broker": "4.3.6", "nodes": 1, "fault": "amqp10-slow", "rule": "slow-consumer", "protocol": "AMQP 1.0"}
    return asdict(Row(**{**usual, "commit": "db7810e4", "date": "2026-11-26", **fields}))


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"seconds": 21.6, "severity": "info", "client": "right"}, result("amqp10-slow", seconds=22, severity="info")),
        (
            {"reported": 9.2, "severity": "info", "client": "other"},
            result("amqp10-slow", seconds=9, severity="info", client="other"),
        ),
        (
            {"reason": "not_read", "unsure": "sessions never read (127.0.0.1:5672 refused)"},
            result("amqp10-slow", "inconclusive", reason="not_read", because="sessions never read (HOST:PORT refused)"),
        ),
        (
            {"others": ["info x connection 127.0.0.1:1 -> 127.0.0.1:2", "info x queue a"], "client": "other"},
            result("amqp10-slow", "silent", also_said=["info x"]),
        ),
    ],
)
def test_a_row_of_a_run_becomes_a_result_without_anything_of_the_machine(fields, expected):
    """No port, no subject with one, no fraction of a second."""
    assert replace(expected, commit="db7810e4") == FaultResult.of(row(**fields))


def test_a_rule_that_cannot_run_at_all_leaves_its_fault_open():
    """Its reason names no object; other reasons must name the queue or the client of the fault."""
    held = Held(FAULTS["amqp10-slow"], {"kind": "queue", "vhost": "/", "name": "fault.amqp10-slow"}, 0.0)
    gap = {"rule": "slow-consumer", "because": "The list of clients is missing."}

    assert held.is_left_open_by({**gap, "reason": "no_client_lists"})
    assert not held.is_left_open_by({**gap, "reason": "sessions_not_reported"})
    assert ["right", "other", ""] == [
        held.client_in(each) for each in (["shop", "fault-amqp10-slow"], ["shop"], [])
    ]  # fmt: skip


def test_a_client_without_a_name_is_known_by_its_connection():
    """4.0 names no AMQP 1.0 client: the finding names its connection, or lists it among others."""
    subject = {"kind": "queue", "vhost": "/", "name": "fault.amqp10-slow"}
    held = Held(FAULTS["amqp10-slow"], subject, 0.0, ("10.0.0.7:50001",))
    own, other = (f"10.0.0.{peer} -> 10.0.0.1:5672" for peer in ("7:50001", "7:500011"))

    assert ["right", "among", "other", "other", ""] == [
        held.client_in([], connections, one_of)
        for connections, one_of in (([own], []), ([], [other, own]), ([other], []), ([], [other]), ([], []))
    ]


def test_a_finding_without_the_client_is_a_result_of_its_own():
    """It is about the right object; a later one that names the client counts as well."""
    held = Held(FAULTS["mqtt-slow"], {"kind": "queue", "vhost": "/", "name": "q"}, 0.0)
    subject = {"kind": "queue", "vhost": "/", "name": "q"}
    alone, other = (
        {
            "rule": "slow-consumer",
            "severity": "info",
            "subject": subject,
            "involved": {"clients": clients, "connections": [], "one_of": []},
        }
        for clients in ([], ["fault-mqtt-slow"])
    )
    seen = Row(broker="4.3.6", nodes=1, fault="mqtt-slow")
    _see(held, [({**alone, "rule": "stuck-consumer"}, None)], seen)

    assert (None, None) == (seen.reported, seen.seconds)

    _see(held, [(alone, None)], seen)
    first = seen.reported

    assert (None, "") == (seen.seconds, seen.client)

    _see(held, [(alone, None), ({**other, "severity": "warning"}, None)], seen)

    assert (first, "right", "warning") == (seen.reported, seen.client, seen.severity)
    assert seen.seconds is not None


def test_what_a_source_never_has_is_known_from_the_pages_of_the_rules():
    """Clients need statistics, channels need 4.0; settings need a management API; counters by queue need 4.0."""
    assert [False, True, True] == [never_read("competing-applications", "4.3", source) for source in SOURCES]
    assert [False, False, False] == [never_read("prefetch-hoarder", "4.3", source) for source in SOURCES]
    assert [False, False, False] == [never_read("stuck-consumer", "4.3", source) for source in SOURCES]
    assert [False, False, False] == [never_read("disk-alarm", "4.3", source) for source in SOURCES]
    assert [False, True] == [never_read("maxlen-drop-head", each, "statistics-off") for each in ("4.3", "3.10")]
