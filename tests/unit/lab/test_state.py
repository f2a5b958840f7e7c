import stat
from pathlib import Path

import pytest

from ackscope.errors import DataError, UsageError
from lab.node import LabNode
from lab.processes import Process
from lab.state import Place, State, find_place, forget, load, locked, save


@pytest.fixture
def place(tmp_path):
    """Return a state folder for this test only."""
    return Place(tmp_path)


STATE = State(
    broker="4.3.6",
    nodes=(LabNode(name="lab1@localhost", amqp="amqp://a", management="http://m", prometheus="http://p"),),
    processes=(Process(101, 1001),),
    epmd=Process(100, 1000),
    workload=Process(102, 1002),
    faults={"requeue-loop": Process(103, 1003)},
)


def test_what_is_saved_is_loaded(place):
    """Every process with its start time, so that a recycled pid is known."""
    save(place, STATE)

    assert STATE == load(place)


def test_a_lab_without_workload_and_faults_is_saved_too(place):
    """Absent stays absent."""
    plain = State(broker="3.10.8", nodes=STATE.nodes, processes=STATE.processes, epmd=None)
    save(place, plain)

    assert plain == load(place)


def test_the_file_is_for_its_owner_alone(place):
    """It holds URLs with credentials."""
    save(place, STATE)

    assert 0o600 == stat.S_IMODE(place.file.stat().st_mode)
    assert [place.file] == list(place.root.iterdir())


def test_nothing_saved_is_no_lab(place):
    """This holds before the first lab and after the last."""
    assert load(place) is None

    save(place, STATE)
    forget(place)

    assert load(place) is None


@pytest.mark.parametrize(
    ("content", "what"),
    [
        pytest.param("{", "JSONDecodeError", id="not-json"),
        pytest.param("[]", "TypeError", id="no-object"),
        pytest.param('{"version": 99}', "ValueError", id="other-version"),
        pytest.param('{"version": 1}', "KeyError", id="keys-missing"),
    ],
)
def test_a_broken_file_is_reported_in_one_line(place, content, what):
    """With the file, and the way out."""
    place.file.write_text(content)

    with pytest.raises(DataError) as caught:
        load(place)

    assert f"{place.file}: cannot be read ({what}); run `ackscope lab down` to reset it" == str(caught.value)


def test_only_one_command_at_a_time(place):
    """Two at once would each start a lab."""
    with locked(place), pytest.raises(UsageError) as caught, locked(place):
        pass

    assert "another `ackscope lab` command is running; wait until it has finished" == str(caught.value)


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    """Not a traceback of mkdir."""
    (tmp_path / "file").touch()

    with pytest.raises(DataError) as caught, locked(Place(tmp_path / "file" / "lab")):
        pass

    assert f"{tmp_path / 'file' / 'lab'}: Not a directory; set XDG_STATE_HOME to another folder" == str(caught.value)


def test_the_place_is_the_users_state_directory():
    """As the XDG base directories say."""
    assert Path("/s/ackscope/lab") == find_place({"XDG_STATE_HOME": "/s"}).root
    assert Path.home() / ".local/state/ackscope/lab" == find_place({}).root
