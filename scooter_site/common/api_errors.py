"""The errors of the API, as its schema describes them."""

from drf_spectacular.utils import OpenApiResponse
from rest_framework import serializers


class ErrorSerializer(serializers.Serializer):
    """Why a request has no answer."""

    detail = serializers.CharField()


BAD_PARAMETER = OpenApiResponse(
    {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "string"}}},
    description="A query parameter is unknown or has a bad value: its name, and what is wrong.",
)
NOT_SIGNED_IN = OpenApiResponse(ErrorSerializer, description="The token is not valid.")
NOT_FOUND = OpenApiResponse(ErrorSerializer, description="There is no such thing, or you may not see it.")
LIST_ERRORS = {400: BAD_PARAMETER, 401: NOT_SIGNED_IN}
DETAIL_ERRORS = {**LIST_ERRORS, 404: NOT_FOUND}
