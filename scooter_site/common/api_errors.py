"""The errors of the API: how they are sent, and as its schema describes them."""

from typing import Any

from drf_spectacular.utils import OpenApiResponse
from rest_framework import serializers
from rest_framework.renderers import JSONRenderer
from rest_framework.response import Response
from rest_framework.views import exception_handler


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


def errors_as_json(error: Exception, context: dict[str, Any]) -> Response | None:
    """DRF's handling of errors; what went wrong is JSON whatever format the rows would have had."""
    response = exception_handler(error, context)
    if response is not None:
        context["request"].accepted_renderer = JSONRenderer()
        context["request"].accepted_media_type = JSONRenderer.media_type
    return response
