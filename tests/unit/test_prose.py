"""The language of the texts for people, as a test: plain English, in the field's words."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

LEFT_OUT = {
    "docs/benchmarks.md": "figures of past runs, their labels are those of the runs",
    "CHANGELOG.md": "figures of past runs, their labels are those of the runs",
    "docs/semantics.md": "claims and observations of recorded runs, word for word",
}
"""Texts that are not checked, and why."""

PAGES = sorted(
    str(path.relative_to(ROOT))
    for pattern in ("*.md", "docs/*.md", "diagnosis/catalogue/*.md", "diagnosis/catalogue/shared/*")
    for path in ROOT.glob(pattern)
)
MODULES = sorted(
    str(path.relative_to(ROOT)) for room in ("dashboard", "exporter/commands") for path in (ROOT / room).rglob("*.py")
)

PHRASES = {
    # telling, asking, speaking
    r"\btold of": "reported, detected",
    r"\btells? of": "reports, describes",
    r"\b(is|are|was|were|be|been|not) told": "reported, logged, exported",
    r"\btold so": "notified",
    r"\btells? (nothing|anybody|somebody)": "reports no ..., notifies",
    r"\b(cannot|could not) (?-i:tell|be told)": "inconclusive, unknown",
    r"\b(is|are|was|were) asked": "queried, requested",
    r"\bmay ask": "has access, can query",
    r"\bspeaks? of": "describes, is about",
    r"\bspoken here": "supported",
    r"\bwithout a word": "silently",
    r"\bno news": "no change",
    r"\bwhoever": "anybody who, the administrator",
    r"\bfor who\b": "for those who",
    r"\bwho holds what": "what each consumer holds",
    # German syntax
    r"\bbe it": "even, whether",
    r", for (it|they|there|we|that is)\b": "because",
    r"\bbeside\b": "next to, in addition to",
    r"\bof itself": "by itself",
    r"\ball in all": "in total",
    r"\bhas not what": "lacks",
    r"\bthere neither": "not there either",
    r"\bthe one before\b": "the previous one",
    r"\bafter so long": "after this time",
    r"\bso far back": "how far back",
    r"\b(where|there)(of|in|by|upon)\b": "say it with a verb",
    r"\btill\b": "until",
    r"\banew\b": "again",
    r"\bagainst them all\b": "compared with all",
    r"\bas good as\b": "almost",
    r"\bnot a few\b": "several",
    # rare or poetic words
    r"\bdear(er|est|ly)?\b": "expensive",
    r"\bmend(s|ed|ing)?\b": "fix",
    r"\b(mis)?spelt\b": "spelled, written",
    r"\b(lately|of late)\b": "recently",
    r"\bhardly\b": "rarely, almost not",
    r"\b(nought|naught)\b": "0, nothing",
    r"\bhence\b": "so",
    r"\bheed(s|ed)?\b": "respect, follow",
    r"\bkin\b": "related objects",
    r"\bdoor(man)?\b": "sign-in page",
    r"\bshel(f|ves|ved)\b": "data file, rollup",
    r"\bpatience\b": "timeout",
    r"\bcalm\b": "idle",
    r"\bstir(s|red)?\b": "change, activity",
    r"\blooks? ill": "looks like a fault",
    r"\bended exporter": "rabbitmq_exporter",
    # the field has a word for it
    r"\bset aside": "suppressed",
    r"\bthe middle\b": "median",
    r"\bthe way (there|back|there and back)\b": "round trip",
    r"\blives? through": "experiences",
    r"\bgoe?s? by\b": "uses, follows",
    r"\bh(eld|olds?) (it |each |them )?against": "compared with, checked against",
    r"\bcomes? again": "recurs",
    r"\bgiven back": "requeued, returned, released",
    r"\b(goe?s?|went) round\b": "circulates",
    r"\bstands? still": "is stuck",
    r"\bstays? out\b": "is missing",
    r"\bwhat waits\b": "backlog",
    r"\bnowhere to go": "cannot be routed",
    r"\bby turns": "in rotation",
    r"\bputs? together": "merges",
    r"\bpass(es|ed)? over": "ignored",
    r"\bcame to no end": "did not finish",
    r"\btakes? in\b": "ingests, reads",
    r"\bbr(eaks?|oke|oken) off": "closed, dropped",
    r"\blet go\b": "removed",
    r"\bwrite over": "overwrite",
    r"\b(quarter|half) of an hour|\bhalf an? (minute|hour)": "a number with its unit",
    r"\bprocessor time": "CPU time",
}
"""Regular expression -> what to write instead. A space in it is any white space, and case does not matter."""

IN_MESSAGES = {
    r"(?<!there )\bis no (?!longer\b)[a-z]": "invalid ...; use ...",
    r"(?<!there )\bis none\b": "say what is wrong with it",
}
"""The same, for string constants of the code only."""

CODE = re.compile(
    r"""
    ^```.*?^```                       # a block of code
    | (?<=\n\n)(\ {4}.*\n?)+          # an indented one
    | `[^`]*`                         # inline code
    | <!--.*?-->
    | (?<=\])\([^)]*\)                # the target of a link
    | https?://[^\s)]*
    | \{\{.*?\}\} | \{%.*?%\} | \{\#.*?\#\}   # Jinja
    | ^\ *command:.*$
    """,
    re.VERBOSE | re.MULTILINE | re.DOTALL,
)
"""What is not prose on a page."""

KEY = re.compile(r"[a-z0-9_.]*")
"""A string constant that names something, such as a column, and is not shown."""


def prose(text: str) -> str:
    """The text of a page without code, in the same lines."""
    return CODE.sub(lambda found: "\n" * found[0].count("\n") or "`", text)


