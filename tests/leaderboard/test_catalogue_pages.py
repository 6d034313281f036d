"""What is known of attacks and target models: their pages and lists."""

import pytest
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from imagedb.models import Image, Visibility
from tests import factories
from tests.imagedb.catalogue_pages import SEES, measured, pair_of_each_visibility, text_of, visitors
from tests.leaderboard import rows

pytestmark = pytest.mark.django_db


def get(client, name, *slugs):
    response = client.get(reverse(name, args=slugs))
    assert response.status_code == 200
    return response.content.decode()


@pytest.fixture
def attack():
    return factories.attack(
        name="cAdv",
        slug="cadv",
        family="colour",
        description="Recolours images.",
        threat_model="white_box",
        is_targeted=False,
        parameters={"hints": 50, "optimizer": {"lr": 0.0001}},
        paper_title="Unrestricted Adversarial Examples",
        paper_url="https://arxiv.org/abs/1904.06347",
        code_url="https://github.com/someone/cadv",
        bibtex="@inproceedings{cadv}",
        venue="ICLR",
        year=2020,
    )


@pytest.fixture
def model():
    return factories.target_model(
        name="ResNet-50",
        slug="resnet",
        architecture="ResNet-50",
        training="Adversarial, L2",
        source="https://robustbench.github.io/",
        weights_reference="Salman2020Do_R50",
        preprocessing="Resize to 256,\ncrop 224.",
        clean_accuracy=0.6402,
        description="A robust classifier.",
    )


def test_an_attack_says_all_there_is(client, attack, model):
    for linf in (4, 8, 30):
        measured(attack=attack, target_model=model, linf=linf)
    rows.entry(attack=attack, target_model=model, difference=81.4)
    rows.entry(attack=factories.attack(name="Other"), target_model=model, difference=-2.0)
    content = get(client, "attack", "cadv")
    text = text_of(content)
    for words in (
        "cAdv Colour Recolours images.",
        "Threat model White box",
        "Targeted No: any wrong class will do",
        "Unrestricted Adversarial Examples ICLR 2020",
        "BibTeX Copy @inproceedings{cadv}",
        "hints 50 optimizer › lr 0.0001",
        "ResNet-50 3 8 4 – 30 4.50 4.50 75.0 %",
        "The largest change of any colour channel",
        # The rank is that among all.
        "2 cAdv Colour ResNet-50 +81.4",
        "3 images ,",
    ):
        assert words in text, words
    assert "Other" not in text
    for target in (
        "https://arxiv.org/abs/1904.06347",
        "https://github.com/someone/cadv",
        reverse("target-model", args=["resnet"]),
        f"{reverse('imagedb:gallery')}?attack=cadv",
        f"{reverse('image-archive')}?attack=cadv&amp;archive_type=zip",
        f"{reverse('image-list')}?attack=cadv&amp;format=csv&amp;page_size=500",
    ):
        assert f'href="{target}"' in content, target
    assert content.count('<figure class="triptych') == 3
    assert content.count("/difference/?factor=") == 2 * 3


def test_a_target_model_says_all_there_is(client, attack, model):
    measured(attack=attack, target_model=model)
    measured(attack=factories.attack(name="ACA"), target_model=model, linf=200)
    measured(attack=attack, target_model=factories.target_model(name="Another"))
    rows.entry(attack=attack, target_model=model)
    content = get(client, "target-model", "resnet")
    text = text_of(content)
    for words in (
        "A robust classifier.",
        "Training Adversarial, L2",
        "Data set ImageNet-1k",
        "Clean accuracy 64.0 %",
        "Weights Salman2020Do_R50",
        "Resize to 256, crop 224.",
        "ACA 1 200 200",
        "cAdv 1 8 8",
        "2 images ,",
        "1 cAdv Colour ResNet-50 +40.0",
    ):
        assert words in text, words
    assert "Another" not in text
    assert '<a href="https://robustbench.github.io/" rel="nofollow">' in content
    assert f'href="{reverse("image-archive")}?target_model=resnet&amp;archive_type=webdataset"' in content


def test_what_nothing_is_known_of(client):
    factories.attack(name="Bare", slug="bare")
    factories.target_model(name="Plain", slug="plain")
    text = text_of(get(client, "attack", "bare"))
    for words in (
        "Threat model Not given",
        "Targeted Not given",
        "None are recorded.",
        "No results are published yet.",
        "There are no images to measure.",
        "There are no images to show.",
    ):
        assert words in text, words
    assert "More examples" not in text
    assert "Clean accuracy Not given" in text_of(get(client, "target-model", "plain"))


@pytest.mark.parametrize("count", [1, 2])
def test_with_hardly_any_images(client, attack, model, count):
    for _ in range(count):
        measured(attack=attack, target_model=model)
    content = get(client, "attack", "cadv")
    assert content.count('<figure class="triptych') == count
    assert ("More examples" in content) == (count > 1)
    assert f"{count} image{'s' if count > 1 else ''} ," in text_of(content)


