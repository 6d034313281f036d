"""The quality rules: what each measures, and that consistent right answers set none of them off."""

import csv
import random
from collections import defaultdict
from pathlib import Path

import pytest

from studies.quality import (
    DESCRIPTIONS,
    Action,
    Answer,
    Answers,
    Policy,
    Rule,
    amount,
    excluding,
    in_words,
    judge,
    may_exclude,
)
from studies.scale import Scale

SLIDER = Scale(-100, 100, higher_is_modified=True)
LIKERT = Scale(-2, 2, higher_is_modified=False)
POLICY = Policy(
    actions=dict.fromkeys(Rule, Action.EXCLUDE),
    thresholds={
        Rule.ATTENTION: 1,
        Rule.FAST_MEDIAN: 1,
        Rule.FAST_SHARE: 20,
        Rule.LONG_STRING: 40,
        Rule.VARIANCE: 2.5,
        Rule.NO_DIFFERENCE: 5,
        Rule.FOCUS: 20,
    },
    fast_answer_seconds=0.8,
)


def image(is_modified, value, response_ms=3000, focus_losses=0):
    return Answer(is_modified=is_modified, value=value, response_ms=response_ms, focus_losses=focus_losses)


def check(value):
    return Answer(is_modified=None, value=value, response_ms=2000, focus_losses=0)


def shuffled(seed=0, clean=50, modified=50):
    kinds = [False] * clean + [True] * modified
    random.Random(seed).shuffle(kinds)
    return kinds


def answers(items, attention_failures=0, image_count=100):
    return Answers(items=items, image_count=image_count, attention_failures=attention_failures)


def found(given, scale=SLIDER, policy=POLICY):
    return {finding.rule: finding for finding in judge(given, scale, policy)}


def flagged(given, scale=SLIDER):
    return {rule for rule, finding in found(given, scale).items() if finding.is_flagged}


def value(rule, items, scale=SLIDER, **kwargs):
    return found(answers(items, **kwargs), scale)[rule].value


# --- What must not be flagged ---------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(50))
@pytest.mark.parametrize(("scale", "clean", "modified"), [(SLIDER, -100, 100), (LIKERT, 2, -2)])
def test_whoever_is_always_right_with_the_same_two_answers_is_flagged_by_nothing(scale, clean, modified, seed):
    items = [image(kind, modified if kind else clean) for kind in shuffled(seed)]
    assert flagged(answers(items), scale) == set()
    measured = found(answers(items), scale)
    assert measured[Rule.LONG_STRING].value == 0
    assert measured[Rule.VARIANCE].value == 50
    assert measured[Rule.NO_DIFFERENCE].value == 100


def test_being_right_in_any_order_is_no_long_string():
    items = [image(False, -100)] * 50 + [image(True, 100)] * 50
    assert flagged(answers(items)) == set()


def test_a_miss_now_and_then_does_not_make_a_long_string_of_good_answers():
    # 25 clean images, a modified one that was missed, and 24 more clean ones: 50 equal answers, one of them wrong.
    items = [image(kind, -100) for kind in [False] * 25 + [True] + [False] * 24]
    items += [image(True, 100)] * 49 + [image(False, -100)]
    assert value(Rule.LONG_STRING, items) == 2
    assert flagged(answers(items)) == set()


def test_who_honestly_sees_no_difference_but_passes_the_checks_is_only_said_to_see_none():
    items = [image(kind, -100) for kind in shuffled(3)]
    for position, answer in ((96, 100), (80, 75), (64, 100), (48, -25), (32, 100), (16, 50)):
        items.insert(position, check(answer))
    assert flagged(answers(items)) == {Rule.NO_DIFFERENCE}
    assert excluding(judge(answers(items), SLIDER, POLICY), POLICY) == []


@pytest.mark.parametrize(("name", "count", "reversed_count"), [("aca", 50, 1), ("cadv", 61, 1), ("semanticadv", 74, 0)])
def test_no_published_rater_is_flagged_but_two_who_read_the_scale_the_wrong_way_round(
    shared_data, name, count, reversed_count
):
    raters = published_raters(shared_data / "ratings" / f"{name}.csv")
    assert len(raters) == count
    said = {rater: flagged(answers(items), LIKERT) for rater, items in raters.items()}
    reversed_raters = {rater: rules for rater, rules in said.items() if rules}
    assert all(rules == {Rule.NO_DIFFERENCE} for rules in reversed_raters.values())
    assert len(reversed_raters) == reversed_count
    for rater in reversed_raters:
        assert value(Rule.NO_DIFFERENCE, raters[rater], LIKERT) < -10
    assert min(value(Rule.VARIANCE, items, LIKERT) for items in raters.values()) > 20
    assert max(value(Rule.LONG_STRING, items, LIKERT) for items in raters.values()) <= 8


