"""What is known of each target model."""

from django.db.models.functions import Lower
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from imagedb.models import TargetModel
from imagedb.selectors.examples import first_examples, pairs_of_target_model
from imagedb.selectors.visibility import visible_images
from leaderboard import selectors
from leaderboard.views.shared import catalogue_context, public_image
from scooter_site.common.page_meta import page_meta


@require_safe
def target_models(request: HttpRequest) -> HttpResponse:
    """All target models, each with an example; the demonstration's comes last."""
    rows = TargetModel.objects.order_by("is_demo", Lower("name"))
    examples = first_examples(visible_images(request.user), rows)
    description = "The classifiers under attack: architecture, training, weights, preprocessing and clean accuracy."
    context = {
        "page": "target-models",
        "cards": [(model, examples.get(model.pk)) for model in rows],
        **page_meta(request, "Target models", description, **public_image(list(examples.values()))),
    }
    return render(request, "leaderboard/target_models.html", context)


@require_safe
def target_model(request: HttpRequest, slug: str) -> HttpResponse:
    """One target model: facts, examples, distances, results, downloads."""
    model = get_object_or_404(TargetModel, slug=slug)
    visible = visible_images(request.user)
    entries = selectors.entries_of_target_model(model)
    pairs = pairs_of_target_model(visible, model)
    context = catalogue_context(request, visible, pairs, entries, target_model=model)
    description = model.description or f"{model.name}: what it is, and the attacks made against it, with examples."
    context |= {
        "page": "target-models",
        "target_model": model,
        **page_meta(request, model.name, description, **public_image(context["examples"])),
    }
    return render(request, "leaderboard/target_model.html", context)
