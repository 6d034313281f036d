"""Which format an answer has."""

from typing import Any

from rest_framework.exceptions import ValidationError
from rest_framework.negotiation import BaseContentNegotiation, DefaultContentNegotiation
from rest_framework.request import Request


class StrictNegotiation(DefaultContentNegotiation):
    """``?format=`` or Accept; a format that there is not is an error with the parameter's name, as other values are."""

    def filter_renderers(self, renderers: Any, format: str) -> Any:
        known = [renderer.format for renderer in renderers]
        if format not in known:
            raise ValidationError({"format": [f"Unknown format. Known: {', '.join(known)}."]})
        return super().filter_renderers(renderers, format)


class AnyAccept(BaseContentNegotiation):
    """Files are sent as they are and errors as JSON, whatever the client says it would like."""

    def select_parser(self, request: Request, parsers: Any) -> Any:
        return parsers[0]

    def select_renderer(self, request: Request, renderers: Any, format_suffix: str | None = None) -> Any:
        if "format" in request.query_params:
            raise ValidationError({"format": ["Unknown parameter: a file has one format."]})
        return renderers[0], renderers[0].media_type
