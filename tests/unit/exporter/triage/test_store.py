from dataclasses import replace
from stat import S_IMODE

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ackscope.clock import Instant
from ackscope.errors import DataError, UsageError
from ackscope.findings import Inconclusive, Severity, Subject
from ackscope.triage import Triage
from exporter.triage import store as stores
from exporter.triage.store import FORGET_SECONDS, TriageChange, TriageStore, number_muted
from tests.unit.exporter.made import NOW, Verdicts, finding

HOUR = 3600.0
ACKNOWLEDGE = TriageChange(by="ann", acknowledged=True)
OWN = TriageChange(by="ann", owner="bob")
MUTE = TriageChange(by="ann", mute_seconds=HOUR, reason="planned")
TEXT = st.text(max_size=200)


def later(seconds):
    """A moment after `NOW`."""
    return Instant(wall=NOW.wall + seconds, mono=NOW.mono + seconds)


@pytest.fixture
def path(tmp_path):
    """A file in a folder that does not exist yet."""
    return tmp_path / "state" / "triage.json"


def opened(path):
    """The store of the cluster `shop`."""
    return TriageStore(path, ["shop"])


@pytest.mark.parametrize("change", [ACKNOWLEDGE, OWN, MUTE])
def test_a_change_survives_a_restart(path, change):
    """It is in the file when the call returns, and nobody else can read that."""
    after = opened(path).change("shop", finding(), change, NOW)

    assert Triage() != after
    assert {finding().key: after} == opened(path).of("shop")
    assert 0o600 == S_IMODE(path.stat().st_mode)
    assert [path] == list(path.parent.iterdir())


def test_triage_of_clusters_that_may_be_discovered_survives_a_restart(path):
    """They are not known yet when the file is read; of all others it is dropped."""
    after = opened(path).change("shop", finding(), ACKNOWLEDGE, NOW)

    assert {finding().key: after} == TriageStore(path, None).of("shop")
    assert {} == TriageStore(path, ["depot"]).of("shop")


def test_changes_add_up_and_can_be_withdrawn(path):
    """Each changes its own part; a finding without any is forgotten."""
    store = opened(path)
    for change in (ACKNOWLEDGE, OWN, MUTE):
        said = store.change("shop", finding(), change, NOW)

    assert ("ann", "bob", "ann", "planned") == (said.acknowledged_by, said.owner, said.muted_by, said.mute_reason)
    assert "2023-11-14T23:13:20Z" == said.muted_until

    for change in (TriageChange(acknowledged=False), TriageChange(owner=""), TriageChange(mute_seconds=0)):
        said = store.change("shop", finding(), change, NOW)

    assert Triage() == said
    assert {} == store.of("shop")
    assert {"version": 1, "entries": []} == orjson.loads(path.read_bytes())


def test_a_mute_ends_by_itself(path):
    """At its time, without a request; the next diagnosis removes it from the file."""
    store = opened(path)
    store.change("shop", finding(), MUTE, NOW)
    (said,) = store.of("shop").values()

    assert said.mutes(Severity.WARNING, NOW.wall + HOUR - 1)
    assert not said.mutes(Severity.WARNING, NOW.wall + HOUR)

    store.observe(Verdicts(findings=(finding(),)).of("shop"), later(HOUR))

    assert {} == store.of("shop") == opened(path).of("shop")


def test_a_mute_covers_no_higher_severity(path):
    """A muted warning that becomes critical, or that has a critical consequence, counts."""
    store = opened(path)
    store.change("shop", finding(), MUTE, NOW)
    critical = finding(severity=Severity.CRITICAL)
    cause = finding(consequences=(finding(rule="stuck-consumer", severity=Severity.CRITICAL),))
    said = store.of("shop")

    assert [1, 0, 0] == [number_muted((it,), said, NOW.wall) for it in (finding(), critical, cause)]
    assert 1 == number_muted((finding(severity=Severity.INFO), critical), {**said}, NOW.wall)


