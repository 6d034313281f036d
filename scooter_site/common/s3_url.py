"""One address that says where the S3-compatible bucket is. Pure: settings import it before Django is ready."""

from dataclasses import dataclass
from urllib.parse import parse_qs, unquote, urlsplit


@dataclass(frozen=True)
class S3Location:
    """A bucket of an S3-compatible service, and how to speak to it."""

    bucket: str
    region: str
    access_key: str
    secret_key: str
    endpoint: str | None  # None: Amazon's own
    public_endpoint: str | None  # where browsers reach it, if that differs
    addressing_style: str

    def storage_options(self) -> dict[str, object]:
        """Options of ``ObjectStorage`` (scooter_site.common.storage)."""
        return {
            "bucket_name": self.bucket,
            "region_name": self.region,
            "access_key": self.access_key,
            "secret_key": self.secret_key,
            "endpoint_url": self.endpoint,
            "public_endpoint": self.public_endpoint,
            "addressing_style": self.addressing_style,
        }


KNOWN_OPTIONS = {"region", "public_endpoint", "addressing_style"}


def parse_s3_url(url: str) -> S3Location:
    """Parse ``https://KEY:SECRET@host[:port]/bucket?region=...``; ``s3://KEY:SECRET@/bucket?region=...`` is Amazon.

    Options: ``region`` (required: without it signatures fail on custom endpoints), ``public_endpoint``,
    ``addressing_style`` (``path``, the default for custom endpoints, or ``virtual``).
    Raises ValueError that names what is wrong, never repeating the secret.
    """
    parts = urlsplit(url)
    options = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    bucket = parts.path.strip("/")
    problems = []
    if parts.scheme not in {"http", "https", "s3"}:
        problems.append("it must begin with https://, http:// or s3://")
    if not (parts.username and parts.password):
        problems.append("access key and secret are missing (https://KEY:SECRET@...)")
    if not bucket or "/" in bucket:
        problems.append("the path must be the bucket's name")
    if "region" not in options:
        problems.append("region is missing (?region=eu-west-1; any value for servers that have none)")
    if unknown := sorted(set(options) - KNOWN_OPTIONS):
        problems.append(f"unknown options: {', '.join(unknown)} (known: {', '.join(sorted(KNOWN_OPTIONS))})")
    if problems:
        raise ValueError("S3_URL: " + "; ".join(problems))
    endpoint = None
    if parts.scheme != "s3":
        host = parts.hostname if parts.port is None else f"{parts.hostname}:{parts.port}"
        endpoint = f"{parts.scheme}://{host}"
    return S3Location(
        bucket=bucket,
        region=options["region"],
        access_key=unquote(parts.username or ""),
        secret_key=unquote(parts.password or ""),
        endpoint=endpoint,
        public_endpoint=options.get("public_endpoint"),
        addressing_style=options.get("addressing_style", "path" if endpoint else "virtual"),
    )
