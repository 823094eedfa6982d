"""`windrow channel` and `delivery`: what they ask for, and that settings which are not named stay."""

import json
from typing import Any

import httpx2
import pytest
from typer.main import get_command

from windrow.cli import channels
from windrow.cli.main import app
from windrow.client import Client
from windrow.config import Config
from windrow.errors import InvalidInput

CHANNEL = {
    "id": "channel_1",
    "name": "hook",
    "kind": "webhook",
    "min_severity": "ticket",
    "rules": ["job.*"],
    "quiet": {"begin": "22:00", "end": "07:00", "time_zone": "Europe/Berlin"},
    "digest_minutes": None,
    "is_enabled": True,
}
SENT = {"state": "given_up", "last_answer": "It answered 500"}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[httpx2.Request]:
    """Returns the requests at a Master with one channel, `hook`."""
    requests: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        requests.append(request)
        match request.method, request.url.path.removeprefix("/api/v1"):
            case "POST", "/channels" | "/channels/channel_1/rotate":
                return httpx2.Response(201, json={"channel": CHANNEL, "secret": "whsec_x"})
            case "POST", _:
                return httpx2.Response(200, json=SENT)
            case "GET", "/channels":
                return httpx2.Response(200, json={"items": [CHANNEL], "next_cursor": None})
            case _:
                return httpx2.Response(200, json=CHANNEL | {"level": "all"})

    def made(context: Any) -> Client:
        api = Client(Config("http://master", "wt_secret"), transport=httpx2.MockTransport(answer))
        return context.with_resource(api)

    monkeypatch.setattr(channels, "client", made)
    return requests


def run(*words: str) -> Any:
    return get_command(app)(list(words), standalone_mode=False)


def test_a_channel_is_made_and_its_secret_printed(
    asked: list[httpx2.Request], capsys: pytest.CaptureFixture[str]
) -> None:
    given = ("--kind", "webhook", "--to", "https://a.example/", "--rule", "job.*", "--rule", "host.*", "--digest", "5")
    run("channel", "add", "hook", *given, "--for", "me", "--quiet", "22:00-07:00")
    assert json.loads(asked[0].content) == {
        "name": "hook",
        "kind": "webhook",
        "target": "https://a.example/",
        "scope": "me",
        "rules": ["job.*", "host.*"],
        "quiet": {"begin": "22:00", "end": "07:00", "time_zone": "UTC"},
        "digest_minutes": 5,
    }
    assert capsys.readouterr().out == "whsec_x\n"


@pytest.mark.parametrize(
    ("words", "changed"),
    [
        (("--off",), {"is_enabled": False}),
        (("--quiet", "none", "--name", "other"), {"quiet": None, "name": "other"}),
        (("--time-zone", "UTC"), {"quiet": {"begin": "22:00", "end": "07:00", "time_zone": "UTC"}}),
        (("--rule", "none", "--digest", "none"), {"rules": []}),
        (("--min-severity", "page"), {"min_severity": "page"}),
    ],
)
def test_settings_that_are_not_named_stay(
    asked: list[httpx2.Request], words: tuple[str, ...], changed: dict[str, Any]
) -> None:
    run("channel", "set", "hook", *words)
    before = {name: CHANNEL[name] for name in channels.SETTABLE}
    assert (asked[-1].method, json.loads(asked[-1].content)) == ("PUT", before | changed)


@pytest.mark.parametrize("words", [("--quiet", "22:00"), ("--digest", "often")])
def test_a_setting_that_cannot_be_read_is_refused(asked: list[httpx2.Request], words: tuple[str, ...]) -> None:
    with pytest.raises(InvalidInput):
        run("channel", "set", "hook", *words)


def test_a_test_that_fails_says_why_and_ends_so(
    asked: list[httpx2.Request], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("channel", "test", "hook") == 1
    assert "Given up: It answered 500" in capsys.readouterr().err


def test_the_rest_is_asked_by_id(asked: list[httpx2.Request]) -> None:
    run("channel", "rotate", "hook")
    run("channel", "rm", "hook", "--yes")
    run("channel", "mail", "all")
    run("delivery", "again", "delivery_" + "0" * 32)
    told = [(one.method, one.url.path.removeprefix("/api/v1")) for one in asked if one.method != "GET"]
    assert told == [
        ("POST", "/channels/channel_1/rotate"),
        ("DELETE", "/channels/channel_1"),
        ("PUT", "/user/alert-mail"),
        ("POST", f"/deliveries/delivery_{'0' * 32}/again"),
    ]
