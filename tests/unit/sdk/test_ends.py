"""`windrow user delete`, `member leave` and `project delete`: what they ask for, and what they ask before."""

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest
import typer
from typer.main import get_command

from windrow.cli import members, users
from windrow.cli.main import app
from windrow.client import Client
from windrow.config import Config
from windrow.errors import InvalidInput

USERS = [
    {"id": "user_1", "name": "owner", "address": None},
    {"id": "user_2", "name": "ada", "address": "ada@example.org"},
]
ANSWERS: dict[str, Any] = {
    "/me": {"user": USERS[0]},
    "/user": {"has_password": True},
    "/users": {"items": USERS, "next_cursor": None},
    "/organisation": {"id": "organisation_1", "name": "home"},
}
Asked = list[tuple[str, str, Any]]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Asked:
    """Returns the changes that a Master was asked for."""
    found: Asked = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        path = request.url.path.removeprefix("/api/v1")
        if request.method == "GET":
            return httpx2.Response(200, json=ANSWERS[path])
        found.append((request.method, path, json.loads(request.content or b"null")))
        return httpx2.Response(204)

    config, transport = Config("http://master", "wt_x"), httpx2.MockTransport(answer)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))

    def made(context: Any) -> Any:
        return context.with_resource(Client(config, transport=transport))

    for module in (members, users):
        monkeypatch.setattr(module, "client", made)
    return found


def run(*words: str) -> None:
    get_command(app)(list(words), standalone_mode=False)


def test_the_own_user_is_deleted_with_the_password(asked: Asked, tmp_path: Path) -> None:
    (tmp_path / "password").write_text("violet kettle\n")

    run("user", "delete", "owner", "--yes", "--password-file", str(tmp_path / "password"))

    assert asked == [("POST", "/user/delete", {"name": "owner", "password": "violet kettle"})]


def test_somebody_else_is_deleted_by_name_or_address_and_with_a_reason_alone(asked: Asked) -> None:
    with pytest.raises(InvalidInput, match="--reason"):
        run("user", "delete", "ada", "--yes")

    run("user", "delete", "ada@example.org", "--yes", "--reason", "asked for")

    assert asked == [("POST", "/users/user_2/delete", {"reason": "asked for"})]


def test_one_leaves_the_present_organisation_or_another_one(asked: Asked) -> None:
    run("member", "leave", "--yes")
    run("member", "leave", "acme", "--yes")

    assert [path for _, path, _ in asked] == ["/user/organisations/organisation_1", "/user/organisations/acme"]


@pytest.mark.parametrize("words", [("user", "delete", "owner"), ("member", "leave"), ("project", "delete", "lab")])
def test_nothing_ends_without_a_yes(asked: Asked, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise typer.Abort

    monkeypatch.setattr(typer, "confirm", refuse)
    with pytest.raises(typer.Abort):
        run(*words)

    assert asked == []
