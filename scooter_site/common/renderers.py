"""A list as CSV or JSON lines: the same rows, filters and pages as the JSON list, for spreadsheets and pipes.

The next page's address is in the header ``Link`` of every format, as these two have no place for it.
"""

import csv
import io
from collections.abc import Iterator, Mapping
from typing import Any

from rest_framework import serializers
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.response import Response

from scooter_site.common.csv_text import cell


class _ListRenderer(BaseRenderer):
    charset = "utf-8"

    @staticmethod
    def rows(data: Any) -> list[Mapping[str, Any]]:
        return data["results"]


class CSVRenderer(_ListRenderer):
    """One line per row, with a header. Nested values have columns of their own, see ``columns``."""

    media_type = "text/csv"
    format = "csv"

    def render(self, data: Any, accepted_media_type: str | None = None, renderer_context: Any = None) -> bytes:
        paths = list(columns(renderer_context["view"].get_serializer()))
        buffer = io.StringIO()
        writer = csv.writer(buffer)
        writer.writerow("_".join(path) for path in paths)
        writer.writerows([cell(_value(row, path)) for path in paths] for row in self.rows(data))
        return buffer.getvalue().encode()


class JSONLinesRenderer(_ListRenderer):
    """One JSON object per row and line, the same objects as in the JSON list."""

    media_type = "application/x-ndjson"
    format = "jsonl"

    def render(self, data: Any, accepted_media_type: str | None = None, renderer_context: Any = None) -> bytes:
        if not (rows := self.rows(data)):
            # REST framework takes what is empty for no answer, and its type away; here it is a list of nothing.
            renderer_context["response"].add_post_render_callback(self._keep_type)
        to_json = JSONRenderer()
        return b"".join(to_json.render(row) + b"\n" for row in rows)

    def _keep_type(self, response: Response) -> None:
        response["Content-Type"] = f"{self.media_type}; charset={self.charset}"


def columns(serializer: serializers.Serializer, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Paths of the columns of a serializer's rows, the same whatever the rows hold.

    A nested object has a column for each of its fields (``class_index``, ``class_name``). A list of objects too: each
    cell then holds that field of all of them, separated by semicolons (``predictions_confidence``: ``0.91;0.4``).
    """
    for name, field in serializer.fields.items():
        nested = field.child if isinstance(field, serializers.ListSerializer) else field
        if isinstance(nested, serializers.Serializer):
            yield from columns(nested, (*above, name))
        else:
            yield (*above, name)


def _value(row: Any, path: tuple[str, ...]) -> Any:
    for step, name in enumerate(path):
        if row is None:
            return None
        if isinstance(row, list):
            return [_value(item, path[step:]) for item in row]
        row = row[name]
    return row
