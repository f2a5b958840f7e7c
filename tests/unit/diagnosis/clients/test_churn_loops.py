from dataclasses import replace

import pytest

from ackscope.snapshot import Part
from diagnosis.churn_loops import churn_loops, text_bytes
from diagnosis.thresholds import Thresholds
from diagnosis.view import View
from tests.unit.diagnosis.clients.loops import churning, loop, looping, reconnecting, steady, turns
from tests.unit.diagnosis.pictures import PEER, WALL, channel, connection, film, moment, queue, stats
from tests.unit.diagnosis.probing.heard import outcome, step

LATE = "10.0.0.8:50008 -> 10.0.0.1:5672"
NOT_FOUND = "NOT_FOUND - no exchange 'nope' in vhost '/'"


def loops_in(window, thresholds=None):
    """Return the loops at the end of a film."""
    return churn_loops(View(window, (), window.latest.taken, thresholds or Thresholds()))


def only_loop(window):
    """The only loop."""
    (closing,) = loops_in(window)
    return closing


def test_a_loop_has_its_connection_and_the_length_of_the_brokers_error():
    """A cycle has two packets and 78 bytes: channel.open-ok, and channel.close with a text of 43 bytes."""
    closing = only_loop(film(looping, until=60))

    assert (PEER, "billing", "10.0.0.7:50001") == (closing.connection.name, closing.client, closing.peer)
    assert (43, True, 2) == (closing.error, closing.by_broker, closing.packets)
    assert (True, False) == (closing.alone, closing.whole)
    assert closing.said("something else", NOT_FOUND)
    assert not closing.said("something else")
    assert pytest.approx(5.0) == closing.rate
    assert pytest.approx(203) == closing.received


@pytest.mark.parametrize(
    ("packets", "sent", "error", "by_broker"),
    [
        (2, 28, None, False),
        (3, 41, None, False),
        (4, 61, None, False),
        (2, 188, 153, True),
        (3, 134, 87, True),
        (8, 1000, None, None),
    ],
    ids=["clean", "polls", "confirms", "declares", "confirms and is refused", "consumes"],
)
def test_who_closes_is_read_off_packets_and_bytes(packets, sent, error, by_broker):
    """Seen on 3.10.8 and 4.3.6: a clean close is 28 bytes, an error 35 and its text, an answer between 12 and more."""
    closing = only_loop(film(lambda t: looping(t, packets=packets, sent=sent), until=40))

    assert (error, by_broker) == (closing.error, closing.by_broker)


def test_a_heartbeat_among_the_packets_does_not_hide_the_length():
    """It changes the sum of one interval only; the other intervals agree."""

    def frame(t):
        known = looping(t)
        there, bad = known["connections"]
        beats = int(t >= 33)
        return {
            **known,
            "connections": (there, loop(t, send_cnt=bad.send_cnt + beats, send_oct=bad.send_oct + 8 * beats)),
        }

    assert only_loop(film(frame, until=40)).error == 43


@pytest.mark.parametrize(("rate", "began"), [(1.0, 52.0), (2.0, 47.0), (4.0, 55.0)])
def test_a_new_loop_beside_older_churn_is_not_taken_for_half_as_many_cycles(rate, began):
    """Two cycles of two packets are as long as one cycle of four with another error text."""

    def frame(t):
        known, older = looping(t, rate=rate, began=began, sent=16 + 19 + 57), turns(t, 0.1, 0.0)
        there, bad = known["connections"]
        done = turns(t, rate, began)
        return {
            **known,
            "overview": churning(t, channels=done + older, connections=older),
            "connections": (there, *([bad] if t >= began else [])),
        }

    closings = [each for each in loops_in(film(frame, until=70)) if not each.whole]

    assert [(57, 2)] == [(each.error, each.packets) for each in closings]


def test_a_loop_that_began_just_now_has_its_true_rate_and_age():
    """The quiet time before it does not count."""
    closing = only_loop(film(lambda t: looping(t, began=40), until=55))

    assert pytest.approx(5.0) == closing.rate
    assert pytest.approx(15.0) == closing.lasts


def test_declares_and_publishes_are_counted_by_the_cycle():
    """Refused declares count in the cluster's churn; refused publishes count nowhere."""
    declaring = only_loop(film(lambda t: looping(t, declares=1, packets=2, sent=188, received=70), until=40))
    counters = {"stats": stats()}
    publishing = only_loop(
        film(
            lambda t: {**looping(t), "overview": churning(t, channels=turns(t, 5, 0), stats=stats(publish=int(5 * t)))},
            until=40,
        )
    )

    assert (1.0, 0.0) == (declaring.declares, only_loop(film(lambda t: looping(t, **counters), until=40)).published)
    assert pytest.approx(1.0) == publishing.published


