"""One address that says where the S3-compatible bucket is, and the settings of the storages that follow from it.

Pure: settings import it before Django is ready.
"""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

# What an option may be; None: anything.
OPTIONS: dict[str, tuple[str, ...] | None] = {
    "region": None,
    "public_endpoint": None,
    "addressing_style": ("path", "virtual"),
    # The second one is for servers from before 2014; links signed by it do not name a region.
    "signature_version": ("s3v4", "s3"),
    # boto3 since 1.36 adds a checksum behind the content unless told otherwise, and some servers store it as content.
    "checksum_mode": ("when_required", "when_supported"),
}


@dataclass(frozen=True)
class S3Location:
    """A bucket of an S3-compatible service, and how to speak to it. The fields are options of ``ObjectStorage``."""

    bucket_name: str
    region_name: str
    access_key: str
    secret_key: str
    endpoint_url: str | None  # None: Amazon's own
    public_endpoint: str | None  # where browsers reach it, if that differs
    addressing_style: str
    signature_version: str
    checksum_mode: str

    def __repr__(self) -> str:
        # Without the secret, which must not get into a log.
        return f"S3Location(bucket {self.bucket_name} at {self.endpoint_url or 'Amazon'})"


def parse_s3_url(url: str) -> S3Location:
    """Parse ``https://KEY:SECRET@host[:port]/bucket?region=...``; ``s3://KEY:SECRET@/bucket?region=...`` is Amazon.

    Options: ``region`` (required: without it signatures fail on custom endpoints), ``public_endpoint``,
    ``addressing_style`` (``path``, the default for custom endpoints, or ``virtual``), ``signature_version`` (``s3v4``
    or ``s3``), ``checksum_mode`` (``when_required`` or ``when_supported``).
    Raises ValueError that names what is wrong, never repeating the secret.
    """
    parts = urlsplit(url)
    options = {name: values[-1] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
    bucket = parts.path.strip("/")
    problems = []
    if parts.scheme not in {"http", "https", "s3"}:
        problems.append("it must begin with https://, http:// or s3://")
    elif parts.scheme != "s3" and not parts.hostname:
        problems.append("the server's name is missing (https://KEY:SECRET@server/bucket)")
    if not (parts.username and parts.password):
        problems.append("access key and secret are missing (https://KEY:SECRET@...)")
    if not bucket or "/" in bucket:
        problems.append("the path must be the bucket's name")
    if not options.get("region"):
        problems.append("region is missing (?region=eu-west-1; any value for servers that have none)")
    problems += _problems_of_options(options)
    if problems:
        raise ValueError("S3_URL: " + "; ".join(problems))
    endpoint = None
    if parts.scheme != "s3":
        host = parts.netloc.rpartition("@")[2]
        endpoint = f"{parts.scheme}://{host}"
    return S3Location(
        bucket_name=bucket,
        region_name=options["region"],
        access_key=unquote(parts.username or ""),
        secret_key=unquote(parts.password or ""),
        endpoint_url=endpoint,
        public_endpoint=options.get("public_endpoint", "").rstrip("/") or None,
        addressing_style=options.get("addressing_style", "path" if endpoint else "virtual"),
        signature_version=options.get("signature_version", "s3v4"),
        checksum_mode=options.get("checksum_mode", "when_required"),
    )


def _problems_of_options(options: dict[str, str]) -> list[str]:
    problems = []
    if unknown := sorted(set(options) - set(OPTIONS)):
        problems.append(f"unknown options: {', '.join(unknown)} (known: {', '.join(sorted(OPTIONS))})")
    for name, allowed in OPTIONS.items():
        if allowed and options.get(name, allowed[0]) not in allowed:
            problems.append(f"{name} must be {' or '.join(allowed)}")
    public = urlsplit(options.get("public_endpoint", ""))
    if options.get("public_endpoint") and (
        public.scheme not in {"http", "https"} or not public.hostname or public.path.strip("/")
    ):
        problems.append("public_endpoint must be an address without a path (https://files.example.org)")
    return problems


def storage_settings(s3_url: str, media_root: Path) -> dict[str, dict[str, Any]]:
    """Entries of Django's STORAGES for the three levels: a bucket if there is an address of one, else folders.

    Raises ValueError that names what is wrong with the address.
    """
    location = parse_s3_url(s3_url) if s3_url else None
    return {
        level: {
            "BACKEND": "scooter_site.common.object_storage.ObjectStorage",
            "OPTIONS": {**asdict(location), "level": level},
        }
        if location
        else {
            "BACKEND": "scooter_site.common.storage.LocalStorage",
            "OPTIONS": {"location": media_root / level},
        }
        for level in ("public", "protected", "private")
    }
