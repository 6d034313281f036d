"""What pages and images must not give away to participants."""

import re
import uuid

import pytest

from studies import selectors
from studies.flow import Step
from studies.models import Participation, Stimulus, TrialKind
from tests import walks
from tests.studies.visitor import Visitor, assert_step

pytestmark = pytest.mark.django_db


def test_images_are_sent_only_while_their_participant_may_see_them(study):
    visitor = Visitor(study)
    stranger = Visitor(study)
    stranger.land()
    participation = visitor.at(Step.COLOUR_CHECK)
    plates = list(participation.plate_trials.order_by("position"))
    trials = list(participation.trials.order_by("position"))
    example = Stimulus.objects.filter(study=study, purpose="example").first()

    def visible(*wanted: tuple[str, object]) -> list[bool]:
        return [visitor.image(kind, token).status_code == 200 for kind, token in wanted]

    assert visible(("plate", plates[0].token), ("plate", plates[1].token)) == [True, False]
    assert visible(("example", example.token), ("trial", trials[0].token), ("plate", trials[0].token)) == [False] * 3
    assert visible(("plate", uuid.uuid4()), ("nonsense", plates[0].token)) == [False] * 2
    assert stranger.image("plate", plates[0].token).status_code == 404
    assert Visitor(study).image("plate", plates[0].token).status_code == 404

    participation = walks.answer_plates(participation)
    assert visible(("example", example.token), ("plate", plates[0].token)) == [True, False]
    participation = walks.finish_instructions(participation.pk)
    pairs = list(participation.pair_trials.order_by("position"))
    assert visible(("pair-right", pairs[0].token), ("pair-left", pairs[1].token)) == [True, False]
    while participation.step == Step.COMPREHENSION:
        pair = selectors.current_pair(participation)
        participation = walks.answer_pair(participation.pk, pair.token, pair.modified_side)
    seen = [trial.kind != TrialKind.INSTRUCTED and trial.position <= 4 for trial in trials]
    assert visible(*(("trial", trial.token) for trial in trials)) == seen


def stored(stimulus: Stimulus) -> bytes:
    with stimulus.file.open("rb") as file:
        return file.read()


def test_the_left_address_shows_the_left_image(visitor):
    visitor.at(Step.COMPREHENSION)
    pair = selectors.current_pair(visitor.participation)
    modified, clean = stored(pair.modified_stimulus), stored(pair.clean_stimulus)
    sides = {"left": (modified, clean), "right": (clean, modified)}[pair.modified_side]
    assert tuple(visitor.image(f"pair-{side}", pair.token).body for side in ("left", "right")) == sides


def test_all_images_are_sent_with_the_same_headers(visitor):
    participation = visitor.at(Step.COMPREHENSION)
    pair = selectors.current_pair(participation)
    responses = [visitor.image(f"pair-{side}", pair.token) for side in ("left", "right")]
    while participation.step == Step.COMPREHENSION:
        pair = selectors.current_pair(participation)
        participation = walks.answer_pair(participation.pk, pair.token, pair.modified_side)
    kinds = set()
    while participation.step == Step.MAIN:
        trial = walks.current_trial(participation)
        if trial.kind != TrialKind.INSTRUCTED:
            responses.append(visitor.image("trial", trial.token))
            kinds.add((trial.kind, trial.image.kind if trial.image else ""))
        participation = walks.rate(participation)
    assert kinds == {("image", "clean"), ("image", "modified"), ("corrupted", "")}
    varying = {"Content-Length", "ETag"}
    headers = {tuple(sorted((k, v) for k, v in response.items() if k not in varying)) for response in responses}
    assert len(headers) == 1, headers
    (same,) = headers
    assert dict(same)["Content-Type"] == "image/png"
    assert dict(same)["Cache-Control"] == "private, max-age=3600"
    assert dict(same)["X-Content-Type-Options"] == "nosniff"
    assert dict(same)["Content-Disposition"] == 'inline; filename="image.png"'
    lengths = [{name for name in varying if name in response} for response in responses]
    assert lengths == [varying] * len(responses)


def test_no_page_before_the_end_holds_a_code_an_answer_or_a_kind(prolific_study):
    codes = list(prolific_study.completion_codes.values_list("code", flat=True))
    assert len(codes) >= 4
    for step in [step for step in Step if step != Step.END]:
        Participation.objects.all().delete()
        visitor = Visitor(prolific_study)
        visitor.at(step)
        text = visitor.page().content.decode()
        assert_step(visitor.page(), step)
        for secret in [*codes, "modified_side", "corrupted", "instructed_value", "submissions/complete"]:
            assert secret not in text, f"{secret} on the page of {step}"
        if step == Step.MAIN:
            data = visitor.page().context["data"]
            assert set(data["trial"]) == {
                "token", "position", "total", "image", "second_image", "text", "exposure_ms", "answer",
            }  # fmt: skip
            assert len(data["upcoming"]) == 3
            assert all(set(item) == set(data["trial"]) for item in data["upcoming"])
        if step == Step.COMPREHENSION:
            pair = selectors.current_pair(visitor.participation)
            left, right = re.findall(r'<label class="choice choice-image">(.*?)</label>', text, re.DOTALL)
            swapped = left.replace("Left", "Right").replace("left", "right").replace('data-key="1"', 'data-key="2"')
            assert swapped == right, "but for its name, one side is like the other"
            for secret in (pair.modified_stimulus.token, pair.clean_stimulus.token, pair.modified_stimulus.file.name):
                assert str(secret) not in text


def test_plate_pages_differ_in_nothing_but_token_and_number(visitor):
    participation = visitor.at(Step.COLOUR_CHECK)
    texts = set()
    for trial in participation.plate_trials.order_by("position"):
        text = visitor.page().content.decode()
        text = re.sub(r'csrfmiddlewaretoken" value="\w+"', "", text).replace(str(trial.token), "TOKEN")
        text = text.replace(f"Plate {trial.position} of", "").replace(f'<progress value="{trial.position - 1}"', "")
        texts.add(text)
        visitor.post("colour_check", token=trial.token, answer=walks.right_plate_answer(trial))
    assert len(texts) == 1
