"""The forms of collections and of what is done to a version."""

from typing import Any, ClassVar

from django import forms
from django.contrib.auth.models import Group, User
from django.core.exceptions import ValidationError
from unfold.widgets import (
    UnfoldAdminDecimalFieldWidget,
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
)

from imagedb.models import Collection, CollectionVersion, Image
from imagedb.selectors import visible_images
from imagedb.services.collections import VERSION_NAME, misplaced_images, next_version_name
from imagedb.services.importing import own_groups


class CollectionForm(forms.ModelForm):
    """A collection; a new one with the name of its first version."""

    user: ClassVar[User | None] = None  # set on the class that the admin makes for one request
    first_version = forms.CharField(
        initial="1.0",
        max_length=20,
        widget=UnfoldAdminTextInputWidget,
        help_text="It begins as a draft, which you fill with images and freeze when it is final.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk:
            self.fields.pop("first_version", None)
        group = self.fields.get("group")
        if isinstance(group, forms.ModelChoiceField) and self.user:
            present = Group.objects.filter(pk=self.instance.group_id)
            group.queryset = own_groups(self.user).order_by() | present.order_by()

    def clean_first_version(self) -> str:
        """A name that can be part of an address."""
        return checked_version(self.cleaned_data["first_version"])

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        if values.get("min_confidence") is not None and "target_model" in values and values["target_model"] is None:
            raise ValidationError({"target_model": "Say whose confidence the threshold is about."})
        if self.instance.pk and "visibility" in values and "group" in values:
            self._refuse_to_open_private_images(values)
        return values

    def _refuse_to_open_private_images(self, values: dict[str, Any]) -> None:
        now = self.instance
        would_be = Collection(
            pk=now.pk,
            visibility=values["visibility"],
            group=values["group"],
            created_by_id=now.created_by_id,
            is_demo=now.is_demo,
        )
        if problems := misplaced_images(would_be):
            raise ValidationError({"visibility": problems})


class VersionForm(forms.ModelForm):
    """What a draft says of itself."""

    def clean_version(self) -> str:
        """A name that can be part of an address."""
        return checked_version(self.cleaned_data["version"])

    def clean_doi(self) -> str:
        """The DOI without what one may have copied with it."""
        doi = self.cleaned_data["doi"].strip()
        for beginning in ("https://doi.org/", "http://doi.org/", "https://dx.doi.org/", "doi:"):
            doi = doi.removeprefix(beginning)
        if doi and not (doi.startswith("10.") and "/" in doi):
            raise ValidationError("A DOI begins with 10. and has a slash, for example 10.5281/zenodo.1234567.")
        return doi


class NewVersionForm(forms.Form):
    version = forms.CharField(max_length=20, widget=UnfoldAdminTextInputWidget)

    def __init__(self, collection: Collection, *args: Any, **kwargs: Any) -> None:
        newest = collection.versions.order_by("-pk").first()
        proposed = next_version_name(newest.version) if newest else "1.0"
        super().__init__(*args, **kwargs)
        self.fields["version"].initial = proposed

    def clean_version(self) -> str:
        """A name that can be part of an address."""
        return checked_version(self.cleaned_data["version"])


class RemoveForm(forms.Form):
    """Why an image is taken out of a draft."""

    reason = forms.CharField(
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 2}),
        help_text="For the curation log, which is published with the collection.",
    )

    def __init__(self, version: CollectionVersion, image: Image, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.version, self.image, self.user = version, image, user


class ReplaceForm(RemoveForm):
    """Which image takes its place."""

    replacement = forms.UUIDField(
        widget=UnfoldAdminTextInputWidget,
        label="Public id of the image that takes its place",
        help_text="Of the same kind and class; on its page under The file.",
    )
    field_order = ("replacement", "reason")

    def clean_replacement(self) -> Image:
        """The image itself."""
        found = visible_images(self.user).filter(public_id=self.cleaned_data["replacement"]).first()
        if found is None:
            raise ValidationError("There is no image with this public id, or you may not see it.")
        return found


class CropForm(RemoveForm):
    """Which part of the image stays."""

    left = forms.IntegerField(min_value=0, widget=UnfoldAdminIntegerFieldWidget)
    top = forms.IntegerField(min_value=0, widget=UnfoldAdminIntegerFieldWidget)
    right = forms.IntegerField(min_value=1, widget=UnfoldAdminIntegerFieldWidget)
    bottom = forms.IntegerField(min_value=1, widget=UnfoldAdminIntegerFieldWidget)
    confidence = forms.FloatField(
        min_value=0,
        max_value=1,
        widget=UnfoldAdminDecimalFieldWidget,
        help_text="How sure the collection's target model is of the right class of the crop, 0 to 1.",
    )
    field_order = ("left", "top", "right", "bottom", "confidence", "reason")

    def __init__(self, version: CollectionVersion, image: Image, user: User, *args: Any, **kwargs: Any) -> None:
        whole = {"left": 0, "top": 0, "right": image.width, "bottom": image.height}
        super().__init__(version, image, user, *args, **kwargs)
        self.initial = whole
        if version.collection.min_confidence is None:
            del self.fields["confidence"]

    @property
    def box(self) -> tuple[int, int, int, int]:
        """(left, top, right, bottom)."""
        given = self.cleaned_data
        return given["left"], given["top"], given["right"], given["bottom"]

    @property
    def box_fields(self) -> list[forms.BoundField]:
        return [self[name] for name in ("left", "top", "right", "bottom")]

    @property
    def other_fields(self) -> list[forms.BoundField]:
        return [self[name] for name in self.fields if name not in ("left", "top", "right", "bottom")]


def checked_version(name: str) -> str:
    """The name of a version, as the service takes it. Raises ValidationError."""
    name = name.strip()
    if not VERSION_NAME.fullmatch(name):
        raise ValidationError(
            "Up to 20 letters, digits, dots, plus signs, hyphens and underscores, beginning with a letter or digit: "
            "the version is part of its address."
        )
    return name
