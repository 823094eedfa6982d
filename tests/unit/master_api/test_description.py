"""Promises of the API's description: whoever reads it alone knows how to sign in, what is refused and how."""

import functools
import re
from collections.abc import Iterator
from typing import Any

import pytest

from windrow_master.api.app import description
from windrow_master.api.problems import MEDIA_TYPE
from windrow_master.api.routers import declared
from windrow_master.identity.decide import Permission

READABLE = re.compile(r"application/(json|octet-stream|[\w.-]+\+json)|text/[\w.-]+")
"""Media types that generators of clients read: JSON, bytes and text."""


@functools.cache
def whole() -> dict[str, Any]:
    """The description, made by the first test and not by every worker that collects them."""
    return description()


def operations() -> list[tuple[str, str, dict[str, Any]]]:
    """Method, path and description of each operation."""
    return [
        (method.upper(), path, operation)
        for path, methods in whole()["paths"].items()
        for method, operation in methods.items()
    ]


def test_it_says_whose_it_is_and_where() -> None:
    assert whole()["info"]["license"] == {"name": "Apache License 2.0", "identifier": "Apache-2.0"}
    assert "contact" not in whole()["info"]
    assert [server["url"] for server in whole()["servers"]] == ["/"]


def test_what_needs_a_sign_in_says_so_and_nothing_else_does() -> None:
    (scheme,) = whole()["components"]["securitySchemes"]
    by_path = {(method, re.sub(r":\w+}", "}", path)): rules for (method, path), rules in declared().items()}
    for method, path, operation in operations():
        rules = by_path[method, path]
        wanted: list[Any] = [{scheme: []}]
        if rules.may is Permission.NOBODY:
            wanted = [{}, *wanted] if rules.hears_token else []
        assert operation["security"] == wanted, (method, path)


def test_every_operation_documents_its_refusals_as_problems() -> None:
    for method, path, operation in operations():
        refused = {status for status in operation["responses"] if status.startswith("4")}
        wanted = {"421"}
        wanted |= {"422", "429"} if path.startswith("/api/") else set()
        wanted |= {"401", "403"} if operation["security"] == [{"bearer": []}] else set()
        wanted |= {"404", "409"} if "{" in path else set()
        wanted |= {"413"} if "requestBody" in operation else set()
        assert wanted <= refused, (method, path)
        for status in (*refused, "default"):
            assert set(_resolved(operation["responses"][status])["content"]) == {MEDIA_TYPE}, (method, path, status)


def test_a_role_that_is_needed_is_named() -> None:
    refused = _resolved(whole()["paths"]["/api/v1/join-tokens"]["post"]["responses"]["403"])
    assert refused["description"] == "Forbidden: This needs the role operator or provider."


def test_every_reference_leads_somewhere_and_nothing_is_left_over() -> None:
    used = set(_references(whole()))
    held = {f"#/components/{kind}/{name}" for kind, found in whole()["components"].items() for name in found}
    assert used <= held
    assert {one for one in held - used if "/securitySchemes/" not in one} == set()


def test_every_body_has_a_form_that_generators_of_clients_read() -> None:
    unread = []
    for method, path, operation in operations():
        for part in (operation.get("requestBody", {}), *map(_resolved, operation["responses"].values())):
            kinds = [kind.partition(";")[0] for kind in part.get("content", {})]
            if kinds and not any(map(READABLE.fullmatch, kinds)):
                unread.append((method, path, kinds))
    assert unread == []


@pytest.mark.parametrize("path", ["/api/v1/clusters/{cluster_id}/files", "/api/v1/jobs/{job_id}/files"])
def test_an_upload_says_its_body(path: str) -> None:
    body = whole()["paths"][path]["put"]["requestBody"]
    assert body["required"] and set(body["content"]) == {"application/octet-stream"}


def test_a_post_that_may_be_repeated_takes_a_key() -> None:
    def takes_key(path: str) -> bool:
        named = [_resolved(one)["name"] for one in whole()["paths"][path]["post"]["parameters"]]
        assert len(named) == len({name.lower() for name in named})
        return "Idempotency-Key" in named

    assert takes_key("/api/v1/clusters") and takes_key("/api/v1/volumes")
    assert not takes_key("/api/v1/tokens") and not takes_key("/api/v1/join")


def test_every_list_is_read_by_pages_in_the_same_way() -> None:
    schemas = whole()["components"]["schemas"]
    ways = set()
    for method, path, operation in operations():
        answer = operation["responses"].get("200", {}).get("content", {}).get("application/json", {}).get("schema", {})
        listed = schemas.get(answer.get("$ref", "").rpartition("/")[2], {}).get("properties", {})
        if method == "GET" and {"items", "next_cursor"} <= listed.keys():
            asked = {one.get("name"): one for one in operation["parameters"]}
            assert {"limit", "cursor"} <= asked.keys(), path
            limit = asked["limit"]
            ways.add((limit["description"], limit["schema"]["maximum"], asked["cursor"]["description"]))
    assert len(ways) == 1


def _resolved(part: dict[str, Any]) -> dict[str, Any]:
    found: Any = part
    if "$ref" in part:
        found = whole()
        for name in part["$ref"].removeprefix("#/").split("/"):
            found = found[name]
    return dict(found)


def _references(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        if isinstance(part.get("$ref"), str):
            yield part["$ref"]
        part = list(part.values())
    for one in part if isinstance(part, list) else ():
        yield from _references(one)
