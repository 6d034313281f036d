"""The forms of images: one image's own, and what is asked before something is done to several."""

from typing import Any, ClassVar

from django import forms
from django.contrib.auth.models import Group, User
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextareaWidget

from imagedb.models import CollectionVersion, Image
from imagedb.selectors.collections import visible_versions
from imagedb.services.images import twins_in_group
from imagedb.services.importing import own_groups


class ImageForm(forms.ModelForm):
    """Who may see an image, whom it belongs to, and under which licence."""

    user: ClassVar[User | None] = None  # set on the class that the admin makes for one request

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        group = self.fields.get("group")
        if isinstance(group, forms.ModelChoiceField) and self.user:
            present = Group.objects.filter(pk=self.instance.group_id)
            group.queryset = own_groups(self.user).order_by() | present.order_by()

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        this_one = Image.objects.filter(pk=self.instance.pk)
        if "group" in values and twins_in_group(this_one, values["group"]):
            owner = f"The group {values['group']} has" if values["group"] else "Among the images of no group is"
            raise ValidationError(
                {"group": f"{owner} an identical image already: each group has one copy. Delete one of the two."}
            )
        return values


class QuestionForm(forms.Form):
    """What is asked before an action goes on."""

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user = user


class PrivateForm(QuestionForm):
    group = forms.ModelChoiceField(
        queryset=Group.objects.none(),
        required=False,
        empty_label="Leave each image's group as it is",
        widget=UnfoldAdminSelectWidget,
        help_text="Members of the group see its private images; without a group, only whoever imported them does.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["group"].queryset = own_groups(self.user)  # type: ignore[attr-defined]


class CurationForm(QuestionForm):
    """A draft and a reason."""

    version = forms.ModelChoiceField(
        queryset=CollectionVersion.objects.none(),
        label="Draft",
        widget=UnfoldAdminSelectWidget,
        empty_label="Choose a draft",
        help_text="Frozen versions never change: make a new version first, on the collection's page.",
    )
    reason = forms.CharField(
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 3}),
        help_text="For the curation log, which is published with the collection.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["version"].queryset = drafts(self.user)  # type: ignore[attr-defined]


def drafts(user: User) -> QuerySet[CollectionVersion]:
    """Versions that the user may still change."""
    return visible_versions(user).filter(frozen_at=None).order_by("collection__name", "pk")
