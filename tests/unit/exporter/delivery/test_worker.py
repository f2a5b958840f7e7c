"""A worker and a real HTTP receiver."""

import hashlib
import hmac
from http import HTTPStatus

import pytest

from ackscope.findings import Severity, Subject
from exporter.delivery.record_file import read_record
from tests.unit.exporter.delivery.receiving import Fed, HttpReceiver, receiving
from tests.unit.exporter.made import SetClock, Verdicts, eventually, finding


def queue(name, **changes):
    """A finding about a queue."""
    return finding(subject=Subject(kind="queue", vhost="/", name=name), **changes)


@pytest.fixture
def receiver():
    """A receiver that accepts."""
    with receiving() as it:
        yield it


def fed(receiver: HttpReceiver, **settings):
    """A worker for this receiver."""
    return Fed({"webhook": {"url": receiver.url, "secret": "hush"}}, **settings)


def test_a_message_has_finding_next_steps_and_links(receiver):
    """As docs/delivery.md describes it."""
    it = fed(receiver)
    it.diagnosed(queue("orders", consequences=(queue("other", rule="no-consumer"),)))
    (message,) = receiver.arrived
    (event,) = message["events"]

    assert ("ackscope.delivery", 1, "r") == (message["schema"], message["version"], message["receiver"])
    assert message["title"].startswith("[shop] warning: Queue 'orders'")
    assert "\n1. " in message["text"]
    assert "https://ackscope.example/runbook?rule=no-consumer" in message["text"]
    assert "This also explains:" in message["text"]
    assert ("start", "shop", "warning", None) == tuple(
        event[name] for name in ("event", "cluster", "severity", "ended_at")
    )
    assert event["finding"]["next_steps"]
    assert event["finding"]["evidence"]
    assert "other" == event["finding"]["consequences"][0]["subject"]["name"]


def test_a_message_is_signed(receiver):
    """HMAC-SHA256 of time, dot and body."""
    fed(receiver).diagnosed(queue("orders"))
    headers, body = receiver.headers[0]
    signed = headers["X-Ackscope-Timestamp"].encode() + b"." + body

    assert f"sha256={hmac.new(b'hush', signed, hashlib.sha256).hexdigest()}" == headers["X-Ackscope-Signature"]


def test_nothing_is_lost_and_nothing_is_repeated_while_the_receiver_is_away(receiver):
    """Afterwards everything that is present is delivered once, and one summary has what came and went."""
    it = fed(receiver)
    it.diagnosed(queue("known"))
    receiver.away()
    for number in range(60):
        short = [queue(f"short-{number}")] if number % 20 == 0 else []
        it.diagnosed(queue("known"), queue("lasts"), *short, later=30)
    waiting = it.worker.stats()
    it.diagnosed(queue("lasts"), later=30)
    receiver.up()
    for _ in range(5):
        it.diagnosed(queue("lasts"), later=60)
    titles = [each["title"] for each in receiver.arrived]

    assert [
        ("start", "known"),
        ("resolve", "known"),
        ("start", "lasts"),
        ("missed", "short-0"),
        ("missed", "short-20"),
        ("missed", "short-40"),
    ] == sorted(receiver.events(), key=lambda event: (event != ("start", "known"), event[0] == "missed", event))
    assert "[shop] 3 findings began and ended while nothing could be delivered" in titles
    assert 4 == len(titles)
    assert 4 == waiting.waiting
    assert 20 < waiting.failed < 60
    assert (0, 4) == (it.worker.stats().waiting, it.worker.stats().sent)


def test_many_findings_at_once_are_one_message(receiver):
    """A pager does not ring fifty times."""
    fed(receiver).diagnosed(*[queue(f"q{number:02}") for number in range(50)])

    assert ["[shop] 50 findings: 50 warning"] == [each["title"] for each in receiver.arrived]
    assert receiver.arrived[0]["text"].endswith("- and 30 more")
    assert 50 == len(receiver.events())


def test_attempts_become_rarer(receiver):
    """From one second to one minute."""
    it = fed(receiver)
    receiver.away()
    pauses = [round(it.diagnosed(queue("a"), later=61)) for _ in range(8)]

    assert [1, 2, 4, 8, 15, 15, 15, 15] == pauses
    assert 8 == it.worker.stats().failed


