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


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[httpx2.Request]:
    """Returns the requests at a Master that knows an install line for hosts alone."""
    requests: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        requests.append(request)
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
