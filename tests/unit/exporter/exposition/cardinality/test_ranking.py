"""Selection of the objects that are shown under a cap."""

import random

from exporter.exposition.cardinality.ranking import STAY, Candidates, assign_places, ranking


def candidates(*rankings, keys="abcdefgh", included="", excluded=""):
    """Return eight objects and their ranking."""
    return Candidates(keys=dict.fromkeys(keys), rankings=rankings, included=set(included), excluded=set(excluded))


def test_a_ranking_leaves_out_those_that_have_none():
    """Largest first, at most as many as asked for."""
    assert ["c", "a"] == ranking([(2, "a"), (0, "b"), (9, "c"), (1, "d")], 2)
    assert ["a"] == ranking([(2, "a"), (0, "b")], 5)


def test_each_ranking_gets_its_turn():
    """Long backlogs do not displace the only queue that redelivers."""
    assert {"a", "h", "b"} == set(assign_places(candidates("abcdef", "h"), {}, 3, 0.0))


def test_who_was_shown_stays_for_minutes_where_there_is_room():
    """Series do not flap between two that change places; after some minutes the new order holds."""
    held = assign_places(candidates("abcd"), {}, 4, 0.0)
    soon = assign_places(candidates("efgh"), held, 4, 10.0)
    later = assign_places(candidates("efgh"), soon, 4, 10.0 + STAY)

    assert {"a", "b", "c", "d"} == set(held)
    assert "e" in soon
    assert len(set(soon) & set("abcd")) == 3
    assert {"e", "f", "g", "h"} == set(later)


def test_what_comes_to_the_top_is_shown_at_once():
    """Some places always go by rank alone, however many objects were shown before."""
    held = assign_places(candidates("abcd"), {}, 4, 0.0)

    assert "h" in assign_places(candidates("hgfe"), held, 4, 1.0)


def test_where_thousands_matter_alike_their_series_do_not_flap():
    """Their order differs at every poll, but only a few objects change."""
    chance, names, born, lives = random.Random(7), [str(number) for number in range(4000)], {}, []
    held = assign_places(candidates(names[:1000], keys=names), {}, 1000, 0.0)
    for poll in range(1, 120):
        chance.shuffle(names)
        before, held = held, assign_places(candidates(names[:1000], keys=names), held, 1000, 5.0 * poll)
        added, removed = held.keys() - before.keys(), before.keys() - held.keys()
        lives += [5.0 * poll - born.pop(name) for name in removed if name in born]
        born.update(dict.fromkeys(added, 5.0 * poll))

        assert len(added) <= 50

    assert lives
    assert min(lives) >= 30


def test_the_cap_is_hard():
    """The cap also limits objects that are named by patterns, ranked or kept."""
    held = dict.fromkeys("abcd", 1e9)

    assert 3 == len(assign_places(candidates("efgh", included="abc"), held, 3, 0.0))
    assert {} == assign_places(candidates("efgh", included="abc"), held, 0, 0.0)


def test_named_ones_come_first_and_ruled_out_ones_never():
    """Patterns override the ranking; exclusion wins over inclusion."""
    taken = assign_places(candidates("abc", included="gh", excluded="ah"), {"a": 1e9}, 3, 0.0)

    assert "g" in taken
    assert not {"a", "h"} & set(taken)


def test_more_named_ones_than_places_share_them_by_rank():
    """Those that were shown before stay."""
    held = assign_places(candidates("abcd", included="abcd"), {}, 2, 0.0)

    assert {"a", "b"} == set(held)
    assert {"a", "d"} == set(assign_places(candidates("dcba", included="abcd"), held, 2, 1.0))


def test_places_that_nobody_earned_go_to_anyone():
    """Below the cap, idle objects are shown too, and shown objects stay."""
    assert 3 == len(assign_places(candidates(), {}, 3, 0.0))
    assert {"f", "g", "h"} == set(assign_places(candidates(), dict.fromkeys("fgh", 0.0), 3, 1e6))


def test_what_is_removed_loses_its_place():
    """A key that is not among the objects is not shown."""
    assert {"b"} == set(assign_places(candidates("ab", keys="b"), {"a": 1e9}, 3, 0.0))
