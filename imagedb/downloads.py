"""Addresses from which exactly the images of a page can be had, as an archive and as a list."""

from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse

from imagedb.models import CollectionVersion

LINES_AT_A_TIME = 500  # the largest page of a list


@dataclass(frozen=True)
class Download:
    """One way to have a set of images."""

    label: str
    what: str
    address: str


def downloads(parameters: dict[str, str]) -> list[Download]:
    """A filtered set of images; ``parameters`` as the API's filters take them."""
    return [*_archives(reverse("image-archive"), parameters), *_lists(parameters)]


def version_downloads(version: CollectionVersion) -> list[Download]:
    """A version of a collection; a frozen one has a manifest, too."""
    place = [version.collection.slug, version.version]
    manifest = Download("Manifest", "Every image with its SHA-256, as JSONL.", manifest_address(version))
    return [
        *_archives(reverse("collection-version-archive", args=place), {}),
        *([manifest] if version.is_frozen else []),
        *_lists({"collection": version.collection.slug, "version": version.version}),
    ]


def manifest_address(version: CollectionVersion) -> str:
    """Where the manifest of a frozen version is."""
    return reverse("collection-version-manifest", args=[version.collection.slug, version.version])


def _archives(path: str, parameters: dict[str, str]) -> list[Download]:
    return [
        Download(
            "ZIP",
            "The original files in folders, with a manifest and checksums. An interrupted download can be resumed.",
            _address(path, parameters, archive_type="zip"),
        ),
        Download(
            "WebDataset",
            "The same as a tar file with one sample per image, for training code.",
            _address(path, parameters, archive_type="webdataset"),
        ),
    ]


def _lists(parameters: dict[str, str]) -> list[Download]:
    path, lines = reverse("image-list"), str(LINES_AT_A_TIME)
    paged = f"{LINES_AT_A_TIME} lines at a time: the header Link of the answer leads on."
    return [
        Download(
            "CSV",
            f"The list without the files, for spreadsheets and pandas; {paged}",
            _address(path, parameters, format="csv", page_size=lines),
        ),
        Download(
            "JSONL",
            "The same list as one JSON object per line.",
            _address(path, parameters, format="jsonl", page_size=lines),
        ),
    ]


def _address(path: str, parameters: dict[str, str], **more: str) -> str:
    return f"{path}?{urlencode({**parameters, **more})}"
