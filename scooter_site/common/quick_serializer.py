"""Rows of long lists, without the framework's detours."""

from functools import cached_property
from typing import Any

from rest_framework import serializers

# What models hold in the same form as JSON shows it.
SHOWN_AS_THEY_ARE = (
    serializers.BooleanField,
    serializers.CharField,
    serializers.ChoiceField,
    serializers.FloatField,
    serializers.IntegerField,
)


class QuickSerializer(serializers.ModelSerializer):
    """A serializer that reads plain columns directly: for each of them REST framework makes half a dozen calls.

    For reading only; the result is the same.
    """

    @cached_property
    def _columns(self) -> list[tuple[str, str, serializers.Field | None]]:
        """Name, source, and the field that must be asked for its form, none for what is shown as it is."""
        return [
            (name, field.source, None if isinstance(field, SHOWN_AS_THEY_ARE) and "." not in field.source else field)
            for name, field in self.fields.items()
        ]

    def to_representation(self, instance: Any) -> dict[str, Any]:
        row = {}
        for name, source, field in self._columns:
            if field is None:
                row[name] = getattr(instance, source)
            else:
                value = field.get_attribute(instance)
                row[name] = None if value is None else field.to_representation(value)
        return row
