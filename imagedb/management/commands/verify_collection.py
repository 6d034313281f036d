"""``manage.py verify_collection SLUG VERSION``: is a frozen version what its digest says?"""

import hashlib
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from imagedb.collection_manifest import differing_lines
from imagedb.models import CollectionVersion
from imagedb.selectors.collections import manifest_lines
from imagedb.services.collections import recompute_manifest


class Command(BaseCommand):
    """Exit status 0: the digest, the stored manifest and the database agree; 1: they do not, or cannot be compared."""

    help = (
        "Recompute the manifest of a frozen version of a collection from the database, and compare it with the digest "
        "and the manifest file that were stored when it was frozen. Exit status 1 says that they differ."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", help="slug of the collection")
        parser.add_argument("version", help="for example 1.0")
        parser.add_argument("--limit", type=int, default=20, help="how many differing images to name (default 20)")

    def handle(self, *args: Any, **options: Any) -> None:
        version = self._version(options["slug"], options["version"])
        recomputed = recompute_manifest(version)
        problems = []
        stored_digest = hashlib.sha256()
        try:
            with version.manifest.open("rb") as file:
                for line in file:
                    stored_digest.update(line)
        except FileNotFoundError:
            problems.append("the storage has lost the manifest file")
        else:
            if stored_digest.hexdigest() != version.manifest_sha256:
                problems.append(f"the stored manifest file has the digest {stored_digest.hexdigest()}")
        if recomputed.sha256 != version.manifest_sha256:
            problems.append(f"the database gives the digest {recomputed.sha256}")
        if recomputed.image_count != version.image_count:
            problems.append(f"the database has {recomputed.image_count:,} images, not {version.image_count:,}")
        if not problems:
            self.stdout.write(
                f"{version}: equal. {version.image_count:,} images, SHA-256 of the manifest {version.manifest_sha256}"
            )
            return
        self._name_images(version, options["limit"])
        raise CommandError(
            f"{version} differs from the SHA-256 it was frozen with, {version.manifest_sha256}: {'; '.join(problems)}."
        )

    def _version(self, slug: str, name: str) -> CollectionVersion:
        versions = CollectionVersion.objects.filter(collection__slug=slug).select_related("collection")
        version = versions.filter(version=name).first()
        if version is None:
            known = ", ".join(versions.values_list("version", flat=True)) or "none: there is no such collection"
            raise CommandError(f"{slug} has no version {name}. Its versions: {known}.")
        if not version.is_frozen:
            raise CommandError(f"{version} is a draft: it has no digest until it is frozen.")
        return version

    def _name_images(self, version: CollectionVersion, limit: int) -> None:
        """Say of each image what differs, as far as the stored manifest is there to tell."""
        try:
            with version.manifest.open("rb") as file:
                for number, difference in enumerate(differing_lines(file, manifest_lines(version))):
                    if number == limit:
                        self.stderr.write("... and more; --limit names them")
                        return
                    self.stderr.write(difference)
        except FileNotFoundError:
            return
