"""The API about itself: the schema, the page of the reference, the problems; open to all, and loading nothing."""

import re

import pytest
from jsonschema import Draft202012Validator

from pqadmin.api import problems
from pqadmin.api.application import api
from pqadmin.api.docs import openapi
from tests.api.conftest import Program

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def stranger() -> Program:
    return Program(None)


async def test_the_schema_describes_every_operation_and_is_open_to_all(stranger: Program) -> None:
    answer = await stranger.get("openapi.json")
    found = answer.json()
    assert (answer.status_code, found["openapi"]) == (200, "3.1.0")
    ids = [operation["operationId"] for _, _, operation in openapi.operations(found)]
    assert len(ids) == len(set(ids)) > 40
    for path, method, operation in openapi.operations(found):
        assert path.startswith("/api/v1/"), path
        assert operation["description"], (method, path)
        assert operation["tags"][0] in {tag["name"] for tag in found["tags"]}
    for name, schema in found["components"]["schemas"].items():
        Draft202012Validator.check_schema(schema)
        assert schema.get("description"), name


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("queues/{queue}/peek", {"n": "1000"}),
        ("queues/{queue}/items", {"match": "x" * 1_001}),
        ("search", {"q": "a", "field": "x" * 1_001}),
    ],
)
async def test_the_schema_knows_that_a_look_may_be_too_large(program: Program, jobs, path: str, query: dict) -> None:
    for _ in range(2):
        jobs.push_many([(b"x" * 89_000, 1)] * 30)
    answer = await program.get(path.replace("{queue}", "jobs"), params=query)
    assert (answer.status_code, answer.json()["code"]) == (413, "TooLarge")
    assert "413" in openapi.document(api)["paths"][f"/api/v1/{path}"]["get"]["responses"]


async def test_the_page_names_every_operation_and_loads_only_what_is_ours(stranger: Program) -> None:
    answer = await stranger.get("docs")
    assert answer.status_code == 200
    assert "script-src 'self'" in answer.headers["Content-Security-Policy"]
    assert "<script" not in answer.text
    assert all(address.startswith("/") for address in re.findall(r'(?:src|href)="([^"#][^"]*)"', answer.text))
    for _, _, operation in openapi.operations(openapi.document(api)):
        assert f'id="{operation["operationId"]}"' in answer.text


async def test_every_problem_is_explained_under_its_type(stranger: Program) -> None:
    for slug, code in problems.every().items():
        found = (await stranger.get(f"problems/{slug}")).json()
        assert (found["code"], found["type"]) == (code, f"/api/v1/problems/{slug}")
    assert (await stranger.get("problems/nonsense")).json()["code"] == "NotFound"
