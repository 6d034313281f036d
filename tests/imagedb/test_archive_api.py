"""Archives over HTTP: which images, for whom, in what form; ranges and preconditions."""

import csv
import hashlib
import io
import json
import tarfile
import zipfile

import pytest
from django.contrib.auth.models import Group, Permission
from django.http import StreamingHttpResponse
from rest_framework.test import APIClient

from imagedb import archive_download
from imagedb.models import Collection, CollectionVersion, Image, Prediction
from tests import factories
from tests.imagedb.api_clients import body, user, with_token
from tests.imagedb.archives.made import samples

pytestmark = pytest.mark.django_db
ARCHIVE = "/api/v1/images/archive/"


@pytest.fixture
def client() -> APIClient:
    return APIClient()


def content_of(image: Image, part: str = "original") -> bytes:
    with getattr(image, part).open("rb") as file:
        return file.read()


def unzipped(client: APIClient, address: str = ARCHIVE, **parameters) -> dict[str, bytes]:
    response = client.get(address, parameters)
    content = body(response)
    assert response.status_code == 200, content
    assert int(response.headers["Content-Length"]) == len(content)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def rows(files: dict[str, bytes]) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(files["manifest.csv"].decode(), newline="")))


def ids_in(client: APIClient, address: str = ARCHIVE, **parameters) -> set[str]:
    return {row["id"] for row in rows(unzipped(client, address, **parameters))}


def ids(*images: Image) -> set[str]:
    return {str(image.public_id) for image in images}


@pytest.fixture
def pair():
    """A clean image, and a modified one that its target model takes for another class."""
    model = factories.target_model(slug="resnet-50")
    source = factories.clean_image()
    image = factories.modified_image(
        source, attack=factories.attack(slug="cadv"), target_model=model, licence="CC0-1.0", attribution="Somebody",
        comparison="same_size", linf=8, l2=1.5, changed_share=0.25, ssim=0.875, ciede2000=0.0,
    )  # fmt: skip
    Prediction.objects.create(
        image=image, target_model=model, predicted_class=factories.image_class(282), confidence=0.5
    )
    return source, image


