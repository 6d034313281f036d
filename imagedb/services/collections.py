"""The life of collections and versions: made, described, copied, frozen for good. What is in them: ``curation``."""

import hashlib
import re
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any

from django.contrib.auth.models import User
from django.core.files.base import File
from django.db import transaction
from django.db.models import BigIntegerField, Case, Exists, F, OuterRef, Q, QuerySet, Value, When
from django.utils import timezone

from imagedb.models import (
    Attack,
    Collection,
    CollectionImage,
    CollectionVersion,
    Image,
    ImageKind,
    Prediction,
    TargetModel,
)
from imagedb.selectors.collections import manifest_lines
from imagedb.services.collection_drafts import CollectionError, add_members, locked_draft, misplaced
from imagedb.services.curation import (
    EXAMPLES_NAMED,
    AddReport,
    add_images,
    crop_image,
    modified_versions_in,
    remove_images,
    replace_image,
)

__all__ = [
    "AddReport",
    "CollectionError",
    "Manifest",
    "add_images",
    "change_draft",
    "create_collection",
    "crop_image",
    "delete_draft",
    "freeze",
    "misplaced_images",
    "modified_versions_in",
    "new_version",
    "problems_before_freezing",
    "recompute_manifest",
    "remove_images",
    "replace_image",
    "unstated_count",
]

# What a version is called is part of its address.
VERSION_NAME = re.compile(r"[0-9A-Za-z][0-9A-Za-z.+_-]{0,19}")


@dataclass(frozen=True)
class Manifest:
    """What identifies a manifest."""

    sha256: str
    image_count: int


def create_collection(created_by: User | None, *, first_version: str = "1.0", **fields: Any) -> CollectionVersion:
    """Make a collection with an empty draft of its first version, which is given back."""
    _check_version_name(first_version)
    with transaction.atomic():
        collection = Collection.objects.create(created_by=created_by, **fields)
        return CollectionVersion.objects.create(collection=collection, version=first_version)


def new_version(
    collection: Collection, version: str = "", *, copy_from: CollectionVersion | None = None
) -> CollectionVersion:
    """Make a draft with the images, licence and citation of an earlier version, by default of the newest.

    Without a ``version``, the last number of the newest one's is counted up: 1.0 becomes 1.1. Raises CollectionError.
    """
    with transaction.atomic():
        Collection.objects.select_for_update().get(pk=collection.pk)
        newest = collection.versions.order_by("-pk").first()
        source = copy_from or newest
        if source is not None and source.collection_id != collection.pk:
            raise CollectionError(f"{source} is not a version of {collection}.")
        name = version.strip() or (next_version_name(newest.version) if newest else "1.0")
        _check_version_name(name)
        if collection.versions.filter(version=name).exists():
            raise CollectionError(f"{collection} has a version {name} already. Choose another number.")
        made = CollectionVersion.objects.create(
            collection=collection,
            version=name,
            licence=source.licence if source else "",
            citation=source.citation if source else "",
        )
        if source is not None:
            members = CollectionImage.objects.filter(version=source).order_by("pk")
            add_members(made, members.values_list("image", flat=True).iterator())
        return made


def next_version_name(version: str) -> str:
    """The version with its last number counted up; with ".1" added if there is no number at its end."""
    found = re.fullmatch(r"(.*?)(\d+)", version)
    return f"{found[1]}{int(found[2]) + 1}" if found else f"{version}.1"


def change_draft(version: CollectionVersion, /, **fields: str) -> CollectionVersion:
    """Change what a draft says of itself: version, licence, citation, doi, changelog. Raises CollectionError."""
    with locked_draft(version) as draft:
        _check_version_name(fields.get("version", draft.version))
        for name, value in fields.items():
            setattr(draft, name, value)
        draft.save(update_fields=list(fields))
        return draft


def delete_draft(version: CollectionVersion) -> None:
    """Delete a version that is not frozen; its images stay in the catalogue. Raises CollectionError."""
    with locked_draft(version) as draft:
        draft.delete()


