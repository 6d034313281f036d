"""The file field of the import form, which sends large files in parts where the browser runs scripts."""

from typing import Any, ClassVar

from django.contrib.auth.models import AbstractUser
from django.forms import HiddenInput, ModelForm, UUIDField
from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from unfold.widgets import UnfoldAdminFileFieldWidget

from imagedb.models.uploads import UploadStatus
from imagedb.selectors.uploads import own_uploads


class PartUploadWidget(UnfoldAdminFileFieldWidget):
    """A file field with a panel for upload.js; ``upload_id`` is that of an upload that has arrived already."""

    template_name = "admin/imagedb/upload_widget.html"
    upload_id = ""

    class Media:
        js = ("admin_pages/upload.js",)

    def get_context(self, name: str, value: Any, attrs: Any) -> dict[str, Any]:
        context = super().get_context(name, value, attrs)
        context["widget"]["upload_id"] = self.upload_id
        return context

    def _render(self, template_name: str, context: dict[str, Any], renderer: Any = None) -> SafeString:
        # The form's own renderer knows the templates of apps only, not those of the project.
        return render_to_string(template_name, context)


class ArchiveOrUploadForm(ModelForm):
    """A form whose ``archive`` is either posted with it, or names an upload that has arrived in parts.

    ``cleaned_data["upload"]`` is then a complete Upload of ``user``, else None. The widget renders its hidden field.
    """

    user: ClassVar[AbstractUser | None] = None  # set on the class that the admin makes for one request
    upload = UUIDField(required=False, widget=HiddenInput)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "archive" in self.fields:
            widget = PartUploadWidget(attrs={"accept": ".zip"})
            widget.is_required = True
            widget.upload_id = self.data.get("upload", "")
            self.fields["archive"].widget = widget
            self.fields["archive"].required = not widget.upload_id

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        public_id = values.get("upload")
        values["upload"] = None
        if public_id and self.user:
            values["upload"] = own_uploads(self.user).filter(public_id=public_id, status=UploadStatus.COMPLETE).first()
        if self.data.get("upload") and values["upload"] is None:
            self.fields["archive"].widget.upload_id = ""
            self.add_error(
                "archive", "That upload has not arrived whole, or is not there any more. Choose the file again."
            )
        return values
