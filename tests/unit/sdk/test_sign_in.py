"""`windrow login URL` by a browser, `windrow can-i`, `windrow service-account`: what they ask, say and exit with."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from typer.main import get_command

from windrow.cli import account, device, rights, service_accounts
from windrow.cli.main import app
from windrow.client import Client
from windrow.config import Config, known_authority, save, user_file
from windrow.errors import ApiProblem, NotSignedIn, WaitTimedOut, WindrowClientError

BEGUN = {
    "device_code": "wd_secret",
    "user_code": "BCDF-GHJK",
    "verification_uri": "https://m.example/device",
    "verification_uri_complete": "https://m.example/device?code=BCDF-GHJK",
    "expires_in": 600,
    "interval": 5,
}
PLACE = Config("https://m.example", "")
TOKEN = "wt_" + "a" * 43


class Time:
    """A clock that sleeping moves on."""

    def __init__(self) -> None:
        self.now, self.slept = 0.0, list[float]()

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.slept.append(seconds)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Time:
    """The time of the command."""
    found = Time()
    monkeypatch.setattr(device, "time", found)
    return found


@pytest.fixture
def master(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Lets a Master answer the questions for the token in this order, the last one for ever."""

    def answers(*said: str | int, **begun: Any) -> list[str]:
        left, asked = list(said), list[str]()

        def answer(request: httpx2.Request) -> httpx2.Response:
            path = request.url.path.removeprefix("/api/v1")
            asked.append(path)
            if path == "/device":
                return httpx2.Response(201, json=BEGUN | begun)
            assert json.loads(request.content) == {"device_code": "wd_secret"}
            one = left.pop(0) if len(left) > 1 else left[0]
            if one == "token":
                return httpx2.Response(201, json={"token": TOKEN})
            if one == "away":
                raise httpx2.ConnectError("refused")
            status = one if isinstance(one, int) else 400
            return httpx2.Response(status, json={"code": str(one), "detail": f"It was {one}."})

        transport = httpx2.MockTransport(answer)
        monkeypatch.setattr(device, "Client", lambda config: Client(config, transport=transport))
        return asked

    return answers


def test_a_login_by_browser_shows_page_and_code_and_asks_until_somebody_approves(
    master: Callable[..., list[str]], clock: Time, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = master("authorization_pending", "slow_down", "away", "away", 429, "token")
    assert device.signed_in(PLACE).token == TOKEN
    said = capsys.readouterr()
    assert "https://m.example/device?code=BCDF-GHJK" in said.err and "BCDF-GHJK" in said.err
    assert "wd_secret" not in said.out + said.err
    assert clock.slept == [5, 5, 10, 10, 10]
    assert asked[0] == "/device"


@pytest.mark.parametrize("code", ["access_denied", "expired_token", "unauthenticated"])
def test_a_refusal_ends_it_with_the_masters_words(master: Callable[..., list[str]], clock: Time, code: str) -> None:
    asked = master("authorization_pending", code)
    with pytest.raises(ApiProblem, match=f"It was {code}"):
        device.signed_in(PLACE)
    assert asked.count("/device/token") == 2


def test_it_ends_when_the_code_expires_whatever_the_master_says(master: Callable[..., list[str]], clock: Time) -> None:
    master("authorization_pending")
    with pytest.raises(WaitTimedOut, match="windrow login URL"):
        device.signed_in(PLACE)
    assert clock.now <= 600
    master("authorization_pending", expires_in=10**9, interval=10**9)
    with pytest.raises(WaitTimedOut):
        device.signed_in(PLACE)
    assert max(clock.slept) <= device.INTERVAL_S_MAX


@pytest.mark.parametrize("address", ["file:///etc/passwd", "javascript:alert(1)", "-x", ""])
def test_an_address_that_is_no_page_is_not_opened(master: Callable[..., list[str]], clock: Time, address: str) -> None:
    master("token", verification_uri_complete=address)
    with pytest.raises(WindrowClientError, match="names no page"):
        device.signed_in(PLACE)


def test_a_login_takes_a_token_of_standard_input_and_the_browser_where_there_is_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import io

    kept: list[Config] = []
    monkeypatch.setattr(account, "_keep", kept.append)
    monkeypatch.setattr(device, "signed_in", lambda place: Config(place.url, "wt_browser"))
    for text in (f"{TOKEN}\n", ""):
        monkeypatch.setattr("sys.stdin", io.StringIO(text))
        get_command(app)(["login", "https://m.example"], standalone_mode=False)
    (tmp_path / "token").write_text(TOKEN)
    get_command(app)(["login", "https://m.example", "--token-file", str(tmp_path / "token")], standalone_mode=False)
    monkeypatch.setattr("sys.stdin", io.StringIO("\n"))
    with pytest.raises(NotSignedIn, match="no token on standard input"):
        get_command(app)(["login", "https://m.example"], standalone_mode=False)
    assert [one.token for one in kept] == [TOKEN, "wt_browser", TOKEN]


@pytest.fixture
def answered(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], list[httpx2.Request]]:
    """Lets a Master give one answer to all."""

    def answer_with(document: Any) -> list[httpx2.Request]:
        asked: list[httpx2.Request] = []

        def answer(request: httpx2.Request) -> httpx2.Response:
            asked.append(request)
            return httpx2.Response(204) if request.method == "DELETE" else httpx2.Response(200, json=document)

        transport, config = httpx2.MockTransport(answer), Config("http://master", TOKEN)
        for module in (rights, service_accounts):
            monkeypatch.setattr(
                module, "client", lambda context: context.with_resource(Client(config, transport=transport))
            )
        return asked

    return answer_with


