"""The watch over secrets is awake: what is planted in each place is found; what is logged by mistake is taken out."""

import base64
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.canaries import Canaries, collect, leaks, open_to_others
from windrow_proto.keys import SigningKey, TlsKey, save_private
from windrow_proto.redact import HIDDEN, processor, redacted

TOKEN = "wt_" + "Abcdefgh_1234567-" * 3


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """The folder that a market leaves on the disk."""
    folder = tmp_path / "data"
    (folder / "identity").mkdir(parents=True, mode=0o700)
    (folder / "logs").mkdir(mode=0o700)
    folder.chmod(0o700)
    save_private(folder / "identity" / "tls.key", TlsKey.generate().pem)
    save_private(folder / "identity" / "sign.key", SigningKey.generate().raw)
    save_private(folder / "cli.json", json.dumps({"token": TOKEN}).encode())
    return folder


@pytest.mark.parametrize(
    "place",
    [
        *("logs/master.log", "../up.log", "logs/crash.txt", "core.123"),
        *("master.sqlite3", "master.sqlite3-wal", "history/history-0001.duckdb", "log/1/000001.seg", "agent/journal"),
    ],
)
@pytest.mark.parametrize("secret", ["cli.json", "identity/tls.key", "identity/sign.key"])
def test_a_secret_in_a_file_is_found(data_dir: Path, place: str, secret: str) -> None:
    canaries = collect(data_dir)
    assert leaks(canaries, [os.getpid()], data_dir) == []
    written = sorted(canaries.found[secret])[0]

    (data_dir / place).parent.mkdir(parents=True, exist_ok=True)
    (data_dir / place).write_bytes(b'{"event": "x", "said": "' + written + b'"}\n')

    assert [found.split(" stands in ")[0] for found in leaks(canaries, [], data_dir)] == [secret]


def test_a_raw_key_is_found_in_hexadecimal_and_base64_too(data_dir: Path) -> None:
    raw = (data_dir / "identity" / "sign.key").read_bytes()
    canaries = collect(data_dir)

    for form in (raw, raw.hex().encode(), base64.b64encode(raw)):
        assert canaries.in_bytes(b"log: " + form) == ["identity/sign.key"]


@pytest.mark.parametrize("how", ["argv", "environment"])
def test_a_secret_in_a_command_line_or_an_environment_is_found(data_dir: Path, how: str) -> None:
    extra = [TOKEN] if how == "argv" else []
    environment = {**os.environ, **({"TOKEN": TOKEN} if how == "environment" else {})}
    waiting = [sys.executable, "-c", "print(flush=True); input()", *extra]
    with subprocess.Popen(waiting, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        process.stdout.readline()

        found = leaks(collect(data_dir), [process.pid], data_dir)

        process.communicate(b"\n", timeout=60)
    assert len(found) == 1 and found[0].startswith("cli.json stands in /proc/")


def test_files_and_folders_that_others_can_read_are_found(data_dir: Path) -> None:
    assert open_to_others(data_dir) == []
    (data_dir / "identity" / "tls.key").chmod(0o640)
    (data_dir / "logs").chmod(0o755)

    assert open_to_others(data_dir) == ["identity/tls.key is 640", "logs is 755"]


def test_nothing_planted_is_found_in_nothing() -> None:
    assert Canaries().in_bytes(b"anything") == []


PEM = "-----BEGIN PRIVATE KEY-----\nMIGHAgEAMBMGByqGSM49\n-----END PRIVATE KEY-----"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("tail", "tail"),
        (f"refused {TOKEN} again", f"refused {HIDDEN} again"),
        (f"wj_{'a' * 43}.{'0' * 32}", HIDDEN),
        (f"ws_{'a' * 43}", HIDDEN),
        (f"key is {PEM}, see", f"key is {HIDDEN}, see"),
        (PEM[:40], HIDDEN),
        ("postgresql://windrow:hunter2@db/windrow", f"postgresql://{HIDDEN}@db/windrow"),
        ("Authorization: Bearer abcdefghijklmnop1234", f"Authorization: {HIDDEN}"),
        (7, 7),
        (None, None),
        (True, True),
        (
            {"password": "x", "Set-Cookie": "y", "token_id": "token_1"},
            {"password": HIDDEN, "Set-Cookie": HIDDEN, "token_id": "token_1"},
        ),
        ([TOKEN, {"deep": [TOKEN]}], [HIDDEN, {"deep": [HIDDEN]}]),
        (ValueError(TOKEN), HIDDEN),
        (TOKEN.encode(), HIDDEN),
    ],
    ids=str,
)
def test_secrets_are_taken_out_of_what_is_logged(value: Any, shown: Any) -> None:
    assert redacted(value) == shown


def test_what_nests_without_end_is_hidden_and_does_not_crash() -> None:
    endless: list[Any] = []
    endless.append(endless)

    assert HIDDEN in str(redacted(endless))


@pytest.mark.parametrize("module", ["windrow_proto.logs", "windrow_master.app.logs"])
def test_the_log_of_every_daemon_takes_secrets_out_also_of_tracebacks(module: str) -> None:
    set_up = "set_up('info')" if "master" in module else "configure_log()"
    script = (
        f"import structlog, {module} as m\nm.{set_up}\nlog = structlog.get_logger('windrow_master')\n"
        f"log.error('said', token='hidden by name', text='{TOKEN}')\n"
        f"try:\n    raise RuntimeError('{TOKEN}')\nexcept RuntimeError:\n    log.exception('failed')\n"
    )

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)

    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert [(line["event"], line.get("token"), line.get("text")) for line in lines] == [
        ("said", HIDDEN, HIDDEN),
        ("failed", None, None),
    ]
    assert "RuntimeError" in done.stderr and TOKEN not in done.stderr


def test_the_processor_keeps_what_is_no_secret() -> None:
    event = {"event": "agent_lost", "agent_id": "host_1", "silence_s": 3.5, "_record": object()}

    assert processor(None, "info", event) == event
