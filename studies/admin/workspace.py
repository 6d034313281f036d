"""Workspaces on Prolific. Their token can be entered, tried and replaced, and never be read."""

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.views.decorators.http import require_POST
from unfold.admin import ModelAdmin
from unfold.decorators import display
from unfold.widgets import UnfoldAdminPasswordWidget

from scooter_site.common.admin_tools import StayOnPage, change_url
from studies.admin.recruitment import in_words
from studies.models import Workspace
from studies.recruitment.errors import ProlificError
from studies.services import webhooks
from studies.services.recruitment import RecruitmentError
from studies.services.workspaces import check_access


class WorkspaceForm(forms.ModelForm):
    """The token's field is always empty; what is typed replaces the stored one."""

    new_token = forms.CharField(
        label="New token",
        required=False,
        strip=True,
        max_length=500,
        widget=UnfoldAdminPasswordWidget({"autocomplete": "off"}),
        help_text="From Prolific, Settings, API tokens. It has all rights of the account that made it; it is stored "
        "encrypted and shown to nobody. Leave empty to keep the one there is.",
    )

    class Meta:
        model = Workspace
        fields = ("name", "workspace_id", "project_id", "currency")

    def clean_new_token(self) -> str:
        token: str = self.cleaned_data["new_token"]
        if not token and not self.instance.encrypted_token:
            raise forms.ValidationError("Without a token nothing can be asked of Prolific.")
        if any(character.isspace() or not character.isprintable() for character in token):
            raise forms.ValidationError("A token has no spaces: copy it again.")
        return token

    def save(self, commit: bool = True) -> Workspace:
        if token := self.cleaned_data["new_token"]:
            self.instance.token = token
            self.instance.token_set_at = timezone.now()
        return super().save(commit)


@admin.register(Workspace)
class WorkspaceAdmin(StayOnPage, ModelAdmin):
    form = WorkspaceForm
    list_display = ("name", "workspace_id", "currency", "token_state", "webhooks_set_up_at")
    readonly_fields = ("token_state", "webhooks_set_up_at")
    fieldsets = (
        (None, {"fields": ("name", "workspace_id", "project_id", "currency")}),
        ("Access", {"fields": ("token_state", "new_token", "webhooks_set_up_at")}),
    )
    change_form_outer_before_template = "admin/studies/workspace_panel.html"

    @display(description="stored token")
    def token_state(self, workspace: Workspace) -> str:
        return f"set on {workspace.token_set_at:%d %B %Y}" if workspace.token_set_at else "none yet"

    def get_urls(self) -> list[URLPattern]:
        pages = [("try", self.try_view), ("webhooks", self.webhooks_view)]
        own = [
            path(
                f"<int:workspace_pk>/{name}/",
                self.admin_site.admin_view(require_POST(view)),
                name=f"studies_workspace_{name}",
            )
            for name, view in pages
        ]
        return own + super().get_urls()

    def try_view(self, request: HttpRequest, workspace_pk: int) -> HttpResponse:
        """Ask Prolific whose token it is, and whether it may use this workspace."""
        workspace = self._changeable(request, workspace_pk)
        self._try(request, workspace)
        return HttpResponseRedirect(change_url(workspace))

    def _try(self, request: HttpRequest, workspace: Workspace) -> None:
        try:
            check_access(workspace)
        except (ProlificError, RecruitmentError) as error:
            messages.error(request, f"The workspace cannot be used yet. {in_words(error)}")
        else:
            messages.success(request, "Prolific knows the token, and it may use this workspace.")

    def save_model(self, request: HttpRequest, obj: Workspace, form: forms.ModelForm, change: bool) -> None:
        super().save_model(request, obj, form, change)
        if set(form.changed_data) & {"new_token", "workspace_id", "currency"}:
            # It is kept all the same: Prolific may only be away.
            self._try(request, obj)

    def webhooks_view(self, request: HttpRequest, workspace_pk: int) -> HttpResponse:
        """Have Prolific tell us what changes."""
        workspace = self._changeable(request, workspace_pk)
        target = request.build_absolute_uri(reverse("prolific-webhook", args=[workspace.webhook_key]))
        try:
            webhooks.set_up_webhooks(workspace, target)
        except (ProlificError, RecruitmentError) as error:
            messages.error(request, in_words(error))
        else:
            self.log_change(request, workspace, "Set up webhooks.")
            messages.success(request, "Prolific now tells this site what changes.")
        return HttpResponseRedirect(change_url(workspace))

    def _changeable(self, request: HttpRequest, workspace_pk: int) -> Workspace:
        workspace = get_object_or_404(Workspace, pk=workspace_pk)
        if not self.has_change_permission(request, workspace):
            raise PermissionDenied
        return workspace
