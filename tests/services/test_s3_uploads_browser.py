"""The import page in real Chromium against a real bucket on another address, with gunicorn and a worker."""

import hashlib
import re
import sqlite3

import pytest
from django.core.management import CommandError, call_command
from playwright.sync_api import expect, sync_playwright

from scooter_site.common import middleware
from tests import factories
from tests.browser import chromium_options
from tests.imagedb.manifests import clean, manifest_text, zip_of
from tests.imagedb.sendings import random_bytes
from tests.services.s3 import BUCKET, client, s3_url
from tests.services.site import running_site
from tests.services.test_s3_uploads import private_storage

pytestmark = pytest.mark.services

ADMIN = ("admin", "correct-horse-battery")


@pytest.fixture
def site(s3_address, tmp_path, monkeypatch):
    monkeypatch.setenv("S3_URL", s3_url(s3_address))
    with running_site(tmp_path, admin=ADMIN) as site:
        yield site


@pytest.mark.browser
def test_a_page_sends_straight_to_the_bucket(site, s3_address, tmp_path):
    archive = tmp_path / "roofs.zip"
    members = {"manifest.csv": manifest_text([clean("roof.png")]), "roof.png": factories.png_bytes(7400)}
    archive.write_bytes(zip_of({**members, "raw.bin": random_bytes(36_000_000)}))
    said = site.manage("configure_bucket", "--origin", site.url)
    assert f"Pages of {site.url} may send to {s3_address}." in said

    puts, failed = [], []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(**chromium_options())
        page = browser.new_context().new_page()
        page.set_default_timeout(60_000)
        page.goto(f"{site.url}/admin/login/?next=/admin/imagedb/importbatch/add/")
        page.get_by_label("Username").fill(ADMIN[0])
        page.get_by_label("Password").fill(ADMIN[1])
        page.get_by_role("button", name="Log in").click()
        expect(page.locator("#id_archive")).to_be_attached(timeout=60_000)

        def fail_once(route):
            if "partNumber=2" in route.request.url and route.request.method == "PUT" and not failed:
                failed.append(route.request.url)
                route.abort("connectionreset")
            else:
                route.continue_()

        page.route(f"{s3_address}/**", fail_once)
        page.on("requestfinished", lambda request: puts.append(request.url) if request.method == "PUT" else None)
        page.locator("#id_archive").set_input_files(archive)
        message = page.locator(".scooter-upload [role=status]")
        expect(message).to_contain_text("The file has arrived. Save to start the import.", timeout=120_000)
        page.get_by_role("button", name="Save", exact=True).click()
        expect(page.get_by_role("heading", name="Rows that are in")).to_be_visible(timeout=120_000)
        browser.close()

    assert len(failed) == 1
    assert all(url.startswith(f"{s3_address}/{BUCKET}/private/upload/") for url in puts)
    numbers = sorted(int(re.search(r"partNumber=(\d+)", url)[1]) for url in puts)
    assert numbers == [1, 2, 3]
    with sqlite3.connect(site.database) as database:
        ((name, status),) = database.execute("SELECT file, status FROM imagedb_upload").fetchall()
        assert database.execute("SELECT archive FROM imagedb_importbatch").fetchall() == [(name,)]
    assert status == "used"
    stored = client(s3_address).get_object(Bucket=BUCKET, Key=f"private/{name}")["Body"].read()
    assert hashlib.sha256(stored).digest() == hashlib.sha256(archive.read_bytes()).digest()


class TestConfigureBucket:
    @pytest.fixture
    def bucket(self, s3_address, monkeypatch):
        from django.core.files.storage import storages

        storage = private_storage(s3_address)
        monkeypatch.setitem(storages._storages, "private", storage)
        return client(s3_address)

    def rules(self, bucket):
        return (
            bucket.get_bucket_cors(Bucket=BUCKET)["CORSRules"],
            bucket.get_bucket_lifecycle_configuration(Bucket=BUCKET)["Rules"],
        )

    def test_other_rules_stay_and_ours_are_replaced(self, bucket, capsys, s3_address):
        bucket.put_bucket_cors(
            Bucket=BUCKET,
            CORSConfiguration={
                "CORSRules": [{"ID": "other", "AllowedOrigins": ["https://a.example"], "AllowedMethods": ["GET"]}]
            },
        )
        bucket.put_bucket_lifecycle_configuration(
            Bucket=BUCKET,
            LifecycleConfiguration={
                "Rules": [{"ID": "other", "Status": "Enabled", "Filter": {"Prefix": "tmp/"}, "Expiration": {"Days": 1}}]
            },
        )
        call_command("configure_bucket", "--origin", "https://old.example/")
        call_command("configure_bucket", "--origin", "https://b.example", "--origin", "https://c.example")
        assert f"Pages of https://c.example may send to {s3_address}." in capsys.readouterr().out
        cors, lifecycle = self.rules(bucket)
        assert [(rule["ID"], rule["AllowedOrigins"]) for rule in cors] == [
            ("other", ["https://a.example"]),
            ("scooter-uploads", ["https://b.example", "https://c.example"]),
        ]
        assert cors[1]["ExposeHeaders"] == ["ETag"]
        assert [rule["ID"] for rule in lifecycle] == ["other", "scooter-uploads"]
        assert lifecycle[1]["Filter"] == {"Prefix": "private/upload/"}
        assert lifecycle[1]["AbortIncompleteMultipartUpload"] == {"DaysAfterInitiation": 7}

    def test_a_bucket_that_does_not_let_browsers_send_is_an_error(self, bucket, monkeypatch, capsys):
        monkeypatch.setattr("imagedb.bucket_configuration.allow_uploads_from", lambda *arguments: None)
        bucket.put_bucket_cors(
            Bucket=BUCKET,
            CORSConfiguration={"CORSRules": [{"AllowedOrigins": ["https://a.example"], "AllowedMethods": ["GET"]}]},
        )
        with pytest.raises(CommandError, match=r"docs/uploads\.md"):
            call_command("configure_bucket", "--origin", "https://b.example")
        assert "Pages of https://b.example may NOT send" in capsys.readouterr().out

    def test_the_admin_may_connect_to_the_bucket(self, bucket, s3_address, rf):
        response = middleware.AdminContentSecurityPolicyMiddleware(lambda request: middleware.HttpResponse())(
            rf.get("/admin/")
        )
        assert response._csp_update["connect-src"] == ["'self'", s3_address]
