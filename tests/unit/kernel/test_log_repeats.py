import logging

from ackscope.log import RepeatFilter


def warned(event="cluster unreachable", level=logging.WARNING, **facts):
    """A record of a warning."""
    return logging.makeLogRecord({"name": "exporter", "levelno": level, "msg": {"event": event, **facts}})


class Seconds:
    """A clock that tests set."""

    value = 0.0

    def __call__(self):
        """The set time."""
        return self.value


def test_a_warning_that_repeats_is_written_once_a_minute_with_its_count():
    """The first at once. Numbers in its facts make it no other warning; the first of the next minute has the count."""
    now = Seconds()
    repeats = RepeatFilter(now)
    first, after = (warned(cluster="shop", error="port 1") for _ in range(2))
    written = [repeats.filter(first)]
    held = [repeats.filter(warned(cluster="shop", error=f"port {number}")) for number in range(5)]
    written.append(repeats.filter(warned(cluster="depot", error="port 1")))
    now.value = 60.0
    written.append(repeats.filter(after))

    assert ([True] * 3, [False] * 5) == (written, held)
    assert ("repeated" in first.msg, 5) == (False, after.msg["repeated"])


def test_names_from_outside_do_not_fill_the_log():
    """Of one event, 16 variants are distinguished, and one more stands for all others."""
    repeats = RepeatFilter(Seconds())
    written = [repeats.filter(warned(path="/" + "x" * number)) for number in range(200)]

    assert 17 == sum(written)


def test_information_is_never_held_back():
    """Only warnings and errors are."""
    repeats = RepeatFilter(Seconds())

    assert [True] * 3 == [repeats.filter(warned(level=logging.INFO)) for _ in range(3)]
    assert [False] == [repeats.filter(warned(level=logging.ERROR)) for _ in range(2)][1:]


def test_what_answers_a_person_is_always_written():
    """Such as a reload by signal, whose result is nowhere else; the mark is not written."""
    repeats = RepeatFilter(Seconds())
    records = [warned(level=logging.ERROR, answers=True) for _ in range(2)]

    assert [True, True] == [repeats.filter(each) for each in records]
    assert "answers" not in records[0].msg
