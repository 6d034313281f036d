"""Simulated participants: complete ways over HTTP, every outcome, and the behaviour they are asked for."""

import random
from io import StringIO

import httpx
import numpy as np
import pytest
from django.core.management import CommandError, call_command
from django.core.signals import request_finished, request_started
from django.db import close_old_connections

from imagedb.models import ImageKind
from studies.bots import Behaviour, Bot, Mind, simulate
from studies.flow import Outcome, Step
from studies.models import AttentionPolicy, Participation, ParticipationKind, Rating, TrialKind
from studies.services import life
from tests import factories


@pytest.fixture(autouse=True)
def _requests_inside_the_test_transaction(request):
    """Requests to the WSGI application close the connection, which here holds the test's transaction."""
    if "live_server" in request.fixturenames:
        yield
        return
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


def only_walk(study, behaviour=Behaviour(), **options):  # noqa: B008 - frozen
    (walk,) = simulate(study, behaviour, count=1, seed=1, **options)
    return walk


def mean_value(study, kind):
    ratings = Rating.objects.filter(trial__participation__study=study, trial__image__kind=kind)
    return np.mean(list(ratings.values_list("value", flat=True)))


@pytest.mark.django_db
def test_bots_complete_the_study_as_test_participants():
    study = factories.running_study()
    walks = list(simulate(study, Behaviour(ability=1), count=3, seed=1))
    assert [(walk.outcome, walk.error, walk.ratings) for walk in walks] == [(Outcome.COMPLETED, "", 8)] * 3
    participations = Participation.objects.filter(study=study)
    assert {(p.kind, p.step, p.outcome, p.is_valid) for p in participations} == {
        (ParticipationKind.TEST, Step.END, Outcome.COMPLETED, True)
    }
    assert [p.trials.filter(rating__isnull=False).count() for p in participations] == [8, 8, 8]
    assert mean_value(study, ImageKind.MODIFIED) > 40
    assert mean_value(study, ImageKind.CLEAN) < -40
    rating = Rating.objects.first()
    assert 0 < rating.first_interaction_ms <= rating.last_interaction_ms <= rating.response_ms


@pytest.mark.django_db
def test_bots_mind_the_direction_of_a_scale_of_buttons():
    study = factories.running_study("field", modified_per_dataset=6, clean_per_dataset=6)
    assert only_walk(study, Behaviour(ability=1)).outcome is Outcome.COMPLETED
    assert mean_value(study, ImageKind.MODIFIED) < -0.5  # the low end means modified there
    assert mean_value(study, ImageKind.CLEAN) > 0.5


@pytest.mark.django_db
@pytest.mark.parametrize("preset", ["paper", "field"])
@pytest.mark.parametrize("outcome", Outcome)
def test_every_outcome_can_be_forced(preset, outcome):
    study = factories.running_study(preset, comprehension_tries=2)
    walk = only_walk(study, Behaviour(outcome=outcome, carelessness=1, drop_out=1))
    assert (walk.outcome, walk.error) == (outcome, "")
    participation = Participation.objects.get(study=study)
    assert (participation.outcome, participation.step) == (outcome, Step.END)
    assert participation.is_valid == (outcome is Outcome.COMPLETED)


@pytest.mark.django_db
def test_a_study_that_ends_at_once_after_failed_attention():
    study = factories.running_study(attention_policy=AttentionPolicy.END_AT_ONCE)
    walk = only_walk(study, Behaviour(outcome=Outcome.ATTENTION_FAILED))
    assert walk.outcome is Outcome.ATTENTION_FAILED
    assert walk.ratings < 8


@pytest.mark.django_db
def test_an_outcome_that_the_study_cannot_have_is_an_error():
    study = factories.running_study(plate_count=0, plates_required=0)
    walk = only_walk(study, Behaviour(outcome=Outcome.COLOUR_CHECK_FAILED))
    assert walk.error == "ended as completed, not as colour_check_failed"


@pytest.mark.django_db
def test_bots_drop_out_at_any_step():
    study = factories.running_study(participants_per_dataset=20)
    walks = list(simulate(study, Behaviour(drop_out=0.1), count=15, seed=3))
    assert all(bool(walk.left_at) != (walk.outcome is Outcome.COMPLETED) for walk in walks)
    assert len({walk.left_at for walk in walks if walk.left_at}) >= 3
    for walk, participation in zip(walks, Participation.objects.order_by("id"), strict=True):
        assert participation.step == (walk.left_at or Step.END)


@pytest.mark.django_db
def test_careless_bots_fail_checks():
    study = factories.running_study(participants_per_dataset=20)
    outcomes = {walk.outcome for walk in simulate(study, Behaviour(carelessness=1), count=5, seed=1)}
    assert Outcome.COMPLETED not in outcomes
    assert None not in outcomes