def test_what_lasting_channels_do_is_not_the_loops_doing():
    """Deliveries and acknowledgements of the other application do not count."""
    closing = only_loop(film(looping, until=40))

    assert (0.0, 0.0) == (closing.delivered, closing.acked)


def test_of_two_loops_neither_has_what_the_cluster_counts():
    """The rate is divided between them in proportion to their packets."""

    def frame(t):
        known = looping(t)
        other = loop(t, rate=15, name="10.0.0.8:1 -> 10.0.0.1:5672", client_name="stock")
        return {**known, "overview": churning(t, channels=int(20 * t)), "connections": (*known["connections"], other)}

    first, second = loops_in(film(frame, until=40))

    assert ("stock", "billing", False, False) == (first.client, second.client, first.alone, second.alone)
    assert pytest.approx((15.0, 5.0), rel=0.02) == (first.rate, second.rate)
    assert (43, 43) == (first.error, second.error)


def test_a_loop_beside_a_lasting_channel_of_the_same_connection_is_found():
    """Its bytes include those of that channel, so they show nothing."""

    def frame(t):
        there = loop(t, channels=1)
        return {
            "overview": churning(t, channels=int(5 * t)),
            "connections": (there,),
            "channels": (channel(f"{PEER} (1)", stats=stats(), reductions=1000 + int(t)),),
        }

    closing = only_loop(film(frame, until=40))

    assert (PEER, None, None) == (closing.connection.name, closing.error, closing.received)


def test_connections_that_come_and_go_are_one_application():
    """Known by the name that it gives itself, its user, virtual host and host."""
    closing = only_loop(film(reconnecting, until=40))

    assert ("billing", True, "10.0.0.7") == (closing.client, closing.whole, closing.peer)
    assert pytest.approx(1.0, rel=0.1) == closing.rate
    assert closing.error is None


def test_a_steady_cluster_has_no_loop():
    """However busy its connections are."""

    def frame(t):
        there, consuming = steady(t)
        return {"overview": churning(t), "connections": (there,), "channels": (consuming,)}

    assert () == loops_in(film(frame, until=60))


def test_one_reconnect_of_everybody_is_no_loop():
    """A deployment: each channel and connection closed once."""

    def frame(t):
        there, consuming = steady(t)
        moved = 2 if t >= 40 else 0
        return {
            "overview": churning(t, channels=moved, connections=moved),
            "connections": (there,),
            "channels": (consuming,),
        }

    assert () == loops_in(film(frame, until=60))


def test_without_churn_counters_there_is_no_loop():
    """Absent is not zero: before 3.8 the overview has none."""
    assert () == loops_in(film(lambda t: {**looping(t), "overview": churning(t, churn={})}, until=40))


def test_the_text_is_cut_where_the_protocol_cuts_it():
    """A short string has 255 bytes at most; bytes, not letters."""
    assert (255, 3) == (text_bytes("x" * 300), text_bytes("aü"))


def test_a_cluster_that_reconnects_after_a_failure_has_no_loop():
    """Ten connections with a new channel each: none of them opened three."""

    def frame(t):
        later = max(0.0, t - 30)
        pairs = [steady(later, f"10.0.0.9:{50000 + number} -> 10.0.0.1:5672") for number in range(10)]
        return {
            "overview": churning(t, channels=10 if t >= 30 else 0),
            "connections": tuple(there for there, _ in pairs) if t >= 30 else (),
            "channels": tuple(consuming for _, consuming in pairs) if t >= 35 else (),
        }

    for until in (30, 35, 40, 45, 50):
        assert () == loops_in(film(frame, until=until))


def test_connections_that_came_to_stay_are_no_loop():
    """Other connections are too short to be listed."""

    def frame(t):
        pairs = [steady(t, f"10.0.0.9:{50000 + number} -> 10.0.0.1:5672") for number in range(4)]
        there = pairs if t >= 30 else pairs[:1]
        return {
            "overview": churning(t, channels=int(t), connections=int(t)),
            "connections": tuple(each for each, _ in there),
            "channels": tuple(each for _, each in there),
        }

    assert () == loops_in(film(frame, until=45))


@pytest.mark.parametrize(("every", "found"), [(5.0, True), (0.4, False)], ids=["fast", "slow"])
def test_what_our_own_probes_close_is_nobody_elses_loop(every, found):
    """The redelivery probe closes channels a few times in 10 s; the cluster's counters do not show whose channels."""

    def frame(t):
        known = looping(t, rate=every)
        probe = connection("10.0.0.9:1 -> 10.0.0.1:5672", client_name="ackscope-probe-redelivery")
        return {**known, "connections": (*known["connections"], probe)}

    assert found == bool(loops_in(film(frame, until=60)))
    assert loops_in(film(lambda t: looping(t, rate=every), until=60))


