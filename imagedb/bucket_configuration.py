"""What a bucket must allow, so that browsers can send parts of uploads straight to it, and what it should clean up."""

from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from botocore.exceptions import ClientError

from scooter_site.common.object_storage import ObjectStorage

RULE_ID = "scooter-uploads"
CORS_SECONDS = 3600
# Longer than any upload takes; a task abandons those that stand still much sooner.
INCOMPLETE_DAYS = 7
CHECK_SECONDS = 10


def allow_uploads_from(storage: ObjectStorage, origins: list[str]) -> None:
    """Add or replace our rule of cross-origin requests; the bucket's other rules stay. Raises ClientError."""
    rule = {
        "ID": RULE_ID,
        "AllowedOrigins": origins,
        "AllowedMethods": ["GET", "HEAD", "PUT"],
        "AllowedHeaders": ["*"],
        "ExposeHeaders": ["ETag"],
        "MaxAgeSeconds": CORS_SECONDS,
    }
    others = _others(storage.client.get_bucket_cors, "CORSRules", storage)
    storage.client.put_bucket_cors(Bucket=storage.bucket_name, CORSConfiguration={"CORSRules": [*others, rule]})


def abort_incomplete_uploads(storage: ObjectStorage, folder: str) -> None:
    """Add or replace our rule that forgets unfinished uploads; the bucket's other rules stay. Raises ClientError."""
    rule = {
        "ID": RULE_ID,
        "Status": "Enabled",
        "Filter": {"Prefix": storage.object_key(f"{folder}/")},
        "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": INCOMPLETE_DAYS},
    }
    others = _others(storage.client.get_bucket_lifecycle_configuration, "Rules", storage)
    storage.client.put_bucket_lifecycle_configuration(
        Bucket=storage.bucket_name, LifecycleConfiguration={"Rules": [*others, rule]}
    )


def _others(get: Any, key: str, storage: ObjectStorage) -> list[dict[str, Any]]:
    try:
        rules = get(Bucket=storage.bucket_name).get(key, [])
    except ClientError as error:
        if error.response["Error"]["Code"] not in {"NoSuchCORSConfiguration", "NoSuchLifecycleConfiguration"}:
            raise
        return []
    return [rule for rule in rules if rule.get("ID") != RULE_ID]


def may_send(storage: ObjectStorage, origin: str, folder: str) -> bool:
    """Ask the bucket what a browser asks before it sends a part from a page of ``origin``.

    Raises URLError if the bucket cannot be reached at the address that browsers use.
    """
    link = storage.signing_client.generate_presigned_url(
        "upload_part",
        Params={
            "Bucket": storage.bucket_name,
            "Key": storage.object_key(f"{folder}/x"),
            "PartNumber": 1,
            "UploadId": "x",
        },
    )
    if urlsplit(link).scheme not in {"http", "https"}:
        raise URLError("no web address")
    question = Request(  # noqa: S310 - the scheme is checked above
        link, method="OPTIONS", headers={"Origin": origin, "Access-Control-Request-Method": "PUT"}
    )
    try:
        with urlopen(question, timeout=CHECK_SECONDS) as answer:  # noqa: S310
            headers = answer.headers
    except HTTPError as refusal:
        refusal.close()
        return False
    methods = {method.strip().upper() for method in headers.get("Access-Control-Allow-Methods", "").split(",")}
    return headers.get("Access-Control-Allow-Origin") in {"*", origin} and bool(methods & {"*", "PUT"})
