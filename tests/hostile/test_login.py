"""A token goes to the Master that was meant, is read by nobody on the way, and is in no message."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.support import warm_windrow
from windrow.cli.telltale import found
from windrow.client import Client
from windrow.config import Config, find, refuse_plain_http, save
from windrow.errors import MasterUnreachable, NoMaster, WindrowClientError

SECRET = "wt_" + "s3cr3t" * 8
NOBODY = 65534


def run(*words: str, cwd: Path, given: str | None = None, **own: str) -> subprocess.CompletedProcess[str]:
    """A `windrow` that finds nothing of this user."""
    bare = {name: value for name, value in os.environ.items() if not name.startswith("WINDROW_")}
    env = bare | {"HOME": str(cwd), "XDG_CONFIG_HOME": str(cwd / "config"), "XDG_STATE_HOME": str(cwd / "state")} | own
    command = [warm_windrow.command(), *words]
    return subprocess.run(command, cwd=cwd, env=env, input=given, capture_output=True, text=True, check=False)


@pytest.mark.row("K5")
@pytest.mark.parametrize("ending", ["\n", "\r\n", " ", "\t\n"])
def test_what_a_token_ends_with_is_taken_off(ending: str) -> None:
    assert Config("http://127.0.0.1:1/\n", SECRET + ending) == Config("http://127.0.0.1:1", SECRET)


@pytest.mark.row("K5")
@pytest.mark.parametrize("inside", ["\n", "\r", "\0", " ", "é", "\ud800", "\x7f", "\u200b", "\r\nX-Other: 1\r\n"])
def test_a_token_that_is_none_is_in_no_message(tmp_path: Path, inside: str) -> None:
    token = SECRET[:20] + inside + SECRET[20:]
    with pytest.raises(WindrowClientError) as refused:
        Config("http://127.0.0.1:1", token)
    assert "s3cr3t" not in str(refused.value) + repr(refused.value.__cause__)
    if "\0" in inside or "\ud800" in inside:
        return  # no environment holds them
    done = run("host", "ls", cwd=tmp_path, WINDROW_URL="http://127.0.0.1:1", WINDROW_TOKEN=token)
    assert done.returncode == 4 and "token" in done.stderr
    assert "s3cr3t" not in done.stdout + done.stderr and "Traceback" not in done.stderr


@pytest.mark.row("K5")
@pytest.mark.parametrize(
    "url",
    [
        *(f"http://me:{SECRET}@127.0.0.1:1", f"https://{SECRET}@m.example", f"https://m.example/?token={SECRET}"),
        *(
            f"https://m.example/#{SECRET}",
            f"{SECRET}",
            f"ftp://{SECRET}",
            f"https://[{SECRET}",
            "http://",
            "https://m:x",
        ),
        *(f"http://127.0.0.1:1/{SECRET}", f"http://{SECRET}:1", f"http://127.0.0.1:1/a/wl_{SECRET[3:]}"),
    ],
)
def test_an_address_that_holds_more_than_a_place_is_refused_without_it(tmp_path: Path, url: str) -> None:
    done = run("host", "ls", cwd=tmp_path, WINDROW_URL=url, WINDROW_TOKEN="wt_x")
    assert done.returncode == 2 and "address" in done.stderr
    assert "s3cr3t" not in done.stdout + done.stderr and "Traceback" not in done.stderr


@pytest.mark.row("K5")
@pytest.mark.parametrize(
    "link",
    ["https://m.example/#sign-in=bad", "https://[m/#sign-in=bad", f"http://m.example/#sign-in=wl_{SECRET}.{'0' * 32}"],
)
def test_a_sign_in_link_that_is_none_is_a_wrong_command_line(tmp_path: Path, link: str) -> None:
    done = run("login", link, cwd=tmp_path)
    assert done.returncode == 2 and "link" in done.stderr and SECRET not in done.stderr


@pytest.mark.row("K5")
@pytest.mark.parametrize(("token", "code"), [(b"no token\n", 4), (b"", 4), (b"\xff\xfe", 2), (None, 2)])
def test_a_file_that_holds_no_token_signs_nobody_in(tmp_path: Path, token: bytes | None, code: int) -> None:
    if token is not None:
        (tmp_path / "token").write_bytes(token)
    done = run("login", "http://127.0.0.1:1", "--token-file", "token", cwd=tmp_path)
    assert done.returncode == code and "token" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.row("F28")
@pytest.mark.parametrize("own", [SECRET, None])
@pytest.mark.parametrize("named", ["url", "local_url"])
def test_a_folder_names_no_master_on_another_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: str | None, named: str
) -> None:
    """Its files may be somebody's: what `tar x` unpacked is one's own, with the mode that it was packed with."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("WINDROW_URL", raising=False)
    monkeypatch.delenv("WINDROW_TOKEN", raising=False)
    if own is not None:
        monkeypatch.setenv("WINDROW_TOKEN", own)
    theirs = tmp_path / "project" / ".windrow" / "cli.json"
    theirs.parent.mkdir(parents=True)
    there = ("https://theirs.example", "https://localhost.theirs.example", "https://192.0.2.7", "https://[2001:db8::1]")
    for url, is_taken in {**dict.fromkeys(there, False), "http://127.0.0.1:1": True, "https://[::1]:1": True}.items():
        theirs.write_text(json.dumps({named: url, "token": "wt_theirs", "ca_pem": "/ca.pem"}))
        theirs.chmod(0o600)
        if is_taken:
            assert find(start=theirs.parents[1]).token == (own or "wt_theirs")
            continue
        with pytest.raises(WindrowClientError, match="Nothing was sent") as refused:
            find(start=theirs.parents[1])
        assert SECRET not in str(refused.value)
    assert find(url="https://mine.example", token=SECRET, start=theirs.parents[1]).token == SECRET
    theirs.unlink()
    save(Config("https://mine.example", "wt_mine"))
    assert find(start=theirs.parents[1]).token == (own or "wt_mine")