def published_raters(path: Path):
    raters = defaultdict(list)
    with path.open(newline="") as lines:
        for row in csv.DictReader(lines):
            raters[row["pid"]].append(image(row["image_type"] == "modified", int(row["rating"])))
    return raters


# --- What is flagged ------------------------------------------------------------------------------------------


def right():
    return [image(kind, 80 if kind else -80) for kind in shuffled(1)]


@pytest.mark.parametrize(("failures", "is_flagged"), [(0, False), (1, False), (2, True)])
def test_attention_is_flagged_above_the_failures_allowed(failures, is_flagged):
    assert (Rule.ATTENTION in flagged(answers(right(), attention_failures=failures))) is is_flagged


@pytest.mark.parametrize(("milliseconds", "is_flagged"), [(990, True), (1000, False)])
def test_too_fast_by_the_median(milliseconds, is_flagged):
    items = [image(kind, 0, response_ms=milliseconds) for kind in shuffled()]
    assert value(Rule.FAST_MEDIAN, items) == milliseconds / 1000
    assert (Rule.FAST_MEDIAN in flagged(answers(items))) is is_flagged


def test_one_long_pause_does_not_hide_a_fast_median():
    items = [image(kind, 0, response_ms=500) for kind in shuffled()]
    items[7] = image(True, 0, response_ms=600_000)
    assert value(Rule.FAST_MEDIAN, items) == 0.5


@pytest.mark.parametrize(("fast", "is_flagged"), [(20, False), (21, True)])
def test_too_fast_by_the_share_of_answers(fast, is_flagged):
    items = [image(kind, 0, response_ms=799 if n < fast else 800) for n, kind in enumerate(shuffled())]
    assert value(Rule.FAST_SHARE, items) == fast
    assert (Rule.FAST_SHARE in flagged(answers(items))) is is_flagged


@pytest.mark.parametrize(
    ("seconds_in_all", "median", "share"),
    # 100 images at 3 s and a check at 2 s: 302 s are claimed.
    [(None, 3, 0), (302, 3, 0), (400, 3, 0), (151, 1.5, 0), (30.2, 0.3, 100), (0, 0, 100)],
)
def test_times_that_the_server_has_not_seen_pass_are_shortened(seconds_in_all, median, share):
    items = [*(image(kind, 0) for kind in shuffled()), check(0)]
    given = Answers(items=items, image_count=100, attention_failures=0, seconds_in_all=seconds_in_all)
    assert found(given)[Rule.FAST_MEDIAN].value == pytest.approx(median)
    assert found(given)[Rule.FAST_SHARE].value == share


@pytest.mark.parametrize(
    ("told", "seconds_in_all", "median", "share"),
    # 100 images of which the first are told to have taken 3 s; the others share what is left of the whole.
    [(0, 2, 0.02, 100), (0, 500, 5, 0), (20, 60, 0, 80), (20, 140, 1, 0), (90, 290, 3, 0), (99, 290, 2.929, 1)],
)
def test_answers_without_a_time_share_what_the_server_has_seen_pass(told, seconds_in_all, median, share):
    items = [image(kind, 0, response_ms=3000 if n < told else None) for n, kind in enumerate(shuffled())]
    given = Answers(items=items, image_count=100, attention_failures=0, seconds_in_all=seconds_in_all)
    assert found(given)[Rule.FAST_MEDIAN].value == pytest.approx(median, abs=0.001)
    assert found(given)[Rule.FAST_SHARE].value == share


def test_times_that_were_not_measured_are_left_out_not_taken_for_fast():
    items = [image(kind, 0, response_ms=None) for kind in shuffled()]
    assert value(Rule.FAST_MEDIAN, items) is None
    assert value(Rule.FAST_SHARE, items) is None
    assert not {Rule.FAST_MEDIAN, Rule.FAST_SHARE} & flagged(answers(items))


def test_checks_are_no_images_for_the_times():
    items = right() + [check(0)] * 6
    assert value(Rule.FAST_MEDIAN, items) == 3


def test_the_same_answer_to_everything_is_a_long_string_without_variance_and_difference():
    items = [image(kind, 37) for kind in shuffled()] + [check(37)] * 6
    assert flagged(answers(items, attention_failures=6)) == {
        Rule.ATTENTION,
        Rule.LONG_STRING,
        Rule.VARIANCE,
        Rule.NO_DIFFERENCE,
    }
    assert value(Rule.LONG_STRING, items) == 100
    assert value(Rule.VARIANCE, items) == 0
    assert value(Rule.NO_DIFFERENCE, items) == 0


def test_half_a_run_of_the_same_answer_is_a_long_string():
    alternating = [False, True] * 25
    items = [image(kind, 90 if kind else -90) for kind in alternating] + [image(kind, 5) for kind in alternating]
    assert value(Rule.LONG_STRING, items) == 50
    assert Rule.LONG_STRING in flagged(answers(items))


