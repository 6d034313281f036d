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
    assert set(found) == {
        "attack",
        "class_index",
        "cursor",
        "is_demo",
        "kind",
        "max_confidence",
        "min_confidence",
        "page_size",
        "source",
        "synset",
        "target_model",
        "verified",
    }
    assert found["attack"]["schema"]["type"] == "string"
    assert found["is_demo"]["schema"]["type"] == found["verified"]["schema"]["type"] == "boolean"
    assert found["class_index"]["schema"]["type"] == "integer"
    assert found["source"]["schema"]["format"] == "uuid"
    assert found["page_size"]["schema"]["maximum"] == 500


def test_image_file(schema):
    path = "/api/v1/images/{public_id}/file/"
    found = parameters(schema, path)
    assert found["public_id"]["schema"] == {"type": "string", "format": "uuid"}
    assert found["rendition"]["schema"] == {"type": "boolean", "default": False}
    responses = schema["paths"][path]["get"]["responses"]
    assert set(responses) == {"200", "302", "304", "400", "401", "404"}
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
