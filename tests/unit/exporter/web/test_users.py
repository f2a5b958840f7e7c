import base64

import bcrypt
import pytest

from exporter.web import users as module
from exporter.web.users import BasicAuthUsers

HASH = bcrypt.hashpw(b"secret", bcrypt.gensalt(4)).decode()
COSTLY = bcrypt.hashpw("gräßlich".encode(), bcrypt.gensalt(5)).decode()


def basic(name, password):
    """The header of a client."""
    return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()


@pytest.fixture
def computed(monkeypatch):
    """The hashes that were computed, in their order."""
    seen, real = [], bcrypt.checkpw

    def counted(password, hashed):
        seen.append(hashed.decode())
        return real(password, hashed)

    monkeypatch.setattr(module.bcrypt, "checkpw", counted)
    return seen


def test_without_users_everybody_may_ask():
    """Whatever they send."""
    assert [True, True] == [BasicAuthUsers({}).admit(header) for header in ("", "Basic !")]


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (basic("ann", "secret"), True),
        (basic("ann", "secret").replace("Basic", "bAsIc"), True),
        (basic("bob", "gräßlich"), True),
        (basic("ann", "Secret"), False),
        (basic("ann", ""), False),
        (basic("bob", "secret"), False),
        (basic("eve", "secret"), False),
        (basic("", ""), False),
        (basic("ann", "sec\0ret"), False),
        (basic("ann", "x" * 5000), False),
        ("Basic " + base64.b64encode(b"ann").decode(), False),
        ("Basic not base64", False),
        ("Basic ä", False),
        ("Bearer " + base64.b64encode(b"ann:secret").decode(), False),
        ("Basic", False),
        ("", False),
    ],
)
def test_who_may_ask(header, expected):
    """Access requires a password that matches the hash of the name."""
    assert expected == BasicAuthUsers({"ann": HASH, "bob": COSTLY}).admit(header)


def test_hashes_as_apache_writes_them_are_accepted():
    """`htpasswd -B` says $2y$ where the library says $2b$."""
    assert BasicAuthUsers({"ann": HASH.replace("$2b$", "$2y$")}).admit(basic("ann", "secret"))


def test_a_long_password_counts_as_far_as_bcrypt_looks():
    """72 bytes; the tools that make hashes cut there too."""
    users = BasicAuthUsers({"ann": bcrypt.hashpw(b"x" * 72, bcrypt.gensalt(4)).decode()})

    assert [True, False] == [users.admit(basic("ann", "x" * size)) for size in (100, 71)]


def test_a_password_that_was_right_is_not_computed_again(computed):
    """So that a scrape is cheap; a wrong one costs the same every time, and is not remembered."""
    users = BasicAuthUsers({"ann": HASH})
    right = [users.admit(basic("ann", "secret")) for _ in range(3)]
    wrong = [users.admit(basic("ann", "wrong")) for _ in range(3)]

    assert ([True] * 3, [False] * 3, 4) == (right, wrong, len(computed))


def test_an_unknown_name_costs_as_much_as_a_known_one(computed):
    """The most expensive hash is computed for it, so the time does not reveal known names."""
    users = BasicAuthUsers({"ann": HASH, "bob": COSTLY})

    assert not users.admit(basic("eve", "gräßlich"))
    assert [COSTLY] == computed


def test_what_is_remembered_is_bounded_and_is_no_password(monkeypatch):
    """At most 100 digests are stored; the oldest is dropped."""
    monkeypatch.setattr(module, "_REMEMBERED", 2)
    users = BasicAuthUsers(dict.fromkeys(("ann", "bob", "cid"), HASH))
    for name in ("ann", "bob", "cid"):
        assert users.admit(basic(name, "secret"))

    assert 2 == len(users._right)
    assert not [digest for digest in users._right if b"secret" in digest or b"ann" in digest]
