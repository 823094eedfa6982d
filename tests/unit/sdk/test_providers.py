"""`windrow identity-provider`: what is asked of the Master, and that a secret is never an argument."""

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest
from typer.main import get_command

from windrow.cli import providers
from windrow.cli.main import app
from windrow.client import Client
from windrow.config import Config
from windrow.errors import InvalidInput

MADE = {"name": "acme", "redirect_uri": "https://market/oidc/acme"}
PRESENT = {
    "name": "here",
    "issuer": "https://a",
    "client_id": "w",
    "has_client_secret": True,
    "organisation": "org_1",
    "domains": ["a.org"],
    "creates_users": True,
    "private": False,
    "scopes": ["openid"],
    "group_claim": "roles",
    "groups": [{"group": "ml", "role": None, "projects": [{"id": "account_1", "name": "lab", "roles": ["renter"]}]}],
}
GIVEN = {"role": "org_admin", "projects": [{"id": "account_1", "name": "lab", "roles": ["renter", "viewer"]}]}
ADD = ("add", "acme", "--issuer", "https://login.example.org", "--client-id", "windrow")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[httpx2.Request]:
    """Returns the requests at a Master with one provider, but for its list."""
    requests: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        if request.method == "GET":
            return httpx2.Response(200, json={"items": [PRESENT], "next_cursor": None})
        requests.append(request)
        return httpx2.Response(200, json=GIVEN if request.url.path.endswith("/preview") else MADE)

    transport = httpx2.MockTransport(answer)
    config = Config("http://master", "wr_secret")
    monkeypatch.setattr(providers, "client", lambda context: context.with_resource(Client(config, transport=transport)))
    return requests


def run(*words: str) -> None:
    get_command(app)(["identity-provider", *words], standalone_mode=False)


def test_a_provider_is_set_with_a_secret_from_a_file_and_its_address_is_said(
    asked: list[httpx2.Request], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "secret").write_text("hush\n")
    groups = ("--group", "ml=lab:renter,viewer", "--group", "cn=ops,dc=org=org_admin", "--group", "ml=default:viewer")

    run(*ADD, "--client-secret-file", str(tmp_path / "secret"), "--organisation", "home", "--creates-users", *groups)

    body: dict[str, Any] = json.loads(asked[0].content)
    assert (asked[0].method, asked[0].url.path) == ("PUT", "/api/v1/identity-providers/acme")
    assert (body["client_secret"], body["creates_users"], "private" in body) == ("hush", True, False)
    ml = [{"project": "lab", "roles": ["renter", "viewer"]}, {"project": "default", "roles": ["viewer"]}]
    ops = {"group": "cn=ops,dc=org", "role": "org_admin", "projects": []}
    assert body["groups"] == [{"group": "ml", "role": None, "projects": ml}, ops]
    assert MADE["redirect_uri"] in capsys.readouterr().err


def test_a_change_sends_what_was_there_with_what_is_given(
    asked: list[httpx2.Request], capsys: pytest.CaptureFixture[str]
) -> None:
    run("add", "here", "--no-creates-users", "--client-id", "x", "--domain", "")
    body = json.loads(asked[0].content)
    lab = {"group": "ml", "role": None, "projects": [{"project": "account_1", "roles": ["renter"]}]}
    same = {"issuer": "https://a", "organisation": "org_1", "private": False, "scopes": ["openid"]}
    changed = {"creates_users": False, "client_id": "x", "domains": []}
    assert body == {**same, **changed, "group_claim": "roles", "groups": [lab]}
    assert "here is changed." in capsys.readouterr().err
    with pytest.raises(InvalidInput, match="--issuer URL"):
        run("add", "acme", "--client-id", "x")


@pytest.mark.parametrize("words", [("--group", "ml"), ("--group", "=renter"), ("--client-secret-file", "/nowhere")])
def test_what_cannot_be_read_is_refused_before_the_master_is_asked(
    asked: list[httpx2.Request], words: tuple[str, ...]
) -> None:
    with pytest.raises(InvalidInput):
        run(*ADD, *words)
    assert asked == []


def test_a_preview_is_one_line(asked: list[httpx2.Request], capsys: pytest.CaptureFixture[str]) -> None:
    run("preview", "acme", "ml", "ops")
    assert json.loads(asked[0].content) == {"groups": ["ml", "ops"]}
    assert capsys.readouterr().out == "org_admin lab:renter,viewer\n"


def test_a_provider_is_removed(asked: list[httpx2.Request]) -> None:
    run("rm", "acme", "--yes")
    assert (asked[0].method, asked[0].url.path) == ("DELETE", "/api/v1/identity-providers/acme")