def problems_before_freezing(version: CollectionVersion) -> list[str]:
    """What must be put right before the version can be frozen, in words; empty if nothing."""
    images = Image.objects.filter(collection_memberships__version=version)
    problems = []
    if not images.exists():
        problems.append("It has no images.")
    if not version.licence.strip():
        problems.append("It has no licence.")
    if not version.citation.strip():
        problems.append("It does not say how to cite it.")
    faults = [("have no licence of their own", Q(licence="")), *misplaced(version.collection)]
    return problems + _told(images, faults)


def misplaced_images(collection: Collection) -> list[str]:
    """Which images, of any version, do not belong into a collection of this visibility and group, in words."""
    members = CollectionImage.objects.filter(version__collection=collection.pk)
    return _told(Image.objects.filter(pk__in=members.values("image")), misplaced(collection))


def _told(images: QuerySet[Image], faults: list[tuple[str, Q]]) -> list[str]:
    problems = []
    for what, is_wrong in faults:
        wrong = images.filter(is_wrong)
        if count := wrong.count():
            names = list(wrong.order_by("pk").values_list("original_filename", flat=True)[:EXAMPLES_NAMED])
            more = ", ..." if count > len(names) else ""
            problems.append(f"{count:,} of its images {what}: {', '.join(names)}{more}.")
    return problems


def unstated_count(version: CollectionVersion) -> int:
    """Images whose manifest would state no prediction; once the version is frozen, none can be added either."""
    model = Case(
        When(kind=ImageKind.MODIFIED, then=F("target_model")),
        default=Value(version.collection.target_model_id),
        output_field=BigIntegerField(),
    )
    stated = Prediction.objects.filter(image=OuterRef("pk"), target_model=OuterRef("asked_model"))
    images = Image.objects.filter(collection_memberships__version=version).annotate(asked_model=model)
    return images.exclude(asked_model=None).exclude(Exists(stated)).count()


def freeze(version: CollectionVersion, user: User | None) -> CollectionVersion:
    """Make a draft final, for ever: write its manifest and state its digest. Raises CollectionError if not ready."""
    manifest_file = CollectionVersion._meta.get_field("manifest")
    stored: list[str] = []
    try:
        with locked_draft(version) as draft, tempfile.TemporaryFile() as content:
            _refuse_unready(draft)
            _lock_named(draft)
            manifest = _write_manifest(draft, content)
            content.seek(0)
            draft.manifest.save("manifest.jsonl", File(content), save=False)
            stored.append(str(draft.manifest.name))
            draft.manifest_sha256, draft.image_count = manifest.sha256, manifest.image_count
            draft.frozen_at, draft.frozen_by = timezone.now(), user
            draft.save()
            return draft
    except BaseException:
        for name in stored:
            with suppress(FileNotFoundError):
                manifest_file.storage.delete(name)
        raise


def _refuse_unready(draft: CollectionVersion) -> None:
    if problems := problems_before_freezing(draft):
        raise CollectionError(f"{draft} cannot be frozen yet. {' '.join(problems)}")


def recompute_manifest(version: CollectionVersion) -> Manifest:
    """The manifest as the database gives it now, whatever was stored when the version was frozen."""
    with tempfile.TemporaryFile() as content:
        return _write_manifest(version, content)


def _write_manifest(version: CollectionVersion, file: IO[bytes]) -> Manifest:
    digest, count = hashlib.sha256(), 0
    for line in manifest_lines(version):
        file.write(line)
        digest.update(line)
        count += 1
    return Manifest(digest.hexdigest(), count)


def _lock_named(draft: CollectionVersion) -> None:
    """Keep the slugs that the manifest names from being changed meanwhile. The database's rules see to the rest."""
    images = Image.objects.filter(collection_memberships__version=draft)
    named = Q(pk__in=images.values("target_model")) | Q(pk=draft.collection.target_model_id)
    list(Attack.objects.filter(pk__in=images.values("attack")).select_for_update(no_key=True).order_by("pk"))
    list(TargetModel.objects.filter(named).select_for_update(no_key=True).order_by("pk"))


def _check_version_name(version: str) -> None:
    if not VERSION_NAME.fullmatch(version):
        raise CollectionError(
            f"{version!r} cannot be a version: up to 20 letters, digits, dots, plus signs, hyphens and underscores, "
            "beginning with a letter or digit, for example 1.0."
        )
