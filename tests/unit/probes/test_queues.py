from probes.queues import fate, is_one_shot, long_lived, nowhere, one_shot, queue_name


def test_every_type_is_bounded_in_the_words_that_it_knows():
    """Streams have no expiry, TTL or length limit in messages; small segments make their size limits effective."""
    classic, quorum, stream = (dict(long_lived("q", kind).arguments) for kind in ("classic", "quorum", "stream"))

    assert {"x-queue-type", "x-max-length", "x-message-ttl", "x-expires"} == set(classic) == set(quorum)
    assert {"x-queue-type", "x-max-length-bytes", "x-max-age", "x-stream-max-segment-size-bytes"} == set(stream)
    assert stream["x-stream-max-segment-size-bytes"] < stream["x-max-length-bytes"]


def test_what_is_added_wins():
    """A probe may need a queue with one different argument."""
    spec = long_lived("q", "classic")
    other = type(spec)(spec.name, spec.queue_type, spec.expires, {"x-max-length": 0})

    assert (other.arguments["x-max-length"], other.arguments["x-expires"]) == (0, spec.arguments["x-expires"])


def test_one_shot_queues_belong_to_their_run():
    """All runs share one stream, because a stream left by a killed run would stay forever."""
    classic = one_shot("p", "aa", "confirm", "classic", "classic")
    stream = one_shot("p", "aa", "confirm", "stream", "stream")

    assert is_one_shot(classic.name, "p", "aa")
    assert not is_one_shot(classic.name, "p", "bb")
    assert stream == one_shot("p", "bb", "confirm", "stream", "stream")
    assert is_one_shot(stream.name, "p", "bb")


def test_what_is_left_behind_is_reported_with_what_becomes_of_it():
    """An example is a stream, which does not expire."""
    classic, stream = (one_shot("p", "aa", "confirm", kind, kind).name for kind in ("classic", "stream"))

    assert fate(classic, "p") == "it expires within 60 s"
    assert "the next run" in fate(stream, "p")


def test_no_queue_of_a_probe_is_named_nowhere():
    """Unroutable messages must stay unroutable."""
    names = {queue_name("p", "confirm", stream) for stream in ("unroutable", "classic", "stream")}

    assert nowhere("p") not in names
