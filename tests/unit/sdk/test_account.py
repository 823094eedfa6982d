"""`windrow token add --join`: whom the token lets in, and the line that uses it; `windrow logout`: what it ends."""

import json
from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest
from typer.main import get_command

from windrow.cli import account
from windrow.cli.main import app
from windrow.client import Client
from windrow.config import Config, save, user_file

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


UNTIL = "2030-01-01T00:00:00Z"
STAYS = f"It stays valid until {UNTIL}. Revoke it: windrow token rm token_1"
Answers = Callable[[httpx2.Request], httpx2.Response]


@pytest.fixture
def signed_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[Answers], str]:
    """Signs in to a Master and out of it; returns what the end says, without the name of the file."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))

    def sign_out(answer: Answers) -> str:
        transport = httpx2.MockTransport(answer)
        monkeypatch.setattr(account, "Client", lambda config: Client(config, transport=transport))
        if not user_file().exists():
            save(Config("https://master", "wr_secret", token_id="token_1", expires_at=UNTIL))
        get_command(app)(["logout"], standalone_mode=False)
        assert not user_file().exists()
        return capsys.readouterr().err.removeprefix(f"Signed out: {user_file()} is removed.").strip()

    return sign_out


def master(asked: list[tuple[str, str]], name: str = "of a link", refusal: int = 0) -> Answers:
    """Returns the answers of a Master that knows the token by this name."""

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append((request.method, request.url.path.removeprefix("/api/v1")))
        if refusal:
            return httpx2.Response(refusal, json={"code": "x", "detail": "No."})
        me: dict[str, object] = {"account": {"name": "anna"}, "roles": [], "session": None}
        token = {"id": "token_1", "name": name, "expires_at": UNTIL}
        return httpx2.Response(204) if request.method == "DELETE" else httpx2.Response(200, json=me | {"token": token})

    return answer


def test_a_logout_revokes_its_token(signed_out: Callable[[Answers], str]) -> None:
    asked: list[tuple[str, str]] = []
    assert signed_out(master(asked)) == "Its token is revoked, and so are those that it made."
    assert asked == [("GET", "/me"), ("DELETE", "/tokens/token_1")]


def test_a_logout_leaves_the_token_of_the_markets_own_folder(signed_out: Callable[[Answers], str]) -> None:
    asked: list[tuple[str, str]] = []
    said = signed_out(master(asked, "cli.json"))
    assert said == f"Its token is the market's own, in its cli.json, and stays valid until {UNTIL}."
    assert asked == [("GET", "/me")]


def test_a_logout_of_a_linked_market_removes_the_link_and_asks_for_nothing(
    signed_out: Callable[[Answers], str], tmp_path: Path
) -> None:
    asked: list[tuple[str, str]] = []
    markets = tmp_path / "cli.json"
    markets.write_text("{}")
    user_file().parent.mkdir(parents=True)
    user_file().symlink_to(markets)
    assert signed_out(master(asked)) == ""
    assert (markets.read_text(), asked) == ("{}", [])


def test_a_logout_that_cannot_revoke_removes_the_login_and_says_until_when_the_token_is_valid(
    signed_out: Callable[[Answers], str],
) -> None:
    def away(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("refused")

    assert signed_out(away).endswith(f"Is it running? {STAYS}")
    assert signed_out(master([], refusal=503)) == f"Its token was not revoked: No. {STAYS}"
    assert signed_out(master([], refusal=401)) == "Its token was not valid any more."


def test_a_logout_of_a_file_that_cannot_be_read_says_how_to_find_the_token(
    signed_out: Callable[[Answers], str],
) -> None:
    user_file().parent.mkdir(parents=True)
    user_file().write_text("{")
    user_file().chmod(0o600)
    assert signed_out(master([])).endswith("Find it (windrow token ls) and revoke it: windrow token rm ID")


def test_a_login_keeps_until_when_its_token_is_valid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    transport = httpx2.MockTransport(master([]))
    monkeypatch.setattr(account, "Client", lambda config: Client(config, transport=transport))
    account._keep(Config("https://master", "wr_secret"))
    kept = json.loads(user_file().read_text())
    assert (kept["token_id"], kept["expires_at"]) == ("token_1", UNTIL)


@pytest.mark.parametrize(
    ("words", "why"),
    [((), "--days 30"), (("--days", "90"), "no token outlives the one that made it"), (("--days", "7"), "--days 7")],
)
def test_a_new_token_says_why_it_expires(
    asked: list[httpx2.Request], capsys: pytest.CaptureFixture[str], words: tuple[str, ...], why: str
) -> None:
    get_command(app)(["token", "add", "browser", *words], standalone_mode=False)

    assert capsys.readouterr().err == f"It expires at 2030-01-31T00:00:00Z ({why}).\n"
