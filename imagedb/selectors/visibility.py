"""Who may see which images: the one place that decides it, for pages, API, archives and raw files alike."""

from django.contrib.auth.models import AbstractUser, AnonymousUser
from django.db.models import Exists, OuterRef, Q, QuerySet

from imagedb import terms
from imagedb.models import Image, ImageKind, TermsAcceptance, Visibility


def has_accepted_terms(user: AbstractUser | AnonymousUser) -> bool:
    """Whether the account has accepted the ImageNet terms as they are now."""
    return (
        user.is_authenticated
        and TermsAcceptance.objects.filter(user_id=user.pk, version=terms.CURRENT_VERSION).exists()
    )


def may_see_registered(user: AbstractUser | AnonymousUser) -> bool:
    """Whether images open to registered accounts are open to this one.

    Staff who may view images need not accept the terms: whoever gave them that right answers for it.
    """
    if user.is_staff and user.has_perm("imagedb.view_image"):
        return True
    return has_accepted_terms(user)


def visible_images(user: AbstractUser | AnonymousUser) -> QuerySet[Image]:
    """The images a user may see.

    Anybody: public ones. An account: also what it imported itself, private ones of its groups, and registered ones
    once it has accepted the ImageNet terms (``may_see_registered``). Superusers: all.
    """
    if not user.is_authenticated:
        return Image.objects.filter(visibility=Visibility.PUBLIC)
    if user.is_active and user.is_superuser:
        return Image.objects.all()
    open_to_user = [Visibility.PUBLIC, Visibility.REGISTERED] if may_see_registered(user) else [Visibility.PUBLIC]
    return Image.objects.filter(Q(visibility__in=open_to_user) | _own(user))


def images_after_terms(user: AbstractUser | AnonymousUser) -> QuerySet[Image]:
    """The images that a user does not see, and would see as an account that has accepted the terms.

    Only registered ones, so that their number tells nothing of private ones.
    """
    registered = Image.objects.filter(visibility=Visibility.REGISTERED)
    if not user.is_authenticated:
        return registered
    if (user.is_active and user.is_superuser) or may_see_registered(user):
        return Image.objects.none()
    return registered.exclude(_own(user))


def is_private_pair(attack: str = "attack", target_model: str = "target_model") -> Q:
    """Whether a pair of attack and target model is nobody's business yet: all its images are private.

    A condition on rows that have the two as fields of these names. A pair without images is not private.
    """
    of_pair = Image.objects.filter(
        attack=OuterRef(attack), target_model=OuterRef(target_model), kind=ImageKind.MODIFIED
    ).order_by()
    return Q(Exists(of_pair)) & ~Q(Exists(of_pair.exclude(visibility=Visibility.PRIVATE)))


def _own(user: AbstractUser) -> Q:
    groups = list(user.groups.values_list("pk", flat=True))
    return Q(uploaded_by_id=user.pk) | Q(group_id__in=groups)
