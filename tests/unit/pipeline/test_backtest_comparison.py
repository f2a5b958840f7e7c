"""Tests of a comparison: begins, false ones, lost ones, and the proposal."""

import json

import pytest

from ackscope.errors import DataError, UsageError
from ackscope.findings import Severity
from ackscope.ranking import FindingEpisode
from diagnosis.thresholds import Override, Thresholds
from pipeline.backtest.comparison import WEEK, ReplayedHistory, scores
from pipeline.backtest.document import APPROXIMATE, EXACT, NOT_REPLAYABLE, Asked, Replayed, document
from pipeline.backtest.episodes import Episode, joined
from pipeline.backtest.proposal import EVERYTHING, as_thresholds, pattern_of, propose
from pipeline.backtest.report import lines
from pipeline.backtest.settings import (
    PRESENT,
    chosen_rules,
    related_rules,
    replayable,
    settings_of,
    unrecorded_needs,
)
from pipeline.backtest.stretches import LANDING, MINUTES, HistoryStretch, stretches
from pipeline.backtest.task import TaskResult
from pipeline.backtest.truth import Truth, of_episodes, read_incidents

RULE = "queue-overload"
MINUTE = 60.0


def _episode(queue: str, began: float, ended: float | None, urgent: float | None = None, rule: str = RULE) -> Episode:
    """An episode in minutes; a warning from its beginning, or from `urgent` on."""
    at = began if urgent is None else urgent
    end = None if ended is None else ended * MINUTE
    return Episode((rule, "queue", "/", queue), began * MINUTE, end, "warning", at * MINUTE)


def _incident(queue: str, began: float, ended: float) -> Truth:
    return Truth(began * MINUTE, ended * MINUTE, None, frozenset({("queue", "/", queue)}))


def _history(*settings: list[Episode], truths: tuple[Truth, ...] = ()) -> ReplayedHistory:
    return ReplayedHistory("shop", WEEK, truths, settings)


def test_false_is_what_no_incident_explains():
    """An episode of another queue, or long before, is false; found ones have their delay."""
    truth = _incident("orders", 100, 200)
    now = [_episode("orders", 103, 150), _episode("mail", 110, 120), _episode("orders", 10, 20)]
    score = scores([_history(now, truths=(truth, _incident("audit", 5, 6)))], [RULE], Severity.WARNING)[0]

    assert (score.begins, score.false, score.false_a_week) == (3, 2, 2.0)
    assert (score.found, score.lost) == (1, 1)
    assert score.earlier_seconds == -180.0


def test_later_is_measured_against_the_first_setting():
    """For what both report."""
    truth = _incident("orders", 100, 200)
    settings = ([_episode("orders", 101, 150)], [_episode("orders", 101, 150, 108)], [])
    found = scores([_history(*settings, truths=(truth,))], [RULE], Severity.WARNING)

    assert [it.later_seconds for it in found] == [0.0, 420.0, None]
    assert [it.lost for it in found] == [0, 0, 1]


def test_only_what_reaches_the_severity_counts():
    """An episode that stays information is none, unless information is asked for."""
    calm = Episode((RULE, "queue", "/", "orders"), 0.0, 60.0, "info", None)

    assert scores([_history([calm])], [RULE], Severity.WARNING)[0].begins == 0
    assert scores([_history([calm])], [RULE], Severity.INFO)[0].begins == 1


def test_flapping_counts_the_same_finding():
    """Three begins within an hour, two of them soon after an end; another queue does not count."""
    moments = [0, 10, 59, 70, 200]
    found = scores(
        [_history([*(_episode("orders", at, at + 2) for at in moments), _episode("mail", 5, 6)])],
        [RULE],
        Severity.WARNING,
    )[0]

    assert (found.flapping, found.again) == (3, 3)


def test_recorded_episodes_match_by_rule_and_subject():
    """Within ten minutes; what ended by itself soon enough does not count as something that happened."""
    recorded = [
        FindingEpisode(100 * MINUTE, 130 * MINUTE, RULE, "warning", "queue", "/", "orders"),
        FindingEpisode(300 * MINUTE, 302 * MINUTE, RULE, "warning", "queue", "/", "orders"),
        FindingEpisode(300 * MINUTE, 400 * MINUTE, "no-consumer", "warning", "queue", "/", "orders"),
        FindingEpisode(500 * MINUTE, 600 * MINUTE, RULE, "info", "queue", "/", "orders"),
    ]

    assert len(of_episodes(recorded, [RULE], Severity.WARNING)) == 2

    truths = of_episodes(recorded, [RULE], Severity.WARNING, brief=300.0)
    replayed = [_episode("orders", 98, 131), _episode("orders", 300, 302)]
    score = scores([_history(replayed, truths=tuple(truths))], [RULE], Severity.WARNING)[0]

    assert (score.found, score.lost, score.false, score.earlier_seconds) == (1, 0, 1, 120.0)