def test_a_finding_that_returns_soon_is_the_same_one(path):
    """Acknowledgement and owner end some time after the finding; a mute holds until its time."""
    store = opened(path)
    for change in (ACKNOWLEDGE, OWN, replace(MUTE, mute_seconds=10 * HOUR)):
        store.change("shop", finding(), change, NOW)
    absent, present = Verdicts().of("shop"), Verdicts(findings=(finding(),)).of("shop")

    store.observe(absent, later(1))
    store.observe(present, later(FORGET_SECONDS))
    store.observe(absent, later(FORGET_SECONDS + 1))
    store.observe(absent, later(2 * FORGET_SECONDS))
    (said,) = store.of("shop").values()
    assert ("ann", "bob") == (said.acknowledged_by, said.owner)

    store.observe(absent, later(2 * FORGET_SECONDS + 1))
    (said,) = opened(path).of("shop").values()
    assert (None, "", "ann") == (said.acknowledged_at, said.owner, said.muted_by)


def test_findings_of_an_inconclusive_rule_are_not_absent(path):
    """While the broker is unreachable, nothing is forgotten."""
    store = opened(path)
    store.change("shop", finding(), ACKNOWLEDGE, NOW)
    gap = Inconclusive(rule="no-consumer", reason="no_queues")
    for unknown in (Verdicts(inconclusive=(gap,)).of("shop"), Verdicts(checked=()).of("shop")):
        store.observe(unknown, later(1))
        store.observe(unknown, later(2 * FORGET_SECONDS))

    assert 1 == len(store.of("shop"))


def test_a_consequence_is_present(path):
    """It is under its cause."""
    store = opened(path)
    store.change("shop", finding(), ACKNOWLEDGE, NOW)
    cause = finding(rule="stuck-consumer", consequences=(finding(),))
    for seconds in (1, 2 * FORGET_SECONDS):
        store.observe(Verdicts(findings=(cause,)).of("shop"), later(seconds))

    assert 1 == len(store.of("shop"))


def test_the_number_is_limited(path, monkeypatch):
    """A known finding can still be changed."""
    monkeypatch.setattr(stores, "MAX_ENTRIES", 1)
    store = opened(path)
    store.change("shop", finding(), ACKNOWLEDGE, NOW)
    store.change("shop", finding(), OWN, NOW)
    other = finding(subject=Subject(kind="queue", vhost="/", name="other"))

    with pytest.raises(UsageError, match=r"1 findings are already acknowledged, owned or muted"):
        store.change("shop", other, ACKNOWLEDGE, NOW)


def test_a_file_that_cannot_be_written_changes_nothing(tmp_path):
    """The error names the file."""
    path = tmp_path / "a file"
    path.write_text("")
    store = opened(path / "triage.json")

    with pytest.raises(DataError, match=r"triage.json: cannot be written \(file exists\)"):
        store.change("shop", finding(), ACKNOWLEDGE, NOW)
    assert {} == store.of("shop")


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"version":2,"entries":[]}', b'{"version":1,"entries":[{"cluster":1}]}']
)
def test_an_invalid_file_is_renamed(tmp_path, content):
    """The exporter starts, and nothing is lost."""
    path = tmp_path / "triage.json"
    path.write_bytes(content)

    assert {} == opened(path).of("shop")
    assert not path.exists()
    assert content == path.with_name("triage.json.invalid").read_bytes()


def test_entries_of_removed_clusters_are_dropped(path):
    """At the next start."""
    opened(path).change("shop", finding(), ACKNOWLEDGE, NOW)

    assert {} == TriageStore(path, ["depot"]).of("shop")


@given(name=TEXT, vhost=TEXT, by=TEXT, owner=TEXT, reason=TEXT)
def test_any_text_is_the_same_after_a_restart(tmp_path_factory, name, vhost, by, owner, reason):
    """Names of queues and people may have any characters."""
    path = tmp_path_factory.mktemp("triage") / "triage.json"
    subject = finding(subject=Subject(kind="queue", vhost=vhost, name=name))
    change = TriageChange(by=by, acknowledged=True, owner=owner, mute_seconds=HOUR, reason=reason)
    after = opened(path).change("shop", subject, change, NOW)

    assert {subject.key: after} == opened(path).of("shop")
