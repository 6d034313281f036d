"""The API says truly what it does."""

import pytest
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.validation import validate_schema


@pytest.fixture(scope="module")
def schema():
    schema = SchemaGenerator().get_schema(request=None, public=True)
    validate_schema(schema)
    return schema


def parameters(schema, path):
    return {parameter["name"]: parameter for parameter in schema["paths"][path]["get"]["parameters"]}


def test_image_list(schema):
    found = parameters(schema, "/api/v1/images/")
    distances = {"linf", "l2", "changed_share", "ssim", "ciede2000", "confidence"}
    assert set(found) == {f"{end}_{distance}" for end in ("min", "max") for distance in distances} | {
        "attack",
        "class_index",
        "collection",
        "comparison",
        "cursor",
        "family",
        "format",
        "is_demo",
        "kind",
        "page_size",
        "search",
        "source",
        "synset",
        "target_model",
        "verified",
        "version",
        "visibility",
    }
    assert found["format"]["schema"]["enum"] == ["csv", "json", "jsonl"]
    assert found["min_linf"]["schema"] == {"type": "integer", "minimum": 0, "maximum": 255}
    assert found["attack"]["schema"]["type"] == "string"
    assert found["is_demo"]["schema"]["type"] == found["verified"]["schema"]["type"] == "boolean"
    assert found["class_index"]["schema"]["type"] == "integer"
    assert found["source"]["schema"]["format"] == "uuid"
    assert found["page_size"]["schema"]["maximum"] == 500


@pytest.mark.parametrize("name", ["images", "attacks", "target-models", "classes"])
def test_a_list_has_three_formats(schema, name):
    answer = schema["paths"][f"/api/v1/{name}/"]["get"]["responses"]["200"]
    assert set(answer["content"]) == {"application/json", "text/csv", "application/x-ndjson"}
    assert answer["content"]["text/csv"]["schema"] == {"type": "string"}
    assert answer["content"]["application/json"]["schema"]["$ref"].startswith("#/components/schemas/Paginated")
    assert "Link" in answer["headers"]


def test_every_endpoint_may_say_that_it_is_asked_too_often(schema):
    for path in schema["paths"].values():
        for operation in path.values():
            assert operation["responses"]["429"]["headers"]["Retry-After"]


def test_image_file(schema):
    path = "/api/v1/images/{public_id}/file/"
    found = parameters(schema, path)
    assert found["public_id"]["schema"] == {"type": "string", "format": "uuid"}
    assert found["rendition"]["schema"] == {"type": "boolean", "default": False}
    responses = schema["paths"][path]["get"]["responses"]
    assert set(responses) == {"200", "302", "304", "400", "401", "404", "429"}
    assert responses["200"]["content"]["image/png"]["schema"] == {"type": "string", "format": "binary"}
    assert "content" not in responses["304"]


@pytest.mark.parametrize(
    ("path", "name", "kind"),
    [
        ("/api/v1/images/{public_id}/", "public_id", {"type": "string", "format": "uuid"}),
        ("/api/v1/classes/{index}/", "index", {"type": "integer"}),
        ("/api/v1/attacks/{slug}/", "slug", {"type": "string"}),
        ("/api/v1/target-models/{slug}/", "slug", {"type": "string"}),
    ],
)
def test_details(schema, path, name, kind):
    assert parameters(schema, path)[name]["schema"].items() >= kind.items()
    assert {"200", "400", "401", "404"} <= set(schema["paths"][path]["get"]["responses"])


def test_image_has_a_class(schema):
    image = schema["components"]["schemas"]["Image"]
    assert "class" in image["properties"]
    assert {"id", "class", "source", "predictions", "file"} <= set(image["required"])


def test_everybody_may_read_and_a_token_may_be_given(schema):
    assert {} in schema["paths"]["/api/v1/images/"]["get"]["security"]
