"""Receivers as configured: validation, the test notification, reloads."""

import pytest
import yaml

from ackscope.__main__ import main
from ackscope.clock import SystemClock
from ackscope.findings import Subject
from ackscope.triage import Triage
from diagnosis.text import Cluster
from exporter.delivery.delivery import FindingDelivery
from exporter.delivery.settings import FindingDeliverySettings
from exporter.triage.store import TriageStore
from tests.unit.exporter.delivery.receiving import receiving
from tests.unit.exporter.made import WALL, Verdicts, eventually, finding

SHOP = {"shop": {"management": {"url": "http://monitor:secret@127.0.0.1:9"}}}


def configured(folder, delivery):
    """A file with this delivery."""
    path = folder / "ackscope.yml"
    path.write_text(yaml.safe_dump({"clusters": SHOP, "delivery": delivery}, sort_keys=False))
    return path


def hook(url, **more):
    """Settings with one receiver `hook`."""
    return {"receivers": {"hook": {"webhook": {"url": url}, **more}}}


WRONG = [
    ({"receivers": {"a": {}}}, "delivery.receivers.a: set one of alertmanager, webhook and apprise"),
    (
        {"receivers": {"a": {"webhook": {"url": "http://h"}, "alertmanager": {"url": "http://h"}}}},
        "delivery.receivers.a: set one of alertmanager, webhook and apprise",
    ),
    (
        {"receivers": {"a": {"alertmanager": {"url": "alertmanager:9093"}}}},
        "delivery.receivers.a.alertmanager.url: 'alertmanager:9093' is not an HTTP address",
    ),
    (
        {"receivers": {"a": {"alertmanager": {"url": "http://ann:hush@h:9093"}}}},
        "delivery.receivers.a.alertmanager.url: has credentials; use username and password_file",
    ),
    (hook("hooks.example/T0/hush"), "delivery.receivers.hook: webhook: url: not an HTTP address"),
    (hook("http://h", repeat="5s"), "delivery.receivers.hook: repeat: must be at least 60 s, or 0 for never"),
    (
        {"receivers": {"a": {"webhook": {"url_file": "/no/such"}}}},
        "delivery.receivers.a: webhook: url_file: /no/such cannot be read (No such file or directory)",
    ),
    (
        {"receivers": {"a": {"apprise": {"urls": ["json://localhost/", "slak://hush"]}}}},
        "delivery.receivers.a: apprise: address 2 (slak://) is not one of Apprise",
    ),
    (
        {"receivers": {"a": {"apprise": {"urls": ["slack://T01234567/B_hush/hush/#rabbitmq"]}}}},
        "delivery.receivers.a: apprise: address 1: Apprise does not accept this slack:// address; check its tokens",
    ),
    (
        {"receivers": {"a": {"apprise": {"urls": ["https://hooks.example/T0/hush"]}}}},
        "apprise: address 1: Apprise knows no service at this https:// address; write it with the scheme of",
    ),
    (
        {"receivers": {"a": {"apprise": {}}}},
        "delivery.receivers.a: apprise: set urls or urls_file, one of them",
    ),
    (
        {**hook("http://h"), "routes": [{"receiver": "hok"}]},
        "delivery: routes: unknown receiver 'hok'; known: hook",
    ),
    (
        {"receivers": {n: {"webhook": {"url": "http://h"}} for n in "ab"}, "routes": [{"receiver": "a"}]},
        "delivery: routes: no route leads to b; add one, or remove the receiver",
    ),
    (
        {**hook("http://h"), "routes": [{"receiver": "hook", "severities": ["urgent"]}]},
        "delivery.routes.0.severities.0: must be 'critical', 'warning' or 'info'",
    ),
    (hook("http://h", quiet=[{"start": "22", "end": "07:00"}]), "invalid time '22'; write it in quotes, as in '22:00'"),
    (
        hook("http://h", quiet=[{"start": "22:00", "end": "07:00", "timezone": "Berlin"}]),
        "unknown time zone 'Berlin'; write UTC or a name such as Europe/Berlin",
    ),
    (hook("http://h", repeet="1h"), "delivery.receivers.hook.repeet: unknown key, did you mean 'repeat'?"),
]


@pytest.mark.parametrize(("delivery", "line"), WRONG)
def test_a_wrong_receiver_is_one_line_without_secrets(delivery, line, tmp_path, capsys):
    """It names the key and says what to do; exit code 3."""
    code = main(["exporter", "--config", str(configured(tmp_path, delivery)), "--check-config"])
    reported = capsys.readouterr().err

    assert (3, 1) == (code, reported.count("\n"))
    assert line in reported
    assert "hush" not in reported


def test_the_summary_of_a_valid_file_names_the_receivers(tmp_path, capsys):
    """But not their addresses."""
    path = configured(tmp_path, hook("http://127.0.0.1:9/hush"))

    assert 0 == main(["exporter", "--config", str(path), "--check-config"])
    assert "notifies hook" in (reported := capsys.readouterr().out)
    assert "hush" not in reported