class TestContent:
    def test_files_manifest_and_checksums(self, client, pair):
        source, image = pair
        files = unzipped(client)
        names = [f"clean/n02123045/{source.public_id}.png", f"modified/cadv/resnet-50/{image.public_id}.png"]
        assert list(files) == [*names, "README.txt", "manifest.csv", "SHA256SUMS"]
        assert [files[name] for name in names] == [content_of(source), content_of(image)]
        sums = dict(reversed(line.split("  ", 1)) for line in files.pop("SHA256SUMS").decode().splitlines())
        assert sums == {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
        clean, modified = rows(files)
        assert (clean["filename"], clean["kind"], clean["linf"]) == (names[0], "clean", "")
        wanted = {
            "filename": names[1],
            "kind": "modified",
            "class_index": "281",
            "source_filename": names[0],
            "source_id": str(source.public_id),
            "attack": "cadv",
            "target_model": "resnet-50",
            "predicted_class_index": "282",
            "confidence": "0.5",
            "linf": "8",
            "ciede2000": "0.0",
            "licence": "CC0-1.0",
            "attribution": "Somebody",
            "sha256": image.original_sha256,
        }
        assert {name: modified[name] for name in wanted} == wanted

    def test_renditions(self, client, pair):
        _, image = pair
        other = factories.png_bytes(99)
        image.rendition.save("rendition.png", io.BytesIO(other), save=False)
        Image.objects.filter(pk=image.pk).update(
            rendition=image.rendition.name,
            rendition_bytes=len(other),
            rendition_crc32=zipfile.crc32(other),
            rendition_sha256=hashlib.sha256(other).hexdigest(),
        )
        files = unzipped(client, files="rendition", kind="modified")
        assert files[f"modified/cadv/resnet-50/{image.public_id}.png"] == other
        assert "renditions" in files["README.txt"].decode()
        assert rows(files)[0]["sha256"] == hashlib.sha256(other).hexdigest()

    def test_webdataset(self, client, pair):
        source, image = pair
        response = client.get(ARCHIVE, {"archive_type": "webdataset"})
        assert response.headers["Content-Type"] == "application/x-tar"
        assert 'filename="scooter-images.tar"' in response.headers["Content-Disposition"]
        with tarfile.open(fileobj=io.BytesIO(body(response)), mode="r:") as archive:
            assert samples(archive.getnames()) == {
                f"/{one.public_id}": ["png", "json", "cls"] for one in (source, image)
            }
            record = json.load(archive.extractfile(f"{image.public_id}.json"))
            assert archive.extractfile(f"{image.public_id}.cls").read() == b"281"
            assert archive.extractfile(f"{image.public_id}.png").read() == content_of(image)
        assert (record["linf"], record["source_id"]) == (8, str(source.public_id))

    def test_an_image_with_several_predictions_is_there_once(self, client, pair):
        source, _ = pair
        for slug in ("vit", "alexnet"):
            Prediction.objects.create(
                image=source,
                target_model=factories.target_model(slug=slug),
                predicted_class=source.image_class,
                confidence=0.9,
            )
        (row,) = rows(unzipped(client, kind="clean"))
        assert [answer["target_model"] for answer in json.loads(row["predictions"])] == ["alexnet", "vit"]
        assert (row["target_model"], row["confidence"]) == ("alexnet", "0.9")

    @pytest.mark.parametrize("archive_type", ["zip", "webdataset"])
    def test_few_queries_however_many_images(self, client, django_assert_max_num_queries, archive_type):
        attack = factories.attack()
        for _ in range(8):
            factories.modified_image(attack=attack, target_model=None)
        with django_assert_max_num_queries(4):
            body(client.get(ARCHIVE, {"archive_type": archive_type, "attack": attack.slug}))


class TestWhichImages:
    def test_the_filters_are_those_of_the_list(self, client, pair):
        source, image = pair
        assert ids_in(client) == ids(source, image)
        assert ids_in(client, kind="modified") == ids(image)
        assert ids_in(client, attack="cadv", class_index=281, min_confidence=0.5) == ids(image)
        assert ids_in(client, source=str(source.public_id)) == ids(image)

    def test_sources_on_demand(self, client, pair):
        source, image = pair
        factories.clean_image()
        assert ids_in(client, attack="cadv", sources="true") == ids(source, image)
        assert ids_in(client, attack="cadv", sources="false") == ids(image)

    def test_no_images(self, client, pair):
        response = client.get(ARCHIVE, {"class_index": 3})
        assert response.status_code == 404
        assert response.json() == {"detail": "No image that you may see fits these filters."}

    @pytest.mark.parametrize(
        ("parameter", "value"),
        [
            ("modle", "x"),
            ("cursor", "x"),
            ("page_size", "5"),
            ("format", "json"),
            ("kind", "dirty"),
            ("archive_type", "rar"),
            ("archive_type", ""),
            ("files", "thumbnail"),
            ("sources", "maybe"),
        ],
    )
    def test_what_is_not_understood_is_refused_by_name(self, client, pair, parameter, value):
        response = client.get(ARCHIVE, {parameter: value})
        assert response.status_code == 400
        assert list(response.json()) == [parameter]

    def test_each_reader_gets_what_it_may_see(self):
        lab = Group.objects.create(name="lab")
        owner, colleague = user("owner"), user("colleague")
        colleague.groups.add(lab)
        images = {
            "public": factories.clean_image(visibility="public"),
            "registered": factories.clean_image(visibility="registered"),
            "private": factories.clean_image(visibility="private", uploaded_by=owner),
            "of the lab": factories.clean_image(visibility="private", group=lab),
        }
        readers = [
            (None, "public"),
            (user("account"), "public"),
            (user("member", accepted_terms=True), "public, registered"),
            (owner, "public, private"),
            (colleague, "public, of the lab"),
            (user("root", is_superuser=True), "public, registered, private, of the lab"),
        ]
        for account, visible in readers:
            client = APIClient() if account is None else with_token(account)
            assert ids_in(client) == ids(*(images[name] for name in visible.split(", "))), account

    def test_a_source_that_one_may_not_see_is_neither_named_nor_sent(self, client):
        source = factories.clean_image(visibility="private")
        image = factories.modified_image(source, attack=factories.attack(), target_model=None)
        files = unzipped(client, sources="true")
        assert [row["id"] for row in rows(files)] == [str(image.public_id)]
        assert str(source.public_id) not in b"".join(files.values()).decode("latin-1")

    def test_a_wrong_token_is_refused(self, client, pair):
        client.credentials(HTTP_AUTHORIZATION="Token wrong")
        assert client.get(ARCHIVE).status_code == 401


class TestResuming:
    @pytest.fixture
    def archive(self, client, pair) -> tuple[bytes, str]:
        response = client.get(ARCHIVE)
        assert response.headers["Accept-Ranges"] == "bytes"
        return body(response), response.headers["ETag"]

    @pytest.mark.parametrize("start", [0, 1, 35, 100, 3000, -300, -1])
    def test_the_rest(self, client, archive, start):
        content, etag = archive
        asked = f"{start}-" if start >= 0 else str(start)
        response = client.get(ARCHIVE, headers={"Range": f"bytes={asked}", "If-Range": etag})
        rest = content[start:]
        assert (response.status_code, body(response)) == (206, rest)
        first = len(content) - len(rest)
        assert response.headers["Content-Range"] == f"bytes {first}-{len(content) - 1}/{len(content)}"
        assert response.headers["Content-Length"] == str(len(rest))
        assert response.headers["ETag"] == etag

    def test_a_part_in_the_middle(self, client, archive):
        response = client.get(ARCHIVE, headers={"Range": "bytes=200-299"})
        assert (response.status_code, body(response)) == (206, archive[0][200:300])

    def test_after_the_end(self, client, archive):
        length = len(archive[0])
        response = client.get(ARCHIVE, headers={"Range": f"bytes={length}-"})
        assert response.status_code == 416
        assert response.headers["Content-Range"] == f"bytes */{length}"

    @pytest.mark.parametrize("asked", ["bytes=0-1,5-6", "lines=1-2", "nonsense"])
    def test_what_is_no_single_range_gets_the_whole(self, client, archive, asked):
        response = client.get(ARCHIVE, headers={"Range": asked})
        assert (response.status_code, body(response)) == (200, archive[0])

    def test_a_changed_set_is_not_mixed_with_what_one_has(self, client, archive, pair):
        content, etag = archive
        Image.objects.filter(pk=pair[0].pk).update(attribution="Somebody else")
        whole = client.get(ARCHIVE, headers={"Range": "bytes=100-", "If-Range": etag})
        assert whole.status_code == 200
        assert whole.headers["ETag"] != etag
        assert body(whole) != content
        refused = client.get(ARCHIVE, headers={"Range": "bytes=100-", "If-Match": etag})
        assert refused.status_code == 412
        assert "Start again" in refused.json()["detail"]

    def test_the_same_set_has_the_same_tag(self, client, archive):
        content, etag = archive
        again = client.get(ARCHIVE, headers={"If-Match": f'"other", {etag}'})
        assert (again.status_code, body(again), again.headers["ETag"]) == (200, content, etag)
        assert client.get(ARCHIVE, {"archive_type": "webdataset"}, headers={"If-Match": etag}).status_code == 412

    @pytest.mark.parametrize("given", ["{}", "W/{}", '"other", {}', "*"])
    def test_who_has_it_already(self, client, archive, given):
        response = client.get(ARCHIVE, headers={"If-None-Match": given.format(archive[1])})
        assert (response.status_code, body(response), response.headers["ETag"]) == (304, b"", archive[1])

    def test_head(self, client, archive):
        content, etag = archive
        response = client.head(ARCHIVE, headers={"Range": "bytes=5-"})
        assert (response.status_code, body(response)) == (200, b"")
        assert (response.headers["Content-Length"], response.headers["ETag"]) == (str(len(content)), etag)

    def test_no_cache_keeps_it(self, client, archive):
        assert client.head(ARCHIVE).headers["Cache-Control"] == "private, no-cache, no-transform"


class TestWhatIsMissing:
    def test_a_lost_file_breaks_the_download_off(self, client, pair, caplog):
        image = pair[1]
        image.original.storage.delete(image.original.name)
        response = client.get(ARCHIVE)
        with pytest.raises(archive_download.ContentLost):
            body(response)
        assert f"was broken off: {image.original.name} cannot be read" in caplog.text

    def test_so_does_a_file_of_another_size(self, client, pair, caplog):
        image = pair[1]
        with open(image.original.path, "ab") as file:
            file.write(b"more")
        response = client.get(ARCHIVE)
        with pytest.raises(archive_download.ContentLost):
            body(response)
        assert f"the database says {image.original_bytes}" in caplog.text


class TestPlaces:
    """A process sends a few archives at a time."""

    def test_who_finds_none_is_told_when_to_try_again(self, client, pair, settings, monkeypatch):
        # The end of a request would close the connection that holds the test's rows.
        monkeypatch.setattr(StreamingHttpResponse, "close", lambda response: response._resource_closers[0]())
        under_way = [client.get(ARCHIVE) for _ in range(settings.ARCHIVE_DOWNLOADS_PER_PROCESS)]
        refused = client.get(ARCHIVE)
        assert refused.status_code == 503
        assert refused.headers["Retry-After"] == "60"
        assert "resumed" in refused.json()["detail"]
        for response in under_way:
            response.close()  # broken off before the first byte
        assert client.get("/api/v1/images/").status_code == 200
        body(client.get(ARCHIVE))

    @pytest.mark.parametrize(
        ("parameters", "headers"),
        [
            ({}, {}),
            ({"class_index": 3}, {}),
            ({"archive_type": "rar"}, {}),
            ({}, {"If-Match": '"other"'}),
            ({}, {"If-None-Match": "*"}),
            ({}, {"Range": "bytes=99999999-"}),
            ({}, {"Range": "bytes=0-10"}),
        ],
    )
    def test_every_answer_gives_its_place_back(self, client, pair, settings, parameters, headers):
        for _ in range(settings.ARCHIVE_DOWNLOADS_PER_PROCESS + 1):
            for method in (client.get, client.head):
                response = method(ARCHIVE, parameters, headers=headers)
                assert response.status_code != 503
                body(response)


class TestCollectionVersion:
    @pytest.fixture
    def version(self, pair) -> CollectionVersion:
        model = factories.target_model(slug="vit")
        for other in (model, factories.target_model(slug="alexnet")):
            Prediction.objects.create(
                image=pair[0], target_model=other, predicted_class=pair[0].image_class, confidence=0.75
            )
        collection = Collection.objects.create(
            name="ImageNet S-R50-N", slug="imagenet-s-r50-n", visibility="public", target_model=model
        )
        version = CollectionVersion.objects.create(
            collection=collection, version="1.0", licence="CC BY 4.0", citation="@misc{scooter}", doi="10.5281/zenodo.1"
        )
        version.images.set(pair)
        return version

    ADDRESS = "/api/v1/collections/imagenet-s-r50-n/versions/1.0/archive/"

    @pytest.fixture
    def curator(self) -> APIClient:
        return with_token(user("root", is_superuser=True))

    def test_its_images_and_how_to_cite_it(self, curator, version, pair):
        factories.clean_image()  # not in it
        files = unzipped(curator, self.ADDRESS)
        assert {row["id"] for row in rows(files)} == ids(*pair)
        text = files["README.txt"].decode()
        for part in ("ImageNet S-R50-N 1.0\n", "Images: 2. ", "CC BY 4.0", "@misc{scooter}", "10.5281/zenodo.1"):
            assert part in text
        # Of several answers about a clean image the manifest takes that of the collection's own model.
        assert rows(files)[0]["target_model"] == "vit"

    def test_its_name(self, curator, version):
        response = curator.get(self.ADDRESS)
        body(response)
        assert 'filename="imagenet-s-r50-n-1.0.zip"' in response.headers["Content-Disposition"]

    def test_the_readme_says_how_many_are_hidden(self, curator, version, pair):
        source, image = pair
        Image.objects.filter(pk=source.pk).update(visibility="private")
        version.refresh_from_db()
        reader = user("curator")
        reader.user_permissions.add(*curation_permissions())
        files = unzipped(with_token(reader), self.ADDRESS)
        assert {row["id"] for row in rows(files)} == ids(image)
        assert "Images: 1 of 2; the others are not open" in files["README.txt"].decode()

    def test_who_may_see_none_is_told_what_to_do(self, version, pair):
        Image.objects.update(visibility="registered")
        reader = user("curator")
        reader.user_permissions.add(*curation_permissions())
        response = with_token(reader).get(self.ADDRESS)
        assert response.status_code == 404
        assert "terms" in response.json()["detail"]

    def test_drafts_and_what_is_not_there(self, client, curator, version):
        assert client.get(self.ADDRESS).status_code == 404  # not frozen yet
        assert curator.get(self.ADDRESS.replace("1.0", "2.0")).status_code == 404
        assert curator.get(self.ADDRESS.replace("r50", "r51")).status_code == 404

    def test_it_has_no_filters(self, curator, version):
        response = curator.get(self.ADDRESS, {"kind": "clean"})
        assert response.status_code == 400
        assert list(response.json()) == ["kind"]


def curation_permissions():
    return Permission.objects.filter(codename="change_collectionversion")