def test_a_string_is_measured_by_the_images_planned_not_by_those_answered_so_far():
    items = [image(kind, 0) for kind in [False, True] * 10]
    assert value(Rule.LONG_STRING, items) == 20


def test_variance_is_the_standard_deviation_in_per_cent_of_the_scale():
    items = [image(kind, 10 if number % 2 else -10) for number, kind in enumerate(shuffled())]
    assert value(Rule.VARIANCE, items) == pytest.approx(5)
    assert Rule.VARIANCE not in flagged(answers(items))
    items = [image(kind, 4 if number % 2 else -4) for number, kind in enumerate(shuffled())]
    assert value(Rule.VARIANCE, items) == pytest.approx(2)
    assert Rule.VARIANCE in flagged(answers(items))


def test_the_difference_is_modified_minus_clean_whatever_the_direction():
    assert value(Rule.NO_DIFFERENCE, right()) == pytest.approx(80)
    wrong_way_round = [image(kind, -80 if kind else 80) for kind in shuffled()]
    assert value(Rule.NO_DIFFERENCE, wrong_way_round) == pytest.approx(-80)
    assert flagged(answers(wrong_way_round)) == {Rule.NO_DIFFERENCE}
    by_likert = [image(kind, -1 if kind else 1) for kind in shuffled()]
    assert value(Rule.NO_DIFFERENCE, by_likert, LIKERT) == pytest.approx(50)


def test_leaving_the_window_counts_answers_not_losses():
    items = [image(kind, 0, focus_losses=9 if number < 21 else 0) for number, kind in enumerate(shuffled())]
    assert value(Rule.FOCUS, items) == 21
    assert Rule.FOCUS in flagged(answers(items))
    assert value(Rule.FOCUS, [image(kind, 0, focus_losses=None) for kind in shuffled()]) is None


# --- All of them ----------------------------------------------------------------------------------------------


def test_with_few_answers_nothing_is_said_but_about_checks():
    measured = found(answers([image(kind, 0, response_ms=1) for kind in [True, False] * 9], attention_failures=2))
    assert {rule for rule, finding in measured.items() if finding.value is not None} == {Rule.ATTENTION}
    assert {rule for rule, finding in measured.items() if finding.is_flagged} == {Rule.ATTENTION}
    assert {finding.value for rule, finding in found(answers([])).items() if rule != Rule.ATTENTION} == {None}


def test_a_short_study_is_judged_when_all_its_images_are_answered():
    items = [image(kind, 0) for kind in [True, False] * 3]
    assert value(Rule.VARIANCE, items, image_count=6) == 0
    assert value(Rule.VARIANCE, items[:5], image_count=6) is None


def test_a_rule_that_is_off_says_nothing_and_one_that_flags_does_not_exclude():
    actions = dict.fromkeys(Rule, Action.FLAG) | {Rule.FOCUS: Action.OFF, Rule.VARIANCE: Action.EXCLUDE}
    policy = Policy(actions=actions, thresholds=POLICY.thresholds, fast_answer_seconds=0.8)
    findings = judge(answers([image(kind, 0) for kind in shuffled()], attention_failures=3), SLIDER, policy)
    assert [finding.rule for finding in findings] == [rule for rule in Rule if rule != Rule.FOCUS]
    assert [finding.rule for finding in excluding(findings, policy)] == [Rule.VARIANCE]


def test_what_the_study_is_to_find_out_never_excludes():
    kinds = [True, False, False, True] * 25
    items = [image(kind, 80 if number % 2 else -80) for number, kind in enumerate(kinds)]
    findings = judge(answers(items), SLIDER, POLICY)
    assert [finding.rule for finding in findings if finding.is_flagged] == [Rule.NO_DIFFERENCE]
    assert excluding(findings, POLICY) == []
    assert [rule for rule in Rule if not may_exclude(rule)] == [Rule.NO_DIFFERENCE]


def test_findings_in_words():
    measured = found(answers([image(kind, 0, response_ms=632) for kind in shuffled()], attention_failures=2))
    assert in_words(measured[Rule.FAST_MEDIAN]) == "Too fast, median: 0.63 s (threshold 1 s)"
    assert in_words(measured[Rule.ATTENTION]) == "Failed attention checks: 2 (threshold 1)"
    assert in_words(found(answers([]))[Rule.FOCUS]) == "Left the window: not measured (threshold 20 %)"
    assert amount(-12.5, "% of the scale") == "−12.5 % of the scale"


def test_every_rule_is_described_and_documented():
    documented = Path("docs/quality.md").read_text(encoding="utf-8")
    for rule in Rule:
        assert DESCRIPTIONS[rule].fair
        assert f"## {DESCRIPTIONS[rule].label}" in documented
