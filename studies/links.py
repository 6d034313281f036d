"""Tokens in links that researchers hand out."""

from django.core.signing import Signer
from django.utils.crypto import constant_time_compare

from studies.models import Study


def test_token(study: Study) -> str:
    """The token of this study's test link: who enters with it gives test data, which never count."""
    return Signer(salt="studies.test_link").signature(str(study.pk))


def is_valid_test_token(study: Study, token: str) -> bool:
    """Whether ``token`` was made by this site for this very study."""
    return constant_time_compare(test_token(study), token)