def test_what_our_own_probes_get_again_is_not_the_loops_doing():
    """The redelivery probe causes redeliveries all the time, on short-lived channels too."""

    def frame(t):
        moved = stats(deliver_get=int(20 * t), redeliver=int(10 * t), publish=int(10 * t), ack=int(10 * t))
        probe = queue("ackscope.probe.redelivery.classic", stats=moved)
        there = stats(deliver_get=int(30 * t), redeliver=int(10 * t), publish=int(10 * t), ack=int(20 * t))
        return {**looping(t, stats=there), "queues": (probe,)}

    closing = only_loop(film(frame, until=60))

    assert (0.0, 0.0, 0.0) == (closing.delivered, closing.redelivered, closing.published)


def probed(known, **more):
    """Return the same film with one of our probes added."""
    probe = connection("10.0.0.9:1 -> 10.0.0.1:5672", client_name="ackscope-probe-redelivery")
    return {**known, "connections": (*known["connections"], probe), **more}


@pytest.mark.parametrize(("sent", "errors"), [(134, [87]), (61, [])], ids=["closed by the broker", "closed by itself"])
def test_a_slow_loop_is_found_next_to_our_probes_by_the_brokers_error(sent, errors):
    """It closes as many channels as the probes may close, but its bytes contain the broker's error."""
    window = film(lambda t: probed(looping(t, rate=0.8, packets=3, sent=sent)), until=60)

    assert errors == [closing.error for closing in loops_in(window)]


def test_the_rate_of_a_loop_is_its_own_and_not_that_of_our_probes():
    """The redelivery probe closes two channels every 10 s."""

    def frame(t):
        closed = turns(t, 0.8, 0) + 2 * int(t / 10)
        return probed(looping(t, rate=0.8, packets=3, sent=134), overview=churning(t, channels=closed))

    window = film(frame, until=60)
    rounds = outcome("redelivery", steps={"channel-close": step(count=12)}, at=WALL + 60)
    (closing,) = churn_loops(View(window, (rounds,), window.latest.taken, Thresholds()))

    assert pytest.approx(0.8, rel=0.05) == closing.rate
    assert (87, 3) == (closing.error, closing.packets)


def test_what_our_probes_declare_and_publish_to_no_queue_is_not_the_loops_doing():
    """One passive declare and one unroutable message per second show only in the overview."""

    def frame(t):
        known = looping(t, rate=1.6, stats=stats(publish=int(t), deliver_get=int(10 * t), ack=int(10 * t)))
        return probed(known, overview=replace(known["overview"], churn=counted(known, queue_declared=int(t))))

    def counted(known, **counters):
        return {**known["overview"].churn, **counters}

    window = film(frame, until=60)
    asked = outcome("rtt", steps={"declare": step(count=60)}, at=WALL + 60)
    lost = outcome("confirm", "unroutable", queue_type="none", rate=1.0, at=WALL + 60)

    def doing(*outcomes):
        (closing,) = churn_loops(View(window, outcomes, window.latest.taken, Thresholds()))
        return closing.declares, closing.published

    assert pytest.approx((0.0, 0.0), abs=0.05) == doing(asked, lost)
    assert pytest.approx((0.6, 0.6), abs=0.1) == doing()


@pytest.mark.parametrize(("deleted", "declares"), [(False, 0.0), (True, 0.4)], ids=["stay", "deleted again"])
def test_a_queue_that_stays_was_not_declared_by_the_loop(deleted, declares):
    """Two queues per second are declared by another client on a lasting channel."""

    def frame(t):
        known = looping(t)
        churn = {**known["overview"].churn, "queue_declared": 2 * t, "queue_created": 2 * t, "queue_deleted": 0}
        if deleted:
            churn["queue_deleted"] = 2 * t
        return {**known, "overview": replace(known["overview"], churn=churn)}

    assert pytest.approx(declares, abs=0.05) == only_loop(film(frame, until=60)).declares


def test_a_reading_that_is_missing_is_not_the_loops_doing():
    """Lasting channels and the whole cluster are counted over the same readings."""

    def frame(t):
        known = looping(t, stats=stats(deliver_get=int(10 * t), ack=int(10 * t)))
        gone = Part(value=None, at=None, seconds=0.1, error="no answer")
        return {**known, "channels": gone} if t in {30, 50} else known

    closing = only_loop(film(frame, until=60))

    assert (0.0, 0.0) == (closing.delivered, closing.acked)


