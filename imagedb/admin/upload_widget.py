"""The file field of the import form, which sends large files in parts where the browser runs scripts."""

from typing import Any, ClassVar

from django.contrib.auth.models import User
from django.forms import HiddenInput, ModelForm, UUIDField
from django.template.loader import render_to_string
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.widgets import UnfoldAdminFileFieldWidget

from imagedb.models.uploads import UploadStatus
from imagedb.selectors.uploads import own_uploads


class PartUploadWidget(UnfoldAdminFileFieldWidget):
    """A file field with a panel for upload.js; ``upload_id`` is that of an upload that has arrived already."""

    upload_id = ""

    class Media:
        css: ClassVar = {"all": ("admin_pages/uploads.css",)}
        js = ("admin_pages/upload_sending.js", "admin_pages/upload.js")

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        # Not as a template of the widget: the renderer of forms knows the templates of apps only.
        field = super().render(name, value, attrs, renderer)
        panel = {"upload_id": self.upload_id, "field_id": (attrs or {}).get("id", "")}
        return format_html("{}{}", field, render_to_string("admin/imagedb/upload_panel.html", panel))


class ArchiveOrUploadForm(ModelForm):
    """A form whose ``archive`` is either posted with it, or names an upload that has arrived in parts.

    ``cleaned_data["upload"]`` is then a complete Upload of ``user``, else None. The widget renders its hidden field.
    """

    user: ClassVar[User | None] = None  # set on the class that the admin makes for one request
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
