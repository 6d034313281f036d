"""The inbox: what participants asked, and what they are answered."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.text import Truncator
from unfold.admin import ModelAdmin
from unfold.contrib.filters.admin import ChoicesDropdownFilter, RelatedDropdownFilter
from unfold.decorators import action, display
from unfold.widgets import UnfoldAdminTextareaWidget, UnfoldBooleanSwitchWidget

from scooter_site.common.admin_tools import StayOnPage, signed_in
from scooter_site.common.words import counted
from studies.models import ParticipantMessage, ParticipationKind
from studies.models.messages import LONGEST_MESSAGE
from studies.selectors.messages import WAITING
from studies.services.messages import answer_message, set_done

STATE_LABELS = {"Waits for an answer": "warning", "Answered": "info", "Read": "success", "Done": ""}


def state_of(message: ParticipantMessage) -> str:
    if message.answered_at:
        return "Read" if message.answer_read_at else "Answered"
    return "Done" if message.done_at else "Waits for an answer"


class StateFilter(admin.SimpleListFilter):
    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [
            ("waiting", "Waiting for an answer"),
            ("answered", "Answered"),
            ("unread", "Answered, not read"),
            ("done", "Done"),
        ]

    def queryset(self, request: HttpRequest, queryset: QuerySet[ParticipantMessage]) -> QuerySet[ParticipantMessage]:
        match self.value():
            case "waiting":
                return queryset.filter(WAITING)
            case "answered":
                return queryset.filter(answered_at__isnull=False)
            case "unread":
                return queryset.filter(answered_at__isnull=False, answer_read_at=None)
            case "done":
                return queryset.filter(done_at__isnull=False)
        return queryset


class MessageForm(forms.ModelForm):
    """The answer, and whether anything is left to do."""

    answer = forms.CharField(
        required=False,
        max_length=LONGEST_MESSAGE,
        widget=UnfoldAdminTextareaWidget({"rows": 6}),
        help_text="Plain text. The participant reads it on their own page, under the link they have; nobody else does.",
    )
    is_done = forms.BooleanField(
        required=False,
        label="Done",
        widget=UnfoldBooleanSwitchWidget(),
        help_text="Nothing more is to be done; also without an answer.",
    )

    class Meta:
        model = ParticipantMessage
        fields = ("answer",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["is_done"].initial = self.instance.done_at is not None

    def clean_answer(self) -> str:
        answer = self.cleaned_data["answer"].replace("\r\n", "\n").strip()
        if self.instance.answer and not answer:
            raise forms.ValidationError("The participant may have read the answer: correct it, but do not empty it.")
        return answer

    def _post_clean(self) -> None:
        """The service writes the answer together with its time and author; the row as it is stays valid."""


@admin.register(ParticipantMessage)
class ParticipantMessageAdmin(StayOnPage, ModelAdmin):
    form = MessageForm
    list_display = ("excerpt", "state", "study", "step_label", "participation_id_short", "sent_at")
    list_select_related = ("participation__study",)
    list_filter = (
        StateFilter,
        ("participation__study", RelatedDropdownFilter),
        ("step", ChoicesDropdownFilter),
    )
    list_per_page = 50
    list_fullwidth = True
    show_full_result_count = False
    search_fields = ("text", "answer")
    search_help_text = "Search in messages and answers"
    readonly_fields = (
        "text",
        "study",
        "participation",
        "step_label",
        "sent_at",
        "answered_at",
        "answered_by",
        "answer_read_at",
    )
    fieldsets = (
        ("Message", {"fields": ("text", "study", "participation", "step_label", "sent_at")}),
        ("Answer", {"fields": ("answer", "is_done", "answered_at", "answered_by", "answer_read_at")}),
    )
    actions = ("mark_done",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[ParticipantMessage]:
        """Without previews: who looks at a preview writes to themselves."""
        return super().get_queryset(request).exclude(participation__kind=ParticipationKind.PREVIEW)

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def save_model(self, request: HttpRequest, obj: ParticipantMessage, form: Any, change: bool) -> None:
        if form.cleaned_data["answer"]:
            answer_message(obj.pk, form.cleaned_data["answer"], signed_in(request))
        set_done([obj.pk], done=form.cleaned_data["is_done"])

    @action(description="Mark as done", permissions=["change"])
    def mark_done(self, request: HttpRequest, queryset: QuerySet[ParticipantMessage]) -> None:
        count = set_done(list(queryset.values_list("pk", flat=True)), done=True)
        messages.success(request, f"{counted(count, 'message')} marked as done.")

    @display(description="message")
    def excerpt(self, message: ParticipantMessage) -> str:
        return Truncator(" ".join(message.text.split())).chars(90)

    @display(description="state", label=STATE_LABELS)
    def state(self, message: ParticipantMessage) -> str:
        return state_of(message)

    @display(description="study")
    def study(self, message: ParticipantMessage) -> str:
        return message.participation.study.title

    @display(description="asked at", ordering="step")
    def step_label(self, message: ParticipantMessage) -> str:
        return message.get_step_display()

    @display(description="participant")
    def participation_id_short(self, message: ParticipantMessage) -> str:
        kind = message.participation.kind
        return str(message.participation.public_id)[:8] + ("" if kind == ParticipationKind.REAL else f" ({kind})")
