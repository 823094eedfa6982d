"""`windrow token add --join`: whom the token lets in, and the line that uses it."""

import json

import httpx2
import pytest
from typer.main import get_command

from windrow.cli import account
from windrow.cli.main import app
from windrow.client import Client
from windrow.config import Config

LINE = "curl -fsS https://master/install.sh | sudo sh -s -- --token wj_1"

MADE = {"token": "wt_1", "created_at": "2030-01-01T00:00:00.5Z", "expires_at": "2030-01-31T00:00:00Z"}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[httpx2.Request]:
    """Returns the requests at a Master that knows an install line for hosts alone."""
    requests: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        requests.append(request)
        if request.url.path.endswith("/tokens"):
            return httpx2.Response(201, json=MADE)
        role = json.loads(request.content)["role"]
        return httpx2.Response(201, json={"join_token": "wj_1", "command": LINE if role == "host" else None})

    transport = httpx2.MockTransport(answer)
    config = Config("http://master", "wr_secret")
    monkeypatch.setattr(account, "client", lambda context: context.with_resource(Client(config, transport=transport)))
    return requests


@pytest.mark.parametrize(
    ("words", "role", "line"), [((), "host", LINE), (("--role", "access"), "access", "windrow-access join ")]
)
def test_a_join_token_is_for_a_host_or_an_access_and_its_line_is_shown(
    asked: list[httpx2.Request], capsys: pytest.CaptureFixture[str], words: tuple[str, ...], role: str, line: str
) -> None:
    get_command(app)(["token", "add", "--join", *words], standalone_mode=False)

    assert json.loads(asked[0].content) == {"role": role}
    token, shown = capsys.readouterr().out.splitlines()
    assert token == "wj_1" and shown.startswith(line)


@pytest.mark.parametrize(
    ("words", "why"),
    [((), "--days 30"), (("--days", "90"), "no token outlives the one that made it"), (("--days", "7"), "--days 7")],
)
def test_a_new_token_says_why_it_expires(
    asked: list[httpx2.Request], capsys: pytest.CaptureFixture[str], words: tuple[str, ...], why: str
) -> None:
    get_command(app)(["token", "add", "browser", *words], standalone_mode=False)

    assert capsys.readouterr().err == f"It expires at 2030-01-31T00:00:00Z: {why}.\n"