def test_a_test_notification_reaches_every_receiver(tmp_path, capsys):
    """A receiver that is away is reported; one can be chosen."""
    with receiving() as one, receiving() as other:
        path = configured(
            tmp_path,
            {
                "receivers": {
                    "one": {"webhook": {"url": one.url}},
                    "chat": {"apprise": {"urls": [f"json://127.0.0.1:{other.port}/"]}},
                    "gone": {"alertmanager": {"url": "http://127.0.0.1:9"}},
                }
            },
        )
        code, lines = main(["notify", "--config", str(path)]), capsys.readouterr().out.splitlines()
        chosen = main(["notify", "--config", str(path), "--receiver", "one"])

        assert (2, 1) == (len(one.arrived), len(other.arrived))
    assert "test" == one.arrived[0]["events"][0]["event"]
    assert (3, 0) == (code, chosen)
    assert [
        "one (webhook): accepted",
        "chat (apprise): accepted",
        "gone (alertmanager): not delivered: 127.0.0.1: no connection",
    ] == lines


def test_a_test_notification_needs_a_receiver(tmp_path, capsys):
    """The nearest name is suggested."""
    empty = main(["notify", "--config", str(configured(tmp_path, {}))])
    unknown = main(["notify", "--config", str(configured(tmp_path, hook("http://h"))), "--receiver", "hok"])
    reported = capsys.readouterr().err

    assert (3, 3) == (empty, unknown)
    assert "no receiver configured; add delivery.receivers (docs/delivery.md)" in reported
    assert "no receiver 'hok', did you mean 'hook'?; known: hook" in reported


class Delivering:
    """Delivery with threads; `found` is what diagnosis sees."""

    def __init__(self, settings):
        self.triage = TriageStore()
        self.settings = FindingDeliverySettings.model_validate(settings)
        self.delivery = FindingDelivery(self.settings, ["shop"], self.triage, lambda _: Cluster(), SystemClock())
        self.delivery.start()

    def find(self, *names):
        """A diagnosis."""
        found = [finding(subject=Subject(kind="queue", vhost="/", name=name)) for name in names]
        self.delivery.observe(Verdicts(findings=tuple(found)).of("shop"))

    def apply(self, settings, clusters=("shop",)):
        """A reload."""
        self.delivery.apply(FindingDeliverySettings.model_validate(settings), clusters)


@pytest.fixture
def delivering():
    """Makes one, and stops it."""
    made = []

    def make(settings):
        made.append(Delivering(settings))
        return made[0]

    yield make
    for it in made:
        it.delivery.stop()


def test_a_reload_repeats_nothing_for_the_same_destination(delivering):
    """Other quiet hours, other repetition: the receiver knows what it got."""
    with receiving() as receiver:
        it = delivering(hook(receiver.url))
        it.find("a")
        eventually(lambda: receiver.events() == [("start", "a")])
        it.apply(hook(receiver.url, repeat="2h"))
        it.find("a", "b")
        eventually(lambda: len(receiver.events()) == 2)

        assert [("start", "a"), ("start", "b")] == receiver.events()


def test_a_new_destination_gets_what_is_present(delivering):
    """The old one gets nothing more."""
    with receiving() as receiver, receiving() as other:
        it = delivering(hook(receiver.url))
        it.find("a")
        eventually(lambda: receiver.events() == [("start", "a")])
        it.apply(hook(other.url))
        it.find("a")
        eventually(lambda: other.events() == [("start", "a")])
        it.apply({})
        it.find()

        assert ({}, [("start", "a")]) == (it.delivery.stats(), receiver.events())


def test_while_clusters_may_be_discovered_no_finding_is_ended(delivering):
    """The Kubernetes API may answer late: a cluster that is not known yet was not removed."""
    with receiving() as receiver:
        it = delivering(hook(receiver.url))
        it.find("a")
        eventually(lambda: receiver.events() == [("start", "a")])
        it.apply(hook(receiver.url), clusters=None)
        it.find("a", "b")
        eventually(lambda: len(receiver.events()) == 2)

        assert [("start", "a"), ("start", "b")] == receiver.events()


def test_a_cluster_that_is_removed_ends_its_findings(delivering):
    """With the reason."""
    with receiving() as receiver:
        it = delivering(hook(receiver.url))
        it.find("a")
        eventually(lambda: receiver.events() == [("start", "a")])
        it.apply(hook(receiver.url), clusters=["depot"])
        eventually(lambda: receiver.events()[1:] == [("resolve", "a")])

        assert "removed" == receiver.arrived[1]["events"][0]["reason"]


def test_silences_of_a_receiver_are_added_to_triage():
    """A mute by a person takes precedence; the source itself does not see its own."""
    store = TriageStore()
    key = finding().key
    mute = Triage(muted_until="2100-01-01T00:00:00Z", muted_by="ann in Alertmanager", mute_reason="planned")
    store.silence("pager", {"shop": {key: mute}})
    seen, own = store.of("shop"), store.of("shop", without="pager")
    store.silence("pager", {})

    assert ("ann in Alertmanager", True) == (seen[key].muted_by, seen[key].mutes(finding().severity, WALL))
    assert ({}, {}) == (own, store.of("shop"))