def test_parts_join_where_a_finding_lasts():
    """One episode over the cut; one that ended at it; one that only the lead of the second part has."""
    first = [_episode("orders", 10, None), _episode("mail", 20, None)]
    second = [_episode("orders", 55, 80), _episode("audit", 50, 70), _episode("new", 65, None)]
    whole = joined([(0.0, 60 * MINUTE, first), (60 * MINUTE, 120 * MINUTE, second)])

    assert [(it.key[3], it.began / MINUTE, it.ended and it.ended / MINUTE) for it in whole] == [
        ("orders", 10, 80),
        ("mail", 20, 60),
        ("audit", 60, 70),
        ("new", 65, None),
    ]


def test_proposal_removes_false_ones_and_loses_nothing():
    """Each group takes the value with the fewest false episodes that still reports all that is reported now."""
    truths = (_incident("orders.a", 100, 104), _incident("mail.a", 300, 400))
    settings = settings_of(["overload_for=300,540"], Thresholds())
    noise = [_episode("orders.b", 500 + at, 505 + at) for at in (0, 10, 20)]
    mail = [_episode("mail.b", 500, 501), _episode("mail.c", 600, 601)]
    history = _history(
        [_episode("orders.a", 101, 104), *noise, _episode("mail.a", 303, 390), *mail],
        [_episode("orders.a", 101, 104), noise[0], _episode("mail.a", 305, 390), mail[0]],
        [_episode("mail.a", 309, 390)],
        truths=truths,
    )
    found = {it.queues: it for it in propose([history], settings, [RULE], Severity.WARNING)}

    assert {name: dict(it.values) for name, it in found.items()} == {
        "^orders[.]": {"queues.overload_for": 300.0},
        "^mail[.]": {"queues.overload_for": 540.0},
    }
    assert (found["^orders[.]"].false_now, found["^orders[.]"].best.false, found["^orders[.]"].best.lost) == (3, 1, 0)
    assert [(it.false, it.lost) for it in found["^orders[.]"].others] == [(0, 1)]
    assert found["^mail[.]"].best.later_seconds == 360.0


def test_proposal_is_a_configuration():
    """As overrides, which count for these queues only; a threshold that has no group counts for all."""
    settings = settings_of(["overload_for=300"], Thresholds())
    history = _history([_episode("orders.b", 0, 1)], [])
    changed = as_thresholds(Thresholds(), propose([history], settings, [RULE], Severity.WARNING))

    assert changed.for_queue("/", "orders.x").queues.overload_for == 300.0
    assert changed.for_queue("/", "mail.x").queues.overload_for == Thresholds().queues.overload_for

    everywhere = propose([history], settings_of(["hold=60"], Thresholds()), [RULE], Severity.WARNING)

    assert [it.queues for it in everywhere] == [EVERYTHING]
    assert as_thresholds(Thresholds(), everywhere).hold == 60.0


@pytest.mark.parametrize(
    ("name", "covers", "not_covers"),
    [
        ("orders.created.0001", "orders.paid", "reorders.paid"),
        ("mail", "mail", "mail2"),
        ("a-b", "a-c", "ab"),
        ("weird[1]", "weird[1]", "weird1"),
    ],
)
def test_pattern_covers_queues_of_the_same_name(name, covers, not_covers):
    """A pattern is a regular expression of the configuration."""
    pattern = pattern_of(_episode(name, 0, 1))
    override = Override(queues=pattern or "", values={})

    assert override.covers("/", covers)
    assert not override.covers("/", not_covers)


def test_settings_are_every_combination():
    """With the thresholds in force first; a value that is in force is not another setting."""
    found = settings_of(["overload_for=3m,300", "hold=30"], Thresholds())

    assert [it.name for it in found] == [
        PRESENT,
        "queues.overload_for=180, hold=30",
        "queues.overload_for=300, hold=30",
    ]
    assert found[2].thresholds.queues.overload_for == 300.0


def test_overrides_in_force_stay():
    """A changed threshold does not drop them."""
    override = Override(queues="^mail", values={"consumers": {"slow_for": 60}})
    found = settings_of(["overload_for=300"], Thresholds(overrides=(override,)))

    assert found[1].thresholds.overrides == (override,)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("overload_fro=300", "--set overload_fro: no such threshold"),
        ("leak_for=300", "--set leak_for: several thresholds have this name"),
        ("overload_for", "invalid --set 'overload_for'; use a threshold and its values"),
        ("overload_for=soon", "--set queues.overload_for: 'soon' is neither a number nor a duration"),
        ("overload_share=3", "--set queues.overload_share: input should be less than 1"),
        ("overload_for=" + ",".join(map(str, range(1, 40))), "combinations are too many, at most 24"),
    ],
)
def test_wrong_settings_are_one_line(text, expected):
    """What is wrong, and what to do instead."""
    with pytest.raises(UsageError, match=expected):
        settings_of([text], Thresholds())