@pytest.mark.django_db
def test_a_full_sized_run_has_106_items_and_loads_each_image_once(monkeypatch):
    study = factories.running_study(
        dataset_count=1,
        clean_per_dataset=50,
        modified_per_dataset=50,
        plate_count=5,
        plates_required=5,
        comprehension_pair_count=6,
        comprehension_required=5,
        corrupted_check_count=3,
        instructed_check_count=3,
    )
    paths = []
    real_request = httpx.Client.request
    monkeypatch.setattr(
        httpx.Client,
        "request",
        lambda self, method, url, **rest: paths.append(url) or real_request(self, method, url, **rest),
    )
    walk = only_walk(study)
    assert (walk.outcome, walk.ratings) == (Outcome.COMPLETED, 106)
    assert Rating.objects.filter(trial__participation__study=study).count() == 106
    images = [path for path in paths if "/images/" in path]
    assert len(images) == len(set(images)) == 5 + 2 * 3 + 2 * 6 + 100 + 3


@pytest.mark.django_db
@pytest.mark.parametrize("https", [True, False])
def test_bots_pass_the_same_guards_as_browsers_do(settings, https):
    settings.SECURE_SSL_REDIRECT = settings.CSRF_COOKIE_SECURE = settings.HTTPS = https
    settings.ALLOWED_HOSTS = [".example.net", "scooter.example.org"]
    assert only_walk(factories.running_study()).outcome is Outcome.COMPLETED


@pytest.mark.django_db
def test_a_site_that_answers_wrongly_is_an_error():
    study = factories.running_study()
    client = httpx.Client(transport=httpx.MockTransport(lambda request: httpx.Response(502, text="<title>Bad</title>")))
    walk = Bot(study, client, Behaviour(), random.Random(1)).walk("http://localhost/s/x/")
    assert walk.error == "BotError: GET /s/x/ answered 502 Bad"


@pytest.mark.django_db
def test_ability_and_bias_shift_what_is_answered():
    study = factories.ready_study(clean_per_dataset=4)

    def mean(behaviour, certainty):
        mind = Mind(study, behaviour, random.Random(1))
        return np.mean([mind.rate_image(is_modified=certainty) for _ in range(2000)])

    assert mean(Behaviour(ability=0), True) == pytest.approx(0, abs=3)
    assert mean(Behaviour(ability=0.5), True) == pytest.approx(40, abs=3)
    assert mean(Behaviour(ability=0.5), False) == pytest.approx(-40, abs=3)
    assert mean(Behaviour(ability=0, bias=0.3), False) == pytest.approx(30, abs=3)


@pytest.mark.django_db(transaction=True)
def test_several_bots_at_once_over_a_socket(live_server):
    study = factories.running_study(participants_per_dataset=3)
    walks = list(simulate(study, Behaviour(), count=4, base_url=live_server.url, concurrency=2, seed=1))
    assert [(walk.outcome, walk.error) for walk in walks] == [(Outcome.COMPLETED, "")] * 4
    image_ratings = Rating.objects.filter(trial__kind=TrialKind.IMAGE).count()
    assert (image_ratings, Rating.objects.count()) == (4 * 6, 4 * 8)


def run_command(study, *options):
    output = StringIO()
    call_command("simulate_participants", study.slug, *options, stdout=output)
    return output.getvalue()


@pytest.mark.django_db
def test_the_command_sums_up():
    study = factories.ready_study()
    output = run_command(study, "--count", "2", "--seed", "1")
    assert [line.split(maxsplit=1) for line in output.splitlines()] == [["2", "Completed"], ["16", "ratings"]]


@pytest.mark.django_db
def test_the_command_refuses_a_live_study_unless_told_so():
    study = factories.running_study()
    with pytest.raises(CommandError, match="is live"):
        run_command(study)
    assert not Participation.objects.exists()
    assert "Completed" in run_command(study, "--live")
    assert set(Participation.objects.values_list("kind", flat=True)) == {ParticipationKind.TEST}


@pytest.mark.django_db
def test_the_command_fails_when_a_bot_met_an_error():
    study = life.close(factories.running_study())
    with pytest.raises(CommandError, match="1 of 1 participants met an error"):
        run_command(study)


@pytest.mark.django_db
@pytest.mark.parametrize(
    "option", [["--count", "0"], ["--ability", "1.5"], ["--bias", "-2"], ["--outcome", "vanished"]]
)
def test_the_command_refuses_impossible_numbers(option):
    with pytest.raises(CommandError, match=option[0]):
        run_command(factories.study(), *option)


@pytest.mark.django_db
def test_the_command_names_an_unknown_study():
    with pytest.raises(CommandError, match="no study with the slug nowhere"):
        call_command("simulate_participants", "nowhere")
