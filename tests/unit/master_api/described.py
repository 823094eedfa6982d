"""Checks that an answer of the HTTP API is what its description says."""

import json

import httpx2
from pydantic import BaseModel

LISTS = ("items", "series", "accesses")
"""Lists that prove nothing while they are empty."""


def assert_described(answer: httpx2.Response, model: type[BaseModel], status: int = 200) -> None:
    """The model reads the answer, without a field too few or too many."""
    assert answer.status_code == status, answer.text
    body = answer.json()
    assert all(body.get(name, ["one"]) for name in LISTS), body
    assert json.loads(model.model_validate_json(answer.content, strict=True).model_dump_json()) == body