def test_images_that_were_not_measured(client, attack):
    factories.modified_image(attack=attack, target_model=None)
    content = get(client, "attack", "cadv")
    assert "No particular model 1 Not measured" in text_of(content)
    assert "/difference/" not in content


def test_0_is_an_answer(client, model):
    measured(attack=factories.attack(slug="null", parameters={"epsilon": 0}), target_model=model, linf=0, l2=0.0)
    text = text_of(get(client, "attack", "null"))
    assert "epsilon 0" in text
    assert "ResNet-50 1 0 0 0.00 0.00" in text
    model.clean_accuracy = 0
    model.save()
    assert "Clean accuracy 0 %" in text_of(get(client, "target-model", "resnet"))
    assert "0 % clean accuracy" in text_of(get(client, "target-models"))


def test_the_lists(client, attack, model):
    measured(attack=attack, target_model=model)
    factories.attack(name="aca", venue="", year=2023)
    factories.attack(name="Aardvark", is_demo=True)
    content = get(client, "attacks")
    text = text_of(content)
    # In alphabetical order whatever the case; stand-ins stand last.
    assert text.index("aca") < text.index("cAdv") < text.index("Aardvark")
    assert "cAdv Colour · ICLR 2020 Recolours images." in text
    assert "Other · 2023" in text
    assert "Aardvark Other Demonstration: a stand-in" in text
    assert text.count("No images to show") == 2
    text = text_of(get(client, "target-models"))
    assert "ResNet-50 ResNet-50 · ImageNet-1k · 64.0 % clean accuracy Adversarial, L2" in text


def test_empty_lists_explain_themselves(client):
    assert "No attacks yet" in text_of(get(client, "attacks"))
    assert "No target models yet" in text_of(get(client, "target-models"))


def test_each_visitor_sees_what_its_account_opens_and_no_gaps(attack, model):
    pairs = pair_of_each_visibility(attack, model)
    for name, client in visitors().items():
        for content in (get(client, "attack", "cadv"), get(client, "target-model", "resnet")):
            for visibility, (clean, modified) in pairs.items():
                seen = visibility in SEES[name]
                assert (str(modified.public_id) in content) == seen, (name, visibility)
                assert (str(clean.public_id) in content) == seen, (name, visibility)
            text = text_of(content)
            count = len(SEES[name])
            assert content.count('<figure class="triptych') == count
            assert f"{count} image{'s' if count > 1 else ''} ," in text
            promised = "1 more image after accepting the ImageNet terms" in text
            assert promised == (name in {"anonymous", "without terms", "member", "staff"}), name
        for address in ("attacks", "target-models"):
            content = get(client, address)
            assert not any(
                str(image.public_id) in content
                for visibility, pair in pairs.items()
                if visibility not in SEES[name]
                for image in pair
            )


def test_what_links_to_the_page_show(client, attack, model):
    hidden = measured(attack=attack, target_model=model, visibility=Visibility.PRIVATE)
    shown = measured(attack=attack, target_model=model)
    content = get(client, "attack", "cadv")
    assert "<title>cAdv – Scooter</title>" in content
    assert '<meta name="description" content="Recolours images.">' in content
    assert '<link rel="canonical" href="http://testserver/attacks/cadv/">' in content
    assert '<meta property="og:title" content="cAdv">' in content
    picture = reverse("imagedb:image-file", args=[shown.public_id])
    assert f'<meta property="og:image" content="http://testserver{picture}">' in content
    assert str(hidden.public_id) not in content
    Image.objects.update(visibility=Visibility.PRIVATE)
    assert "og:image" not in get(client, "attack", "cadv")


def test_unknown_names_are_not_found(client):
    assert client.get(reverse("attack", args=["nope"])).status_code == 404
    assert client.get(reverse("target-model", args=["nope"])).status_code == 404
    assert client.get("/attacks/%00/").status_code == 404


def test_names_are_text_never_markup(client):
    attack = factories.attack(
        name="<script>alert(1)</script>", slug="bad", description="<b>x</b>", parameters={"<i>": "<u>"}, bibtex="<em>"
    )
    measured(attack=attack, target_model=factories.target_model(name="<s>model</s>", slug="model"))
    for content in (get(client, "attack", "bad"), get(client, "attacks"), get(client, "target-model", "model")):
        for markup in ("<script>alert", "<b>x", "<i>", "<u>", "<em>", "<s>model"):
            assert markup not in content


@pytest.mark.parametrize("name", ["attack", "target-model", "attacks", "target-models"])
def test_queries_do_not_grow_with_images(client, attack, model, name):
    slugs = {"attack": ["cadv"], "target-model": ["resnet"]}.get(name, [])

    def queries():
        with CaptureQueriesContext(connection) as found:
            get(client, name, *slugs)
        return len(found)

    for _ in range(5):
        measured(attack=attack, target_model=model)
    few = queries()
    source = factories.clean_image()
    copies = [measured(source, attack=attack, target_model=model) for _ in range(5)]
    for number in range(495):
        copy = copies[number % 5]
        copy.pk, copy.public_id, copy.original_sha256 = None, Image().public_id, f"{number:064x}"
        copy._state.adding = True
        copy.save()
    cache.clear()
    assert queries() == few