def problems(text: str, first_line: int, phrases: dict[str, str]) -> Iterator[tuple[int, str]]:
    """Line, and what to change in it."""
    for pattern, instead in phrases.items():
        # (?<!...) needs a fixed width, so the space in it stays one character
        for found in re.finditer(re.sub(r"(?<!there) ", r"\\s+", pattern), text, re.IGNORECASE):
            phrase = " ".join(found[0].split())
            yield first_line + text.count("\n", 0, found.start()), f'"{phrase}": write {instead}'


def constants(tree: ast.Module) -> Iterator[ast.Constant]:
    """The strings of a module that may be shown to people: no docstrings, no names."""
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or id(node) in docstrings:
            continue
        if not KEY.fullmatch(node.value):
            yield node


@pytest.mark.parametrize("name", [name for name in PAGES if name not in LEFT_OUT])
def test_pages_are_in_plain_english(name):
    """Code, links and templates are not prose."""
    found = [f"{name}:{line}: {text}" for line, text in problems(prose((ROOT / name).read_text()), 1, PHRASES)]

    assert [] == found, "\n".join(found)


@pytest.mark.parametrize("name", MODULES)
def test_messages_and_labels_are_in_plain_english(name):
    """All strings of the dashboard and of the commands, for most of them are shown to people."""
    found = [
        f"{name}:{line}: {text}"
        for node in constants(ast.parse((ROOT / name).read_text()))
        for line, text in problems(node.value, node.lineno, PHRASES | IN_MESSAGES)
    ]

    assert [] == found, "\n".join(found)


def test_texts_that_are_left_out_exist():
    """Of a text that was renamed, the reason goes too."""
    assert set() == set(LEFT_OUT) - set(PAGES)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It is made\nanew.", [(2, '"anew": write again')]),
        ("A median, for\n  it is robust.", [(1, '", for it": write because')]),
        ("`anew` and [x](anew.md), {{ anew }}\n\n    anew\n\n```\nanew\n```\n", []),
        ("Files are next to it.", []),
    ],
)
def test_what_is_found(text, expected):
    """Phrases over the end of a line too, and none in code."""
    assert expected == list(problems(prose(text), 1, PHRASES))


@pytest.mark.parametrize("path", PAGES)
def test_no_page_has_the_marks_of_a_merge(path: str) -> None:
    """Two versions of a page would be shown one after the other."""
    found = [line for line in (ROOT / path).read_text().splitlines() if line.startswith(("<<<<<<< ", ">>>>>>> "))]

    assert [] == found
