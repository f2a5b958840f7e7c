"""An exporter that reloads its configuration, in one process, with recorded brokers."""

import threading
from base64 import b64encode
from contextlib import contextmanager

import pytest
import requests
import yaml

from ackscope.clock import SystemClock
from ackscope.settings import load
from exporter.app import App
from exporter.settings import ExporterSettings
from tests.unit.exporter.broker.server import broker, json, serve
from tests.unit.exporter.made import eventually

OK, STAMP, RELOADS = (
    "ackscope_config_last_reload_successful",
    "ackscope_config_last_reload_success_timestamp_seconds",
    "ackscope_config_reloads_total",
)


class Served:
    """An exporter and its file."""

    def __init__(self, folder):
        self.path = folder / "ackscope.yml"
        self.exporter = None

    def write(self, clusters, **chunks):
        """Write the file: cluster name -> address of its management API, or all its settings."""
        shaped = {name: it if isinstance(it, dict) else {"url": it} for name, it in clusters.items()}
        document = {"clusters": {name: {"management": it} for name, it in shaped.items()}, "listen": "127.0.0.1:0"}
        self.path.write_text(yaml.safe_dump({**document, "poll": {"interval": "1s"}, **chunks}))

    def read(self):
        """The settings in the file."""
        return load(ExporterSettings, self.path, {})

    def get(self, path="/metrics"):
        """The text of a page."""
        return requests.get(self.exporter.url + path, timeout=10).text

    def reload(self):
        """Status and line of the answer."""
        answer = requests.post(self.exporter.url + "/-/reload", timeout=20)
        return answer.status_code, answer.text

    def value(self, sample):
        """The value of one sample; None if it is not there."""
        found = [line for line in self.get().splitlines() if line.startswith(f"{sample} ")]
        return float(found[0].rpartition(" ")[2]) if found else None

    def polled(self, cluster, times=1):
        """Wait until the overview of a cluster was read so often."""
        sample = f'ackscope_poll_attempts_total{{cluster="{cluster}",family="overview"}}'
        eventually(lambda: (self.value(sample) or 0) >= times)


@contextmanager
def serving(folder, clusters, **chunks):
    """Run an exporter of these clusters for as long as the block runs."""
    served = Served(folder)
    served.write(clusters, **chunks)
    served.exporter = App(served.read(), SystemClock(), served.read)
    served.exporter.start()
    try:
        yield served
    finally:
        served.exporter.stop()


def messages(cluster):
    """The beginning of the samples of a cluster's queues."""
    return f'rabbitmq_queue_messages{{cluster="{cluster}"'


def test_a_cluster_that_comes_is_polled_and_the_other_goes_on(tmp_path):
    """The other has the same poller, with its counts, and its series are there all the time."""
    with (
        serve(broker("4.3.6")) as shop,
        serve(broker("3.10.8")) as depot,
        serving(tmp_path, {"shop": shop.url}) as served,
    ):
        eventually(lambda: messages("shop") in served.get())
        poller = served.exporter._pollers.pollers["shop"]
        served.write({"shop": shop.url, "depot": depot.url})
        reported = served.reload()
        shown = messages("shop") in served.get()
        served.polled("depot")
        eventually(lambda: messages("depot") in served.get())

        assert served.exporter._pollers.pollers["shop"] is poller
    assert (200, "reloaded: clusters new or moved: depot; probes unchanged\n") == reported
    assert shown


def test_a_cluster_that_goes_removes_its_series_along(tmp_path):
    """At once, of metrics and of the API; its broker is asked no more."""
    with (
        serve(broker("4.3.6")) as shop,
        serve(broker("3.10.8")) as depot,
        serving(tmp_path, {"shop": shop.url, "depot": depot.url}) as served,
    ):
        eventually(lambda: messages("depot") in served.get() and messages("shop") in served.get())
        served.write({"shop": shop.url})
        reported = served.reload()
        text, findings = served.get(), served.get("/api/v1/findings")
        quiet = served.exporter._pollers.pollers
        served.polled("shop", 3)
        after = served.get()

    assert (200, "reloaded: clusters removed: depot; probes unchanged\n") == reported
    assert {"shop"} == quiet.keys()
    assert "depot" not in text + findings + after
    assert messages("shop") in text


def test_a_wrong_file_changes_nothing(tmp_path):
    """The answer has the line, metrics tell it, and the old settings go on; a good one mends it."""
    with serve(broker("4.3.6")) as shop, serving(tmp_path, {"shop": shop.url}) as served:
        eventually(lambda: messages("shop") in served.get())
        stamp = served.value(STAMP)
        served.write({"shop": shop.url}, pol={})
        reported = served.reload()
        wrong = (served.value(OK), served.value(STAMP), served.value(f'{RELOADS}{{result="failure"}}'))
        shown = messages("shop") in served.get()
        served.write({"shop": shop.url})
        repaired = served.reload()

        assert 1.0 == served.value(OK)
    line = f"not reloaded, keeping the current settings: {served.path}: pol: unknown key, did you mean 'poll'?\n"

    assert (500, line) == reported
    assert (0.0, stamp, 1.0) == wrong
    assert shown
    assert (200, "reloaded: clusters unchanged; probes unchanged\n") == repaired


