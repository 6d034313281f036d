"""How images are joined with what describes them."""

from typing import Any

from django.contrib.auth.models import AbstractUser, AnonymousUser
from django.db.models import Case, Exists, F, OuterRef, Prefetch, Q, QuerySet, Subquery, When

from imagedb.models import CollectionVersion, Image, ImageKind, Prediction
from imagedb.selectors.collections import visible_versions
from imagedb.selectors.visibility import visible_images


def _predictions() -> QuerySet[Prediction]:
    return Prediction.objects.filter(image=OuterRef("pk"))


def _predictions_of_own_target_model() -> QuerySet[Prediction]:
    return _predictions().filter(target_model=OuterRef("target_model"))


def is_as_intended() -> Case:
    """For ``Image`` querysets: the answers known are as they should be; false without any.

    The target model of a modified image must name another class than the image's own, and every model that was
    asked about a clean image must name its class.
    """
    own_class = Q(predicted_class=OuterRef("image_class"))
    return Case(
        When(kind=ImageKind.MODIFIED, then=Exists(_predictions_of_own_target_model().exclude(own_class))),
        default=Exists(_predictions()) & ~Exists(_predictions().exclude(own_class)),
    )


def images_with_details(user: AbstractUser | AnonymousUser, *, visible: QuerySet[Image] | None = None) -> QuerySet[Any]:
    """The images a user may see, with all that describes them, in a constant number of queries.

    ``visible``: what ``visible_images`` has given for the user, where that was asked before.

    Adds ``visible_source_id``: the public id of the source, empty if the user may not see that; and
    ``visible_versions``: the versions of collections it is in, as far as the user may see them.
    """
    visible = visible_images(user) if visible is None else visible
    source = visible.filter(pk=OuterRef("source_id")).values("public_id")
    return (
        visible.annotate(visible_source_id=Subquery(source))
        .select_related("image_class", "attack", "target_model")
        .prefetch_related(
            # Models and classes are few and in many predictions: each is read once, not with every prediction.
            Prefetch("predictions", Prediction.objects.order_by(F("target_model__slug"))),
            "predictions__predicted_class",
            "predictions__target_model",
            Prefetch(
                "collection_versions",
                CollectionVersion.objects.filter(pk__in=visible_versions(user).values("pk"))
                .select_related("collection")
                .only("version", "collection__slug")
                .order_by("collection__slug", "pk"),
                to_attr="visible_versions",
            ),
        )
    )