def told(allowed: bool) -> dict[str, Any]:
    reason = None if allowed else "This needs the role renter."
    one = {"permission": "rent", "allowed": allowed, "roles": ["renter"], "reason": reason, "objects": "own"}
    return {"items": [one]}


@pytest.mark.parametrize(
    ("allowed", "code", "said"), [(True, None, "yes\nObjects in reach: own."), (False, 1, "no\nThis needs the role")]
)
@pytest.mark.parametrize("words", [("can-i",), ("auth", "can-i")])
def test_can_i_answers_by_its_exit_code_and_in_words(
    answered: Callable[[Any], list[httpx2.Request]],
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    allowed: bool,
    code: int | None,
    said: str,
) -> None:
    asked = answered(told(allowed))
    assert (get_command(app)([*words, "POST", "/clusters"], standalone_mode=False) or None) == code
    assert asked[0].url.params["wanted"] == "POST /clusters"
    shown = capsys.readouterr()
    assert said in shown.out + shown.err
    get_command(app)([*words, "rent", "--json"], standalone_mode=False)
    assert json.loads(capsys.readouterr().out)["allowed"] is allowed


def test_a_service_account_is_rotated_by_its_name_and_its_token_alone_is_printed(
    answered: Callable[[Any], list[httpx2.Request]], capsys: pytest.CaptureFixture[str]
) -> None:
    token = {"expires_at": "2030-01-01T00:00:00Z", "last_used_at": None, "last_used_address": None, "token": TOKEN}
    row = {"id": "service_1", "name": "ci", "roles": ["renter"], "created_by": "user/user_1", "tokens": [token]}
    asked = answered({"items": [row], "next_cursor": None, "service_account": row, "token": token})

    get_command(app)(["service-account", "add", "ci", "--role", "renter", "--days", "7"], standalone_mode=False)
    assert capsys.readouterr().out == TOKEN + "\n"
    assert json.loads(asked[-1].content) == {"name": "ci", "roles": ["renter"], "expires_in_s": 7 * 86_400}
    get_command(app)(["service-account", "rotate", "ci", "--overlap-hours", "0"], standalone_mode=False)
    said = capsys.readouterr()
    assert said.out == TOKEN + "\n" and "The token before has ended." in said.err
    assert asked[-1].url.path == "/api/v1/service-accounts/service_1/rotate"
    assert json.loads(asked[-1].content) == {"expires_in_s": 90 * 86_400, "overlap_s": 0}
    get_command(app)(["service-account", "ls"], standalone_mode=False)
    listed = capsys.readouterr().out
    assert "ci" in listed and TOKEN not in listed
    get_command(app)(["service-account", "rm", "ci", "--yes"], standalone_mode=False)
    assert (asked[-1].method, asked[-1].url.path) == ("DELETE", "/api/v1/service-accounts/service_1")


def test_the_authority_of_a_master_is_known_from_the_login_and_from_the_installation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    installed = tmp_path / "data" / "windrow"
    installed.mkdir(parents=True)
    assert known_authority("https://m.example") is None
    (installed / "url").write_text("https://m.example:8443\n")
    assert known_authority("https://m.example:8443") is None, "its file is not there"
    (installed / "ca.pem").write_text("PEM")
    assert known_authority("https://m.example:8443/") == str(installed / "ca.pem")
    assert known_authority("https://m.example") is None, "another address"

    save(Config("https://other.example", "t", "/kept/ca.pem"))
    assert known_authority("https://other.example/") == "/kept/ca.pem"
    assert known_authority("https://m.example:8443") == str(installed / "ca.pem")
    user_file().write_text("{")
    assert known_authority("https://other.example") is None
