"""The text that explains an archive to whoever unpacks it."""

from imagedb.archives.image_set import WEBDATASET_META_FOLDER, ArchiveType

META = WEBDATASET_META_FOLDER
CONTENT_OF_TYPE = {
    ArchiveType.ZIP: """\
clean/<class>/<id>
    Clean images, by the WordNet synset of their class.
modified/<attack>/<target model>/<id>
    Adversarial examples, by attack and by the model they were made against.
manifest.csv
    One row per image: the columns that `manage.py import_images` reads, then id, digest, distances, licence.
SHA256SUMS
    Digests of all files. To check them: sha256sum -c SHA256SUMS""",
    ArchiveType.WEBDATASET: f"""\
<id>.<ending>
    An image. Together with the next two files it is one sample of WebDataset.
<id>.json
    What is known of the image, by the names of the manifest's columns.
<id>.cls
    Its true class: the index in ImageNet-1k, 0 to 999.
{META}manifest.csv
    One row per image: the columns that `manage.py import_images` reads, then id, digest, distances, licence.
{META}SHA256SUMS
    Digests of all files. To check them: sha256sum -c {META}SHA256SUMS""",
}
CONTENT_OF_PART = {
    "original": "The files are the originals, byte for byte as they were imported.",
    "rendition": "The files are renditions, as participants of studies see them: PNG, upright, sRGB, no metadata.",
}
DISTANCES = """\
Distances of an adversarial example against its source (empty for clean images, and where proportions differ):
linf           largest change of a channel, of 255 levels
l2             over all pixels and channels, with values from 0 to 1
changed_share  share of pixels of which any channel differs, 0 to 1
ssim           mean structural similarity on luminance (Wang et al. 2004); 1 is identical
ciede2000      mean colour difference; about 1 is just noticeable
comparison     same_size: pixel by pixel; resampled: the source was resampled to the example's size first"""


def readme(title: str, details: list[str], image_count: str, archive_type: ArchiveType, part: str) -> str:
    """The text of README.txt. ``details`` are paragraphs; ``part`` is ``original`` or ``rendition``."""
    paragraphs = [
        f"{title}\n{'=' * len(title)}",
        f"Images: {image_count}. {CONTENT_OF_PART[part]}",
        *details,
        CONTENT_OF_TYPE[archive_type],
        DISTANCES,
        "Licence and attribution of each image are in the manifest.",
    ]
    return "\n\n".join(paragraphs) + "\n"