@pytest.mark.row("F22")
@pytest.mark.parametrize("kind", ["wt_", "ws_", "wl_", "wj_"])
def test_a_markets_own_secret_on_a_command_line_is_said_and_not_repeated(kind: str) -> None:
    secret = kind + SECRET[3:]
    for argv in (["x", secret], ["curl", "-H", f"Authorization: Bearer {secret}"], ["login", f"https://m/#s={secret}"]):
        lines = found(argv, {})
        assert len(lines) == 1 and "looks like a secret" in lines[0] and "s3cr3t" not in lines[0], argv
    assert not found([f"{kind}connection_timeout_seconds"], {})


@pytest.mark.row("K5")
def test_no_word_of_a_library_about_what_was_sent_reaches_a_message() -> None:
    import httpx2

    def refuse(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.LocalProtocolError(f"Illegal header value {request.headers['Authorization']!r}")

    with (
        Client(Config("http://127.0.0.1:1", SECRET), transport=httpx2.MockTransport(refuse)) as api,
        pytest.raises(MasterUnreachable) as told,
    ):
        api.get("/me")
    assert "s3cr3t" not in str(told.value)
    assert SECRET not in repr(Config("http://127.0.0.1:1", SECRET))


@pytest.mark.row("F28")
@pytest.mark.parametrize(
    "url", ["http://10.0.0.5:8000", "http://market.example", "HTTP://Market.Example", "http://[fd00::1]"]
)
def test_a_token_does_not_go_in_clear_to_another_machine(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = run("login", url, cwd=tmp_path, given=SECRET + "\n")
    assert done.returncode == 2 and "--insecure-http" in done.stderr and "plain HTTP" in done.stderr
    for words in ((), ("--url", url)):
        own = {"WINDROW_TOKEN": SECRET} | ({} if words else {"WINDROW_URL": url})
        done = run(*words, "host", "ls", cwd=tmp_path, **own)
        assert done.returncode == 2 and "plain HTTP" in done.stderr, (words, done.stderr)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("WINDROW_URL", "WINDROW_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    save(Config(url, SECRET))
    with pytest.raises(WindrowClientError, match="plain HTTP"):
        find(start=tmp_path)
    save(Config(url, SECRET, allows_plain_http=True))
    assert find(start=tmp_path).token == SECRET
    monkeypatch.setenv("WINDROW_URL", "http://other.example")  # what was allowed for one Master is not for another
    with pytest.raises(WindrowClientError, match="plain HTTP"):
        find(start=tmp_path)
    monkeypatch.setenv("WINDROW_INSECURE_HTTP", "1")
    assert find(start=tmp_path).url == "http://other.example"


@pytest.mark.row("F28")
def test_this_machine_and_https_need_no_leave() -> None:
    for url in ("http://127.0.0.1:1", "http://127.8.8.8", "http://localhost:1", "http://[::1]:1", "https://m.example"):
        assert refuse_plain_http(Config(url, SECRET)).url == url


@pytest.mark.row("F28")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another")
@pytest.mark.parametrize("whose", ["file", "folder", "link", "link to a folder", "open folder"])
def test_what_another_user_can_have_put_there_is_not_believed(
    tmp_path: Path, whose: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("WINDROW_URL", "WINDROW_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    project = tmp_path / "pl" / "x"
    project.mkdir(parents=True)
    folder = tmp_path / "pl" / ".windrow"
    real = tmp_path / "own"
    real.mkdir(mode=0o700)
    (real / "cli.json").write_text(json.dumps({"url": "https://127.0.0.1:1", "token": SECRET}))
    (real / "cli.json").chmod(0o600)
    if whose == "link to a folder":
        folder.symlink_to(real)
        os.chown(folder, NOBODY, NOBODY, follow_symlinks=False)
    else:
        folder.mkdir(mode=0o700)
        if whose == "link":
            (folder / "cli.json").symlink_to(real / "cli.json")
            os.chown(folder / "cli.json", NOBODY, NOBODY, follow_symlinks=False)
        else:
            (real / "cli.json").rename(folder / "cli.json")
    assert whose in ("link", "link to a folder") or find(start=project).url == "https://127.0.0.1:1"
    if whose == "file":
        os.chown(folder / "cli.json", NOBODY, NOBODY)
    elif whose == "folder":
        os.chown(folder, NOBODY, NOBODY)
    elif whose == "open folder":
        folder.chmod(0o777)
    with pytest.raises(WindrowClientError, match=r"belongs to user|Everybody can write") as refused:
        find(start=project)
    assert "s3cr3t" not in str(refused.value)
    done = run("host", "ls", cwd=project)
    assert done.returncode == 1 and "Traceback" not in done.stderr


@pytest.mark.row("F28")
def test_what_others_can_read_is_not_believed_and_nothing_is_no_master(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("WINDROW_URL", "WINDROW_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    with pytest.raises(NoMaster):
        find(start=tmp_path)
    (tmp_path / ".windrow").mkdir(mode=0o700)
    place = tmp_path / ".windrow" / "cli.json"
    place.write_text(json.dumps({"url": "https://evil.example", "token": SECRET}))
    for mode in (0o644, 0o640, 0o620, 0o602):
        place.chmod(mode)
        with pytest.raises(WindrowClientError, match="chmod 600"):
            find(start=tmp_path)
