"""`windrow secret`: the value comes from a prompt, a file or standard input, and is in no argument and no output."""

import base64
import io
import json
import sys
from pathlib import Path

import httpx2
import pytest
import typer
from typer.main import get_command

from windrow.cli import secrets
from windrow.cli.main import app
from windrow.client import Client
from windrow.config import Config
from windrow.errors import InvalidInput

CANARY = "hf_Canary9Sings7In5No3Argument1"
SECRET = {
    "name": "HF_TOKEN",
    "kind": "text",
    "updated_at": "2030-01-01T00:00:00.000Z",
    "last_used_at": None,
    "updated_by": "user/user_1",
    "used_by": [{"kind": "job", "id": "job_1", "name": "train", "is_waiting": True}],
}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[httpx2.Request]:
    """Returns the requests at a Master with one secret, which a job waits for."""
    requests: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        requests.append(request)
        if request.method == "DELETE":
            warning = "These will fail unless the secret HF_TOKEN is set again: job train (job_1)."
            return httpx2.Response(200, json={"name": "HF_TOKEN", "used_by": [], "warning": warning})
        item = {"items": [SECRET], "next_cursor": None} if request.method == "GET" else SECRET
        return httpx2.Response(200, json=item)

    transport = httpx2.MockTransport(answer)
    config = Config("http://master", "wr_secret")
    monkeypatch.setattr(secrets, "client", lambda context: context.with_resource(Client(config, transport=transport)))
    return requests


class Piped(io.TextIOWrapper):
    """Standard input that is no terminal, or is one."""

    def __init__(self, data: bytes, is_terminal: bool = False) -> None:
        super().__init__(io.BytesIO(data))
        self.is_terminal = is_terminal

    def isatty(self) -> bool:
        return self.is_terminal


def run(*words: str) -> None:
    get_command(app)(["secret", *words], standalone_mode=False)


def sent(request: httpx2.Request) -> tuple[str, str, str]:
    body = json.loads(request.content)
    return request.url.path.removeprefix("/api/v1"), body["value"], body["kind"]


def test_the_value_comes_from_standard_input_without_the_newline_at_its_end(
    asked: list[httpx2.Request], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", Piped(f"{CANARY}\n".encode()))
    run("set", "HF_TOKEN", "-")
    assert sent(asked[0]) == ("/secrets/HF_TOKEN", CANARY, "text")
    said = capsys.readouterr()
    assert CANARY not in said.out + said.err and "--secret HF_TOKEN" in said.err


def test_a_file_is_sent_as_it_is_and_any_bytes_as_base64(asked: list[httpx2.Request], tmp_path: Path) -> None:
    text, raw = tmp_path / "key", tmp_path / "raw"
    text.write_text(f"{CANARY}\n")
    raw.write_bytes(bytes(range(256)))
    run("set", "KEY", "--file", str(text))
    run("set", "KEY", "--file", str(raw), "--kind", "file")
    assert sent(asked[0]) == ("/secrets/KEY", f"{CANARY}\n", "text")
    assert sent(asked[1]) == ("/secrets/KEY", base64.b64encode(bytes(range(256))).decode(), "file")
    with pytest.raises(InvalidInput, match="--kind file"):
        run("set", "KEY", "--file", str(raw))


def test_a_terminal_is_asked_without_an_echo(asked: list[httpx2.Request], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Piped(b"", is_terminal=True))
    hidden: list[bool] = []

    def prompt(text: str, *, hide_input: bool, err: bool) -> str:
        hidden.append(hide_input and err)
        return CANARY

    monkeypatch.setattr(typer, "prompt", prompt)
    run("set", "HF_TOKEN")
    assert hidden == [True] and sent(asked[0])[1] == CANARY


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("set", "A", CANARY), "is no argument"),
        (("set", "A"), "Give --file FILE"),
        (("set", "A", "-", "--file", "x"), "not both"),
        (("set", "A", "--file", "/nowhere/x"), "cannot be read"),
        (("set", "A", "-", "--kind", "ssh"), "--kind must be"),
        (("set", "A", "-"), "1 to 65,536 bytes"),
    ],
)
def test_odd_lines_are_refused_without_the_value_and_nothing_is_asked(
    asked: list[httpx2.Request], monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], said: str
) -> None:
    monkeypatch.setattr(sys, "stdin", Piped(b""))
    with pytest.raises(InvalidInput, match=said) as refused:
        run(*words)
    assert CANARY not in str(refused.value) and asked == []


def test_a_list_has_names_and_users_and_a_deletion_says_what_waits(
    asked: list[httpx2.Request], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run("ls")
    assert "HF_TOKEN" in (out := capsys.readouterr().out) and "job train" in out
    run("rm", "HF_TOKEN", "--yes")
    assert "Warning: These will fail unless the secret HF_TOKEN is set again" in capsys.readouterr().err
    assert asked[-1].method == "DELETE"


def test_programs_set_text_and_bytes() -> None:
    requests: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        requests.append(request)
        return httpx2.Response(200, json=SECRET)

    with Client(Config("http://master", "wr_x"), transport=httpx2.MockTransport(answer)) as api:
        api.set_secret("A", "text")
        api.set_secret("A", b"\0")
    assert [sent(one)[1:] for one in requests] == [("text", "text"), ("AA==", "file")]
