"""The form that an import is asked for with: a ZIP, an upload that has arrived, or a prefix of the bucket."""

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from unfold.widgets import UnfoldAdminTextInputWidget

from imagedb.admin.upload_widget import ArchiveOrUploadForm
from imagedb.services.import_sources import checked_prefix, has_bucket
from imagedb.services.importing import ImportFailed, own_groups


class ImportForm(ArchiveOrUploadForm):
    """``cleaned_data`` has ``archive``, ``upload`` (see there) or ``prefix``; with that, perhaps ``manifest_name``."""

    prefix = forms.CharField(  # type: ignore[assignment]  # a field, which Django keeps apart from the attribute
        required=False,
        max_length=500,
        widget=UnfoldAdminTextInputWidget,
        label="Or a prefix of the bucket",
        help_text="For sets too large to upload: copy them to incoming/NAME/ in the bucket and write that here.",
    )
    manifest_name = forms.CharField(
        required=False,
        max_length=255,
        widget=UnfoldAdminTextInputWidget,
        label="Manifest below the prefix",
        help_text="Only needed if there are several CSV or JSONL files and none is named manifest.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "archive" not in self.fields:
            return
        if not has_bucket():
            del self.fields["prefix"], self.fields["manifest_name"]
        elif self.data.get("prefix", "").strip():
            self.fields["archive"].required = False
        group = self.fields.get("group")
        if isinstance(group, forms.ModelChoiceField) and self.user:
            group.queryset = own_groups(self.user)

    def clean_prefix(self) -> str:
        """The prefix in its one form."""
        prefix = self.cleaned_data["prefix"].strip()
        if not prefix:
            return ""
        if self.data.get("upload") or self.files.get("archive"):
            raise ValidationError("Give either a ZIP or a prefix.")
        try:
            return checked_prefix(prefix)
        except ImportFailed as problem:
            raise ValidationError(str(problem)) from problem