@pytest.mark.parametrize("read", [1, 3])
def test_connections_whose_channels_were_hardly_read_are_no_loops(read):
    """A broker under load is read less often; without its channels a busy connection looks like a loop."""

    def frame(t):
        known = looping(t)
        late = {} if t >= 60 - 5 * (read - 1) else {"channels": Part(value=None, at=None, seconds=0.1, error="late")}
        return {**known, **late}

    assert (["billing"] if read == 3 else []) == [closing.client for closing in loops_in(film(frame, until=60))]


def test_a_loop_that_began_just_now_beside_our_probes_has_its_true_rate():
    """Probes close two channels and a connection in the quiet time, which is left out anyway."""

    def frame(t):
        closed = turns(t, 5.0, 40.0) + 2 * int(t / 10) + int(t / 30)
        known = looping(t, began=40, packets=3, sent=134)
        return probed(known, overview=churning(t, channels=closed, connections=int(t / 30)))

    closing = only_loop(film(frame, until=55))

    assert pytest.approx(5.0, rel=0.05) == closing.rate
    assert (87, 3) == (closing.error, closing.packets)


def test_lengths_that_only_some_readings_agree_on_are_no_error():
    """Answers to this client vary, so a length fits by chance now and then."""

    def frame(t):
        known = looping(t)
        there, bad = known["connections"]
        varied = loop(t, send_oct=bad.send_oct + 7 * int(t / 5) ** 2)
        return {**known, "connections": (there, varied)}

    assert only_loop(film(frame, until=60)).error is None


@pytest.mark.parametrize("until", range(40, 100, 5))
def test_a_client_that_came_lately_is_no_loop_where_channels_are_read_seldom(until):
    """Its channel stays, which takes three readings of channels to know; they are 20 s apart."""

    def frame(t):
        read = t - t % 20
        came = steady(t, LATE)[:1] if t >= 30 else ()
        channels = (*looping(read)["channels"], *(steady(read, LATE)[1:] if read >= 30 else ()))
        known = looping(t)
        late = Part(value=channels, at=moment(read), seconds=0.1)
        return {**known, "connections": (*known["connections"], *came), "channels": late}

    assert {"billing"} >= {closing.client for closing in loops_in(film(frame, until=until))}


def restarted(t, up=25.0, away=15.0, behind=0.0):
    """Return the connection of a consumer that is restarted again and again; none while it is away."""
    turn, age = divmod(t, up + away)
    if age > up:
        return ()
    port = 60000 + int(turn)
    began = WALL + t - age - behind
    where = {"peer_host": "10.0.0.6", "peer_port": port, "connected_at": began}
    return (connection(f"10.0.0.6:{port} -> 10.0.0.1:5672", client_name="worker", user="guest", **where),)


@pytest.mark.parametrize("behind", [0.0, 90.0, -90.0], ids=["same clock", "broker behind", "broker ahead"])
def test_a_client_that_lives_longer_than_the_loops_cycles_is_not_the_loop(behind):
    """Somebody reconnects every second; the worker is restarted every 40 s, and each of its connections is listed."""

    def frame(t):
        known = reconnecting(t, every=1.0)
        there, loop_of_billing = known["connections"]
        listed = replace(loop_of_billing, connected_at=loop_of_billing.connected_at - behind)
        return {**known, "connections": (there, listed, *restarted(t, behind=behind))}

    closing = only_loop(film(frame, until=200, every=20))

    assert "billing" == closing.client
    assert closing.alone


def test_a_restarted_client_is_not_accused_of_connections_that_nobody_lists():
    """All connections of the loop are too brief to be in a reading."""

    def frame(t):
        known = reconnecting(t, every=1.0)
        return {**known, "connections": (known["connections"][0], *restarted(t))}

    assert () == loops_in(film(frame, until=240, every=20))


def visiting(t, visits):
    """Applications whose connections each live for some seconds and are followed by another one; all are listed."""
    shown, turnover = [], 0
    for number, (seconds, offset) in enumerate(visits):
        done = int((t + offset) // seconds)
        turnover += done
        shown.append(
            connection(
                f"10.0.1.{number}:{50000 + done} -> 10.0.0.1:5672",
                client_name=f"visitor-{number}",
                user="guest",
                peer_host=f"10.0.1.{number}",
                peer_port=50000 + done,
                connected_at=WALL + done * seconds - offset,
            )
        )
    return {"overview": churning(t, channels=turnover, connections=turnover), "connections": tuple(shown)}


@pytest.mark.parametrize("shift", range(12))
def test_no_client_is_accused_of_the_connections_of_others_that_are_listed(shift):
    """Twelve of them come and go; each one's own rate is what its connections show."""
    visits = [(10.0 + 1.5 * number, (3.1 * number + shift) % 7) for number in range(12)]

    for each in loops_in(film(lambda t: visiting(t, visits), until=75)):
        number = int(each.client.removeprefix("visitor-"))
        assert each.rate <= 2 / visits[number][0]
