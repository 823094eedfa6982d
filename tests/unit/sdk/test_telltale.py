"""Secrets in the wrong place are reported, with the way out and without the secret."""

import os
import shlex
from pathlib import Path

import pytest

from windrow.cli import kept
from windrow.cli.telltale import OWNER, found
from windrow.errors import InvalidInput, WindrowClientError

HF = "hf_AbCdEfGhIjKlMnOpQrStUvWx"
PLACES = [
    (f"train --token={HF}", "--token"),
    (f"train --token {HF}", "--token"),
    (f"train --model {HF}", "--model"),
    ("train --hub-token=hunter2", "--hub-token"),
    ("train --api-key hunter2", "--api-key"),
    ("train --password hunter2", "--password"),
    ("mysql -u me -p hunter2", "-p"),
    (f"train {HF}", "Word 2"),
    ("aws AKIAIOSFODNN7EXAMPLE", "Word 2"),
    ("ask sk-proj-abcdefghijklmnopqrstuvwx", "Word 2"),
    ("git clone https://me:ghp_abcdefghijklmnopqrstuvwxyz0123456789@github.com/a/b", "Word 3"),
    ("psql postgres://me:hunter2@db/x", "Word 2"),
    ("curl -H 'Authorization: Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc' x", "Word 3"),
    (f"sh -c 'HF_TOKEN={HF} python train.py'", "Word 3"),
    ("sh -c 'train --password hunter2'", "Word 3"),
    ("env WANDB_API_KEY=0123456789abcdef train", "WANDB_API_KEY"),
]
NONE = [
    "python train.py --epochs 3 --lr=0.1",
    "mkdir -p out",
    "sh -c 'mkdir -p out/a && echo hi'",
    "docker run -p 8080:80 nginx",
    "serve -p 8080",
    "train --tokenizer gpt2 --max-tokens 100 --num-keys 5",
    "train --token-file /run/token --key model.pem",
    "train --password=$PASSWORD --token ${HF_TOKEN}",
    "sh -c 'train --token $HF_TOKEN'",
    "train --api-key '<your key>'",
    "curl https://example.org:8080/a?b=c@d",
    "train --keyword secret --sort-key name",
]


def words(text: str) -> list[str]:
    return shlex.split(text)


@pytest.mark.parametrize(("command", "place"), PLACES)
def test_a_secret_in_a_command_is_told_once_by_its_place(command: str, place: str) -> None:
    (line,) = found(words(command), {})
    assert place in line and "--env NAME" in line and OWNER in line
    assert HF not in line and "hunter2" not in line and "AKIA" not in line and "ghp_" not in line


@pytest.mark.parametrize("command", NONE)
def test_what_is_none_is_not_told(command: str) -> None:
    assert found(words(command), {"EPOCHS": "3", "PATH": "/usr/bin", "TOKENIZERS_PARALLELISM": "false"}) == ()


@pytest.mark.parametrize(
    "env", [{"HF_TOKEN": HF}, {"DB_PASSWORD": "hunter2"}, {"X": HF}, {"URL": "redis://a:hunter2@b"}]
)
def test_a_value_beside_its_name_is_told_with_the_way_from_the_environment(env: dict[str, str]) -> None:
    (line,) = found([], env)
    (name,) = env
    assert f"--env {name} " in line and OWNER in line and HF not in line and "hunter2" not in line


def test_a_name_that_is_a_secret_is_told_without_it() -> None:
    (line,) = found([], {HF: "1"})
    assert "name of a variable" in line and HF not in line


def test_a_name_alone_is_taken_from_here(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("HF_TOKEN", HF)
    assert kept.variables(["train"], ["HF_TOKEN", "A=b=c"], None) == {"HF_TOKEN": HF, "A": "b=c"}
    assert capsys.readouterr() == ("", "")
    with pytest.raises(WindrowClientError, match="has no variable NOT_HERE_AT_ALL"):
        kept.variables(["train"], ["NOT_HERE_AT_ALL"], None)
    assert kept.variables(["train", f"--token={HF}"], None, None) is None
    assert "--token looks like a secret" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("TOKEN hunter2secret", "--env TOKEN..."),
        ("TOKEN hunter2secret=x", "--env TOKEN..."),
        ("TOKEN:hunter2secret", "--env TOKEN..."),
        ("TOKEN\nhunter2secret", "--env TOKEN..."),
        (" hunter2secret", "--env:"),
        ("9hunter2secret=x", "--env:"),
        (f"={HF}", "--env has no name"),
        ("", "--env has no name"),
    ],
)
def test_what_is_no_variable_is_refused_without_what_may_be_a_secret(
    given: str, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(InvalidInput, match="write NAME=value") as refused:
        kept.variables(["train"], [given], None)
    assert str(refused.value).startswith(shown)
    assert "hunter2" not in str(refused.value) and HF not in str(refused.value)
    assert capsys.readouterr() == ("", "")


def test_a_file_of_variables_is_read_as_docker_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HF_TOKEN", HF)
    file = tmp_path / "some.env"
    file.write_bytes(b"\xef\xbb\xbfA='1 2' # 3\r\n\r\n  # no\nHF_TOKEN\nDB_PASSWORD=hunter2\nB=of the file")

    found = kept.variables(["train"], ["B=written"], [file])

    assert found == {"A": "'1 2' # 3", "HF_TOKEN": HF, "DB_PASSWORD": "hunter2", "B": "written"}
    assert capsys.readouterr() == ("", ""), "what stands in a file is in no list of processes"


@pytest.mark.parametrize(
    ("text", "said"),
    [(None, "No such file"), (b"caf\xe9=1", "not UTF-8"), (b"A=" + bytes(1 << 20), "larger than 1 MiB")],
)
def test_a_file_of_variables_that_cannot_be_taken_is_refused_with_the_reason(
    tmp_path: Path, text: bytes | None, said: str
) -> None:
    file = tmp_path / "some.env"
    if text is not None:
        file.write_bytes(text)
    with pytest.raises(WindrowClientError, match=said):
        kept.variables([], None, [file])


@pytest.mark.parametrize("line", ["root:x:0:0:root:/root:/bin/bash", "export A=hunter2", "hunter2", "=hunter2"])
def test_a_line_that_is_no_variable_is_named_by_file_and_number_and_never_shown(tmp_path: Path, line: str) -> None:
    file = tmp_path / "some.env"
    file.write_text(f"# a comment\nA=1\n{line}\n")
    with pytest.raises(WindrowClientError) as refused:
        kept.variables([], None, [file])
    said = str(refused.value)
    assert said.startswith(f"{file} line 3: NAME=VALUE is expected")
    assert "hunter2" not in said and "root:" not in said


def test_variables_may_come_through_a_pipe() -> None:
    read_end, write_end = os.pipe()
    try:
        os.write(write_end, b"A=1\n")
        os.close(write_end)
        assert kept.variables([], None, [Path(f"/dev/fd/{read_end}")]) == {"A": "1"}
    finally:
        os.close(read_end)


@pytest.mark.parametrize("path", ["/dev/zero", "/tmp"])
def test_a_file_of_variables_is_a_regular_one(path: str) -> None:
    with pytest.raises(WindrowClientError, match=f"{path} is no regular file"):
        kept.variables([], None, [Path(path)])