def test_rules_follow_from_the_thresholds():
    """Those whose page names a changed threshold; named ones count more; a wrong name has a hint."""
    settings = settings_of(["overload_for=300"], Thresholds())

    assert chosen_rules([], settings) == (RULE,)
    assert chosen_rules(["no-consumer"], settings) == ("no-consumer",)
    with pytest.raises(UsageError, match="did you mean 'no-consumer'"):
        chosen_rules(["no-consumers"], settings)


def test_needs_that_are_not_recorded_are_reported():
    """They come from the pages of the catalogue."""
    assert unrecorded_needs("zombie-connection") == ("connections",)
    assert unrecorded_needs("probe-path-slow") == ("probes",)
    assert replayable("no-consumer")
    assert {"queue-overload", "slow-consumer"} <= set(related_rules([RULE]))
    assert "zombie-connection" not in related_rules([RULE])


def test_history_is_cut_by_grain_gap_and_size():
    """Landing where it is, minutes else; no task over a gap, none with too many rows or too long."""
    landed, minutes = dict.fromkeys((3, 4), 700_000.0), dict.fromkeys((0, 1, 2, 3, 7, 8), 1.0)

    assert [
        HistoryStretch(MINUTES, 0, 3),
        HistoryStretch(LANDING, 3, 4),
        HistoryStretch(LANDING, 4, 5),
        HistoryStretch(MINUTES, 7, 9),
    ] == list(stretches(landed, minutes, 0, 9))
    assert [(it.start, it.end) for it in stretches({}, dict.fromkeys(range(50), 1.0), 0, 50)] == [
        (0, 24),
        (24, 48),
        (48, 50),
    ]


def test_incidents_of_a_file(tmp_path):
    """YAML or JSON; a cluster, a rule and objects may be named."""
    path = tmp_path / "incidents.yaml"
    path.write_text(
        "- {began: 2026-03-01T12:00, ended: 2026-03-01T13:00Z, cluster: shop}\n"
        "- {began: 2026-03-02T12:00, rule: no-consumer, objects: [{kind: queue, vhost: /, name: orders}]}\n"
    )
    (cluster, first), (_, second) = read_incidents(path)

    assert (cluster, first.ended - first.began, first.subjects) == ("shop", 3600.0, frozenset())
    assert (second.ended, second.rule, second.subjects) == (None, "no-consumer", frozenset({("queue", "/", "orders")}))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{}", "must be a list of incidents"),
        ("- {ended: 2026-03-01T12:00}", "entry 1 needs `began`"),
        ("- {began: soon}", "entry 1 needs `began`"),
        ("[", "neither YAML nor JSON"),
    ],
)
def test_wrong_incidents_are_one_line(tmp_path, text, expected):
    """With the file, and the entry."""
    path = tmp_path / "incidents.yaml"
    path.write_text(text)
    with pytest.raises(DataError, match=expected):
        read_incidents(path)


def _document() -> dict:
    settings = settings_of(["overload_for=300"], Thresholds())
    history = _history([_episode("orders.b", 0, 1)], [], truths=())
    lacks = {RULE: ["connections"], "no-consumer": ["queues.arguments"]}
    judged = {RULE: 5, "no-consumer": 5, "node-down": 5}
    task = TaskResult("shop", 0.0, WEEK, MINUTES, judged=judged, lacks=lacks, first=60.0, last=WEEK, diagnoses=5)
    asked = Asked((RULE, "no-consumer", "node-down", "zombie-connection"), Severity.WARNING, 0.0, WEEK)
    proposals = propose([history], settings, [RULE], Severity.WARNING)
    return document("shop", asked, settings, Replayed([history], [task], {}, 3), proposals, 0.0)


def test_document_says_what_can_be_replayed():
    """Finding nothing without a field that the rule reads proves nothing."""
    found = {it["rule"]: (it["replay"], it["lacks"]) for it in _document()["rules"]}

    assert found == {
        RULE: (APPROXIMATE, ("connections",)),
        "no-consumer": (NOT_REPLAYABLE, ("queues.arguments",)),
        "node-down": (EXACT, ()),
        "zombie-connection": (NOT_REPLAYABLE, ("connections",)),
    }


def test_report_fits_a_terminal():
    """80 columns, with the table, the proposal as configuration, and what cannot be replayed."""
    text = list(lines(json.loads(json.dumps(_document()))))

    assert max(map(len, text)) <= 80
    assert any(line.startswith("overload_for=300 ") for line in text)
    assert "      - queues: ^orders[.]" in text
    assert "zombie-connection: not replayable: needs connections" in text
