"""Names that people take for the same, although the broker distinguishes them, and the characters that differ.

The broker compares names byte by byte. A reader does not see a blank at the end, a character of width zero, a letter of
another script that looks the same, or a letter with its accent as one character or as two. There is no table of letters
that look alike: a word that mixes scripts is hardly ever meant, so a letter of another script stands for any letter.
"""

import re
import unicodedata
from difflib import SequenceMatcher
from functools import lru_cache

from ackscope.findings import Fact

_MOST = 3
"""Differences that are named."""
_SAME = 0.5
"""Least share of the letters that must be the same, so that the others are of a wrong script."""


@lru_cache(maxsize=16_384)
def letters(name: str) -> str:
    """Return the letters and digits of a name without case, separators, blanks and hidden characters."""
    return re.sub(r"[\W_]+", "", unicodedata.normalize("NFKC", name).casefold())


def look_alike(one: str, other: str) -> bool:
    """Return whether two different names have the same letters, or letters of other scripts in the same places."""
    if one == other:
        return False
    first, second = letters(one), letters(other)
    if first == second or len(first) != len(second):
        return bool(first) and first == second
    left = (1 - _SAME) * len(first)
    for a, b in zip(first, second, strict=True):
        if a != b:
            left -= 1
            if left < 0 or not _are_of_two_scripts(a, b):
                return False
    return True


def unseen_differences(one: str, other: str) -> list[Fact]:
    """Return where two names differ in blanks, hidden characters or letters beyond ASCII; [] if each is seen.

    Returns:
        `[{"place", "one", "other"}]`: the place counts from 1; the characters are their numbers and names in Unicode.
    """
    found: list[Fact] = []
    for kind, begin, end, start, stop in SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
        if kind == "equal" or all("!" <= each <= "~" for each in one[begin:end] + other[start:stop]):
            continue
        found.append({"place": begin + 1, "one": _named(one[begin:end]), "other": _named(other[start:stop])})
    return found[:_MOST]


def _named(characters: str) -> list[Fact]:
    return [f"U+{ord(each):04X} {unicodedata.name(each, '')}".strip() for each in characters[:_MOST]]


def _are_of_two_scripts(one: str, other: str) -> bool:
    if (one.isascii() and other.isascii()) or not (one.isalpha() and other.isalpha()):
        return False
    first, second = (unicodedata.name(each, "").partition(" ")[0] for each in (one, other))
    return first != second
