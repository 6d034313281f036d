"""What is known of each attack."""

from django.db.models.functions import Lower
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from imagedb.models import Attack
from imagedb.parameters import parameter_lines
from imagedb.selectors.examples import first_examples, pairs_of_attack
from imagedb.selectors.visibility import visible_images
from leaderboard import selectors
from leaderboard.views.shared import catalogue_context, public_image
from scooter_site.common.page_meta import page_meta


@require_safe
def attacks(request: HttpRequest) -> HttpResponse:
    """All attacks, each with an example; the demonstration's stand-ins come last."""
    rows = Attack.objects.order_by("is_demo", Lower("name"))
    examples = first_examples(visible_images(request.user), rows)
    description = (
        "Unrestricted attacks on image classifiers: what they change, with examples, papers and human ratings."
    )
    context = {
        "page": "attacks",
        "cards": [(attack, examples.get(attack.pk)) for attack in rows],
        **page_meta(request, "Attacks", description, **public_image(list(examples.values()))),
    }
    return render(request, "leaderboard/attacks.html", context)


@require_safe
def attack(request: HttpRequest, slug: str) -> HttpResponse:
    """One attack: facts, examples, distances, results, downloads."""
    attack = get_object_or_404(Attack, slug=slug)
    visible = visible_images(request.user)
    context = catalogue_context(
        request, visible, pairs_of_attack(visible, attack), selectors.entries_of_attack(attack), attack=attack
    )
    description = attack.description or f"{attack.name}: examples, distances, human ratings and downloads."
    context |= {
        "page": "attacks",
        "attack": attack,
        "parameters": parameter_lines(attack.parameters),
        **page_meta(request, attack.name, description, **public_image(context["examples"])),
    }
    return render(request, "leaderboard/attack.html", context)