def test_a_receiver_names_the_time_of_the_next_attempt(receiver):
    """`Retry-After`, in seconds."""
    it = fed(receiver)
    receiver.status, receiver.answer_headers = HTTPStatus.TOO_MANY_REQUESTS, {"Retry-After": "120"}
    it.diagnosed(queue("a"))
    receiver.status = HTTPStatus.OK
    for _ in range(11):
        it.diagnosed(queue("a"), later=10)
    early = receiver.events()
    it.diagnosed(queue("a"), later=11)

    assert ([], [("start", "a")]) == (early, receiver.events())


def test_a_rejected_message_does_not_stop_the_others(receiver):
    """It is tried again."""
    it = fed(receiver)
    receiver.status = HTTPStatus.BAD_REQUEST
    it.diagnosed(queue("a"), queue("b"))

    assert (2, 2) == (it.worker.stats().failed, it.worker.stats().waiting)


def test_a_restart_repeats_nothing_and_tells_what_ended(receiver, tmp_path):
    """From the file, in which there is no secret."""
    path = tmp_path / "r.json"
    before = fed(receiver, path=path)
    before.diagnosed(queue("ended", severity=Severity.CRITICAL), queue("lasts"))
    content = read_record(path, "here")
    clock = SetClock(before.clock.mono + 5)
    after = fed(receiver, path=path, settle=60.0, clock=clock, incidents=content.restored())
    after.diagnosed()
    after.diagnosed(queue("lasts"), later=30)
    between = receiver.events()
    after.diagnosed(queue("lasts"), later=31)

    assert [("start", "ended"), ("start", "lasts")] == between
    assert ("resolve", "ended") == receiver.events()[-1]
    assert "resolved: Queue 'orders'" in receiver.arrived[-1]["title"]
    assert "hush" not in path.read_text()
    assert () == read_record(path, "elsewhere").incidents


def test_a_damaged_record_is_put_aside(tmp_path):
    """The exporter starts anyway."""
    path = tmp_path / "r.json"
    path.write_text("{")

    assert () == read_record(path, "here").incidents
    assert path.with_name("r.json.invalid").exists()


def test_the_same_message_has_the_same_id(receiver):
    """A receiver that got it just before a crash can recognize it."""
    for _ in range(2):
        it = fed(receiver)
        it.diagnosed(queue("a"))
    one, two = receiver.arrived

    assert one["id"] == two["id"]


def test_errors_name_the_host_and_no_secret(receiver, caplog):
    """The address of a webhook is one."""
    it = Fed({"webhook": {"url": f"{receiver.url}/T0/hush"}})
    receiver.away()
    it.diagnosed(queue("a"))

    assert "127.0.0.1: no connection" in caplog.text
    assert "hush" not in caplog.text


def test_apprise_delivers_to_a_real_receiver(receiver):
    """Through its `json://`; title, text and kind are those of the finding."""
    it = Fed({"apprise": {"urls": [f"json://127.0.0.1:{receiver.port}/hook"]}})
    it.diagnosed(queue("orders", severity=Severity.CRITICAL))
    it.diagnosed()
    first, second = receiver.arrived

    assert first["title"].startswith("[shop] critical: Queue 'orders'")
    assert "\n1. " in first["message"]
    assert ("failure", "success") == (first["type"], second["type"])
    assert second["title"].startswith("[shop] resolved: Queue 'orders'")


def test_only_the_address_of_apprise_that_failed_gets_the_message_again(receiver):
    """The other one has it."""
    with receiving() as other:
        urls = [f"json://127.0.0.1:{each.port}/hush" for each in (receiver, other)]
        it = Fed({"apprise": {"urls": urls}})
        other.away()
        it.diagnosed(queue("a"))
        other.up()
        it.diagnosed(queue("a"), later=5)

        assert (1, 1) == (len(receiver.arrived), len(other.arrived))
    assert 0 == it.worker.stats().waiting


def test_the_thread_delivers_by_itself(receiver):
    """A diagnosis wakes it; it ends when it is stopped."""
    it = fed(receiver)
    it.worker.start()
    it.worker.observe(Verdicts(findings=(queue("a"),)).of("shop"), {})
    eventually(lambda: receiver.events() == [("start", "a")])
    it.worker.stop()

    assert not it.worker._thread.is_alive()