def test_a_new_password_in_the_same_file_is_used(tmp_path):
    """And until the first answer with it, what was known before is shown: there is no gap."""
    password, routes = tmp_path / "password", broker("4.3.6")
    password.write_text("old\n")
    wanted = ["old"]

    def guarded(route):
        def answer(request):
            expected = f"Basic {b64encode(f'monitor:{wanted[0]}'.encode()).decode()}"
            right = request.headers["Authorization"] == expected
            (route if right else json({"error": "not_authorised"}, 401))(request)

        return answer

    with serve({path: guarded(route) for path, route in routes.items()}) as shop:
        management = {"url": f"http://{shop.where}", "username": "monitor", "password_file": str(password)}
        with serving(tmp_path, {"shop": management}) as served:
            success = 'ackscope_poll_success{cluster="shop",family="overview"}'
            eventually(lambda: served.value(success) == 1)
            wanted[0] = "new"
            eventually(lambda: served.value(success) == 0)
            password.write_text("new\n")
            reported = served.reload()
            shown = messages("shop") in served.get()
            eventually(lambda: served.value(success) == 1)

    assert (200, "reloaded: clusters changed: shop; probes unchanged\n") == reported
    assert shown


def test_another_broker_under_the_same_name_begins_again(tmp_path):
    """What the one said is not true of the other."""
    with serve(broker("4.3.6")) as shop, serving(tmp_path, {"shop": shop.url}) as served:
        eventually(lambda: messages("shop") in served.get())
        served.write({"shop": "http://127.0.0.1:1"})
        served.reload()

        assert messages("shop") not in served.get()
        eventually(lambda: served.value('ackscope_poll_success{cluster="shop",family="overview"}') == 0)
        assert messages("shop") not in served.get()


def test_what_cannot_change_while_running_is_reported(tmp_path):
    """It goes on listening where it does, and says so each time that the file says otherwise."""
    with serve(broker("4.3.6")) as shop, serving(tmp_path, {"shop": shop.url}) as served:
        served.write({"shop": shop.url}, listen="127.0.0.1:1")
        reported = [served.reload(), served.reload()]

    line = "reloaded: clusters unchanged; probes unchanged; needs a restart, not applied: listen\n"

    assert [(200, line)] * 2 == reported


def test_a_cap_changes_without_a_restart(tmp_path):
    """The next page is made by it."""
    with serve(broker("4.3.6")) as shop, serving(tmp_path, {"shop": shop.url}) as served:
        eventually(lambda: messages("shop") in served.get())
        before = served.get().count(messages("shop"))
        served.write({"shop": shop.url}, metrics={"max_queues": 1})
        served.reload()
        after = served.get()

    assert before > 2
    assert 2 == after.count(messages("shop"))
    assert f'{messages("shop")},vhost="",queue="(other)"}}' in after


def test_many_reloads_leave_nothing_behind(tmp_path):
    """No thread of a poller that was replaced."""
    others = set(threading.enumerate())
    with serve(broker("4.3.6")) as shop, serving(tmp_path, {"shop": shop.url}) as served:
        eventually(lambda: messages("shop") in served.get())
        for interval in ("2s", "1s") * 4:
            served.write({"shop": shop.url}, poll={"interval": interval})
            served.reload()
            assert messages("shop") in served.get()

        # Those of this exporter only.
        eventually(lambda: 1 == sum(it.name == "poll-shop" for it in set(threading.enumerate()) - others))
        assert 8 == served.value(f'{RELOADS}{{result="success"}}')
        assert messages("shop") in served.get()


@pytest.mark.parametrize("method", ["get", "put", "delete"])
def test_only_a_post_reloads(tmp_path, method):
    """A link that somebody follows does not."""
    with serve(broker("4.3.6")) as shop, serving(tmp_path, {"shop": shop.url}) as served:
        answer = getattr(requests, method)(served.exporter.url + "/-/reload", timeout=10)

        assert 405 == answer.status_code
        assert 0 == served.value(f'{RELOADS}{{result="success"}}')


def test_without_a_file_there_is_nothing_to_reload():
    """Who runs an exporter in a program of their own gets an error that says so."""
    settings = ExporterSettings.model_validate(
        {"listen": "127.0.0.1:0", "clusters": {"shop": {"management": {"url": "http://127.0.0.1:1"}}}}
    )
    exporter = App(settings, SystemClock())

    expected = "not reloaded, keeping the current settings: there is no file to reload; start with --config.file FILE"

    reported = exporter.reload()
    exporter.stop()

    assert (False, expected) == reported
