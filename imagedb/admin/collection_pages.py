"""The pages of a version beside its form: freezing, a new version, and what is done to one of its images."""

from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import URLPattern, path

from imagedb.admin.collection_forms import CropForm, NewVersionForm, RemoveForm, ReplaceForm
from imagedb.models import CollectionImage, CollectionVersion, CurationLogEntry, Image, ImageKind
from imagedb.selectors import visible_images
from imagedb.selectors.collections import may_curate, version_counts, visible_versions
from imagedb.services.collections import (
    CollectionError,
    crop_image,
    freeze,
    modified_versions_in,
    new_version,
    problems_before_freezing,
    remove_images,
    replace_image,
    unstated_count,
)
from scooter_site.common.admin_tools import change_url, list_url, signed_in

LOG_ENTRIES_SHOWN = 50
CANDIDATES_SHOWN = 12
NAMED_IN_MESSAGE = 5
CURATION_FORMS: dict[str, type[RemoveForm]] = {"crop": CropForm, "replace": ReplaceForm, "remove": RemoveForm}


class VersionPages:
    """Mixin for the admin of versions."""

    admin_site: Any
    opts: Any
    log_change: Callable[..., Any]

    def own_urls(self) -> list[URLPattern]:
        """Addresses of these pages."""
        pages = [
            ("freeze", self.freeze_view, "<int:version_id>/freeze/"),
            ("new", self.new_view, "<int:version_id>/new/"),
            ("curate", self.curate_view, "<int:version_id>/curate/<int:image_id>/"),
        ]
        return [
            path(address, self.admin_site.admin_view(view), name=f"imagedb_collectionversion_{name}")
            for name, view, address in pages
        ]

    def panel_context(self, request: HttpRequest, version: CollectionVersion) -> dict[str, Any]:
        """What the version's page shows beside its form."""
        entries = CurationLogEntry.objects.filter(version=version).select_related("replacement", "decided_by")
        user = signed_in(request)
        return {
            "version": version,
            "counts": version_counts(version, user),
            "problems": [] if version.is_frozen else problems_before_freezing(version),
            "may_curate": may_curate(user),
            "may_add_version": user.has_perm("imagedb.add_collectionversion"),
            "images_url": list_url(Image, f"collection_version={version.pk}"),
            "collection_url": change_url(version.collection),
            "log": entries.order_by("-pk")[:LOG_ENTRIES_SHOWN],
            "log_count": entries.count(),
            "log_url": list_url(CurationLogEntry, f"version__id__exact={version.pk}"),
        }

    def freeze_view(self, request: HttpRequest, version_id: int) -> HttpResponse:
        """Asked for with GET, the question; with POST, the deed."""
        version = self._to_change(request, version_id)
        if request.method == "POST":
            try:
                frozen = freeze(version, signed_in(request))
            except CollectionError as error:
                messages.error(request, str(error))
            else:
                self.log_change(request, frozen, "Freeze")
                messages.success(request, f"{frozen} is frozen. Its digest is {frozen.manifest_sha256}.")
            return HttpResponseRedirect(change_url(version))
        context = {
            "counts": version_counts(version, signed_in(request)),
            "problems": problems_before_freezing(version),
            "unstated": unstated_count(version),
        }
        return self._page(request, version, "version_freeze.html", "Freeze", context)

    def new_view(self, request: HttpRequest, version_id: int) -> HttpResponse:
        """A draft that begins as this version."""
        if not request.user.has_perm("imagedb.add_collectionversion"):
            raise PermissionDenied
        version = self._visible(request, version_id)
        form = NewVersionForm(version.collection, request.POST or None)
        if request.method == "POST" and form.is_valid():
            try:
                made = new_version(version.collection, form.cleaned_data["version"], copy_from=version)
            except CollectionError as error:
                form.add_error("version", str(error))
            else:
                self.log_change(request, made, f"New version from {version.version}")
                messages.success(request, f"{made} is a draft with the images of {version.version}.")
                return HttpResponseRedirect(change_url(made))
        return self._page(request, version, "version_new.html", "New version", {"form": form})

    def curate_view(self, request: HttpRequest, version_id: int, image_id: int) -> HttpResponse:
        """Crop, replace or remove one image, with a reason."""
        version = self._to_change(request, version_id)
        user = signed_in(request)
        image = get_object_or_404(visible_images(user), pk=image_id, collection_memberships__version=version)
        asked = request.POST.get("do", "") if request.method == "POST" else ""
        forms_by_name = {
            name: form_class(version, image, user, request.POST if name == asked else None, prefix=name)
            for name, form_class in CURATION_FORMS.items()
        }
        form = forms_by_name.get(asked)
        if form is not None and form.is_valid():
            try:
                self._curate(request, version, image, form)
            except CollectionError as error:
                form.add_error(None, str(error))
            else:
                return HttpResponseRedirect(change_url(version))
        context = {
            "image": image,
            "forms": forms_by_name,
            "may_crop": image.kind == ImageKind.CLEAN,
            "made_of_it": modified_versions_in(version, image),
            "candidates": _candidates(version, image, user),
        }
        return self._page(request, version, "version_curate.html", "Crop, replace or remove", context)

    def _curate(self, request: HttpRequest, version: CollectionVersion, image: Image, form: forms.Form) -> None:
        reason, user = form.cleaned_data["reason"], signed_in(request)
        if isinstance(form, CropForm):
            confidence = form.cleaned_data.get("confidence")
            crop, made_of_it = crop_image(version, image, form.box, reason, user, confidence=confidence)
            done = f"{image.original_filename} was cropped to {crop.width} x {crop.height} pixels."
        elif isinstance(form, ReplaceForm):
            replacement = form.cleaned_data["replacement"]
            made_of_it = replace_image(version, image, replacement, reason, user)
            done = f"{image.original_filename} was replaced by {replacement.original_filename}."
        else:
            made_of_it = modified_versions_in(version, image)
            remove_images(version, Image.objects.filter(pk=image.pk), reason, user)
            done = f"{image.original_filename} was removed."
        self.log_change(request, version, done)
        messages.success(request, done)
        if made_of_it:
            names = ", ".join(one.original_filename for one in made_of_it[:NAMED_IN_MESSAGE])
            more = f" and {len(made_of_it) - NAMED_IN_MESSAGE} more" if len(made_of_it) > NAMED_IN_MESSAGE else ""
            messages.warning(
                request,
                f"Still in this version, made from the image as it was: {names}{more}. Remove them, or replace them by "
                "what the attack makes of the new image.",
            )

    def _visible(self, request: HttpRequest, version_id: int) -> CollectionVersion:
        return get_object_or_404(visible_versions(signed_in(request)), pk=version_id)

    def _to_change(self, request: HttpRequest, version_id: int) -> CollectionVersion:
        if not may_curate(signed_in(request)):
            raise PermissionDenied
        return self._visible(request, version_id)

    def _page(
        self, request: HttpRequest, version: CollectionVersion, template: str, title: str, context: dict[str, Any]
    ) -> HttpResponse:
        whole = {
            **self.admin_site.each_context(request),
            "title": title,
            "opts": self.opts,
            "original": version,
            "version": version,
            "back_url": change_url(version),
            **context,
        }
        request.current_app = self.admin_site.name
        return TemplateResponse(request, f"admin/imagedb/{template}", whole)


def _candidates(version: CollectionVersion, image: Image, user: Any) -> list[Image]:
    """Some images of the same kind and class that are not in the version: one of them may take its place."""
    members = CollectionImage.objects.filter(version=version).values("image")
    alike = visible_images(user).filter(
        kind=image.kind, image_class=image.image_class_id, attack=image.attack_id, is_demo=image.is_demo
    )
    return list(alike.exclude(pk__in=members).order_by("-pk")[:CANDIDATES_SHOWN])
