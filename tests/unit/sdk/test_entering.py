"""Entering a box: whose keys are sent, where its ways in are asked for, and as whom one logs in."""

import base64
import json
import shutil
import subprocess
from pathlib import Path

import httpx2
import pytest
from typer.main import get_command

from windrow.cli import entering, forward
from windrow.cli.main import app
from windrow.client import Client
from windrow.config import Config
from windrow.errors import InvalidInput, WindrowClientError

KEY, SECOND = "ssh-ed25519 AAAA me@home", "ssh-rsa BBBB"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = tmp_path / ".ssh"
    folder.mkdir()
    return folder


def answering(box: dict[str, object], said: bytes = b"box\n", code: int = 0) -> Client:
    def answer(request: httpx2.Request) -> httpx2.Response:
        if request.url.path.endswith("/exec"):
            assert json.loads(request.content) == {"argv": ["id", "-un"]}
            lines = [{"stream": 2, "data": "bm90ZQ=="}, {"stream": 1, "data": base64.b64encode(said).decode()}]
            return httpx2.Response(200, text="\n".join(json.dumps(one) for one in [*lines, {"exit_code": code}]))
        assert request.url.path == "/api/v1/clusters/cluster_1/box"
        return httpx2.Response(200, json=box)

    return Client(Config("http://master", "wr_secret"), transport=httpx2.MockTransport(answer))


def test_ones_own_keys_go_to_a_box_without_a_command_and_nowhere_else(home: Path) -> None:
    (home / "id_ed25519.pub").write_text(f"{KEY}\n")
    (home / "id_ed25519").write_text("-----BEGIN OPENSSH PRIVATE KEY-----\n")
    (home / "work.pub").write_text(f"# for work\n\n{SECOND}\n{KEY}\n")

    assert entering.asked("box", [], [], True, None) == ([KEY], True)
    assert entering.asked("box", [], [], False, False) == ([], False)
    assert entering.asked("box", ["train"], [], True, None) == ([], False)
    assert entering.asked("service", [], [], True, None) == ([], False)
    assert entering.asked("box", ["train"], [home / "work.pub"], True, True) == ([SECOND, KEY], True)


@pytest.mark.skipif(shutil.which("ssh") is None, reason="OpenSSH's client reads it")
def test_an_editor_is_given_what_ssh_itself_reads(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = {"id": "cluster_1", "name": "lab", "request": {"ssh_keys": [KEY]}}
    monkeypatch.setattr(forward, "client", lambda context: answering({"ssh_port": 2222}))
    monkeypatch.setattr(forward, "cluster_named", lambda api, cluster: found)
    get_command(app)(["cluster", "ssh", "--config", "lab"], standalone_mode=False)
    (home / "config").write_text(capsys.readouterr().out)
    asked = ["ssh", "-G", "-F", str(home / "config"), "lab"]
    told = subprocess.run(asked, capture_output=True, text=True, check=True, timeout=60).stdout.splitlines()
    assert {"user box", "hostkeyalias cluster_1", "stricthostkeychecking accept-new"} <= set(told)
    (proxy,) = [line for line in told if line.startswith("proxycommand ")]
    assert proxy.endswith("cluster forward cluster_1 2222 --stdio")


@pytest.mark.parametrize(
    ("request_", "refuses"), [({}, True), ({"argv": ["sshd"]}, False), ({"kind": "service"}, False)]
)
def test_a_machine_that_was_started_without_a_key_says_so_and_the_way_out(
    home: Path, monkeypatch: pytest.MonkeyPatch, request_: dict[str, object], refuses: bool
) -> None:
    found = {"id": "cluster_1", "name": "lab", "request": {"ssh_keys": [], **request_}}
    monkeypatch.setattr(forward, "client", lambda context: answering({}))
    monkeypatch.setattr(forward, "cluster_named", lambda api, cluster: found)
    words = ["cluster", "ssh", "--config", "lab"]
    if refuses:
        with pytest.raises(WindrowClientError, match=r"started without an SSH key.* exec lab .*--ssh-key"):
            get_command(app)(words, standalone_mode=False)
    get_command(app)(words if not refuses else [*words[:3], "--port", "22", "lab"], standalone_mode=False)


@pytest.mark.case("B-F17")
def test_files_that_are_no_keys_are_passed_over_and_named(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / "id_ed25519.pub").write_text(f"{KEY}\n")
    (home / "id_ed25519-cert.pub").write_text("ssh-ed25519-cert-v01@openssh.com AAAA me\n")
    (home / "id_odd.pub").write_text("hello\n")
    (home / "id_bytes.pub").write_bytes(b"\xff\xfe")

    assert entering.own_keys() == [KEY]

    said = capsys.readouterr().err
    assert "id_odd.pub" in said and "id_bytes.pub" in said and "passed over" in said
    assert "cert" not in said


def test_a_certificate_that_is_given_as_a_key_is_refused_with_its_name(home: Path) -> None:
    (home / "id_x-cert.pub").write_text("ssh-ed25519-cert-v01@openssh.com AAAA me\n")
    with pytest.raises(InvalidInput, match=r"id_x-cert\.pub line 1 is not a public key"):
        entering.keys_in([home / "id_x-cert.pub"])


def test_who_has_no_keys_sends_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert entering.own_keys() == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "cannot be read"),
        ("-----BEGIN OPENSSH PRIVATE KEY-----", "private key"),
        ("# nothing\n", "no public key"),
    ],
)
def test_a_file_that_is_none_of_public_keys_is_refused_with_the_reason(home: Path, text: str | None, said: str) -> None:
    if text is not None:
        (home / "id_x").write_text(text)
    with pytest.raises(WindrowClientError, match=said):
        entering.keys_in([home / "id_x"])


def test_ports_of_a_box_are_asked_for_only_where_keys_or_a_notebook_were_given() -> None:
    with answering({"ssh_port": 2222}) as api:
        assert entering.entry_ports(api, {"id": "cluster_1", "request": {"ssh_keys": [KEY]}}) == {"ssh_port": 2222}
        assert entering.entry_ports(api, {"id": "cluster_2", "request": {"ssh_keys": [], "notebook": False}}) == {}


def test_who_logs_in_is_whom_the_box_runs_as() -> None:
    with answering({}) as api:
        assert entering.user_inside(api, "cluster_1") == "box"


@pytest.mark.parametrize(("said", "code"), [(b"", 0), (b"box\n", 1), (b"-oProxyCommand=x", 0), (b"a\x1b[2Jb", 0)])
def test_a_name_that_is_none_is_never_given_to_ssh(said: bytes, code: int) -> None:
    with answering({}, said, code) as api, pytest.raises(WindrowClientError, match="--user"):
        entering.user_inside(api, "cluster_1")


def test_the_address_of_a_notebook_carries_its_token() -> None:
    assert entering.page_url("lab.localhost", 8888, "abc") == "http://lab.localhost:8888/?token=abc"
    assert entering.page_url("lab.localhost", 9000) == "http://lab.localhost:9000/"
