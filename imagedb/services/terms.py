"""Accepting the terms under which images from ImageNet are passed on."""

from django.contrib.auth.models import AbstractBaseUser

from imagedb import terms
from imagedb.models import TermsAcceptance


def accept_terms(user: AbstractBaseUser) -> TermsAcceptance:
    """Store that the account accepts the terms as they are now, and when. Accepting twice changes nothing."""
    acceptance, _ = TermsAcceptance.objects.get_or_create(user_id=user.pk, version=terms.CURRENT_VERSION)
    return acceptance
