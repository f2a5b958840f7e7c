"""Access is decided from the claims of the ID token alone."""

import pytest

from dashboard.auth.access_rules import AccessDecision, AccessRules, display_name

NOON = 1_800_000_000.0
RULES = AccessRules(
    emails=("ann@example.org",),
    domains=("ops.example.org",),
    claims={"groups": ("oncall", "brokers"), "realm.roles": ("watch",), "https://example.org/team": ("mq",)},
    session=3600.0,
)


def person(**claims: object) -> dict[str, object]:
    """Claims of somebody who signed in one minute ago."""
    return {"is_logged_in": True, "iat": NOON - 60, "sub": "1", **claims}


def mail(address: str, **claims: object) -> dict[str, object]:
    """Claims of somebody with an e-mail address that the provider has verified."""
    return person(email=address, **{"email_verified": True, **claims})


@pytest.mark.parametrize(
    "claims",
    [
        pytest.param(mail("ann@example.org"), id="address"),
        pytest.param(mail("Ann@Example.ORG"), id="address in other letters"),
        pytest.param(mail("ann@example.org", email_verified="true"), id="verified, as a word"),
        pytest.param(mail("bob@ops.example.org"), id="domain"),
        pytest.param(person(groups=["all", "oncall"]), id="one of several groups"),
        pytest.param(person(groups="brokers"), id="a group that is no list"),
        pytest.param(person(realm={"roles": ["watch"]}), id="a claim inside another"),
        pytest.param(person(**{"https://example.org/team": "mq"}), id="a claim with dots in its name"),
    ],
)
def test_listed_people_have_access(claims: dict[str, object]) -> None:
    """One match is enough."""
    assert AccessDecision.ADMITTED == RULES.check(claims, NOON)


@pytest.mark.parametrize(
    "claims",
    [
        pytest.param(person(), id="nothing reported"),
        pytest.param(mail("bob@example.org"), id="another address of a listed one's domain"),
        pytest.param(mail("ann@example.org.evil.test"), id="an address that begins like a listed one"),
        pytest.param(mail("bob@deep.ops.example.org"), id="below a listed domain"),
        pytest.param(mail("bob@evil-ops.example.org"), id="a domain that ends like a listed one"),
        pytest.param(mail("ann@example.org@evil.test"), id="two @"),
        pytest.param(mail("ann@example.org", email_verified=False), id="not verified"),
        pytest.param(mail("ann@example.org", email_verified="false"), id="not verified, as a word"),
        pytest.param(person(email="ann@example.org"), id="nobody says whether it is verified"),
        pytest.param(person(email=["ann@example.org"], email_verified=True), id="an address that is a list"),
        pytest.param(person(groups=["oncall-readers"]), id="a group that begins like a listed one"),
        pytest.param(person(groups="oncall brokers"), id="groups in one text"),
        pytest.param(person(groups={"oncall": True}), id="groups that are a mapping"),
        pytest.param(person(realm="watch"), id="a claim that holds no other"),
        pytest.param(person(roles=["oncall"]), id="the value in another claim"),
    ],
)
def test_others_have_no_access(claims: dict[str, object]) -> None:
    """Near matches do not count."""
    assert AccessDecision.REFUSED == RULES.check(claims, NOON)


@pytest.mark.parametrize(
    "claims",
    [
        pytest.param({}, id="nobody"),
        pytest.param({**mail("ann@example.org"), "is_logged_in": False}, id="signed out"),
        pytest.param({**mail("ann@example.org"), "is_logged_in": "yes"}, id="not in Streamlit's words"),
        pytest.param({**mail("ann@example.org"), "iat": None}, id="nobody says since when"),
        pytest.param({**mail("ann@example.org"), "iat": True}, id="since no time"),
    ],
)
def test_without_sign_in_a_person_is_unknown(claims: dict[str, object]) -> None:
    """Whatever other claims there are."""
    assert AccessDecision.UNKNOWN == RULES.check(claims, NOON)


def test_a_session_expires() -> None:
    """Exactly one hour after signing in, also for people who are not listed."""
    ann, bob = mail("ann@example.org"), mail("bob@elsewhere.test")

    assert AccessDecision.ADMITTED == RULES.check(ann, NOON - 60 + 3599)
    assert AccessDecision.EXPIRED == RULES.check(ann, NOON - 60 + 3600)
    assert AccessDecision.EXPIRED == RULES.check(bob, NOON - 60 + 3600)


def test_rules_survive_serialisation() -> None:
    """To JSON and back."""
    assert RULES == AccessRules.from_json(RULES.to_json())


def test_display_name() -> None:
    """The first claim that is a text."""
    assert "ann@example.org" == display_name(mail("ann@example.org", name="Ann"))
    assert "Ann" == display_name(person(email=7, preferred_username="", name="Ann"))
    assert "1" == display_name(person())
    assert "somebody" == display_name({})
