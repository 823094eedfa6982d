"""Standard streams and exit codes of the command, run as a program of its own: what is where, and that it is words."""

import contextlib
import json
import os
import pty
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.support import warm_windrow
from tests.waiting import poll
from windrow.cli import exits
from windrow.errors import ApiProblem, InvalidInput, MasterUnreachable, NameTaken, NoMaster, NotFound, WaitTimedOut

ROOT = Path(__file__).parents[3]
TOKEN = "wt_test"
CLUSTER = "cluster_019ac3f5e0b17001c1a2b3c4d5e6f708"
RECEIPT = {
    "id": "receipt_019ac3f5e0b17001d1a2b3c4d5e6f708", "cluster_id": CLUSTER, "cluster_name": "sh",
    "amount": "0.01", "currency": "EUR", "price_per_hour": "2.00", "running_seconds": "3.0",
    "ended_at": "2030-01-01T00:00:00Z", "test_money": True,
}  # fmt: skip
ENDED: dict[str, Any] = {
    "id": CLUSTER, "name": "sh", "kind": "box", "phase": "Finished", "version": 1, "account_id": "account_1",
    "workloads": [{"id": "w", "rank": 0, "phase": "exited", "exit_code": 0, "host_id": "h", "host_name": "rig",
                   "runtime": "docker"}],
}  # fmt: skip
WHOLE_ID = re.compile(rb"[a-z]+_[0-9a-f]{32}")

COLOURED = b"\x1b[31mred\x1b[2J\x1b]0;title\x07"
"""What the second member wrote."""
EXECUTED: list[bytes] = []
MAY_END = threading.Event()
"""What the Master was asked to run inside the cluster, and whether it may end."""


class Master(BaseHTTPRequestHandler):
    """A Master that has one cluster, whose program wrote `out` without a newline, and nothing else."""

    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None: ...

    def do_GET(self) -> None:
        path = self.path.partition("?")[0].removeprefix("/api/v1")
        found: dict[str, Any] = {
            "/me": {"account": {"id": "account_1", "name": "anna"}, "roles": ["renter"]},
            f"/clusters/{CLUSTER}": ENDED,
            "/receipts": {"items": [RECEIPT]},
            "/clusters": {"items": [ENDED]},
            f"/receipts/{RECEIPT['id']}": RECEIPT,
        }
        if path == f"/clusters/{CLUSTER}/logs":
            log = COLOURED if "rank=1" in self.path else b"out"
            self._answer(200, b"" if f"offset={len(log)}" in self.path else log, "text/plain")
        elif path in found:
            self._answer(200, json.dumps(found[path]).encode())
        elif path.count("/") == 1:
            self._answer(200, json.dumps({"items": []}).encode())
        else:
            self._answer(404, json.dumps({"code": "not_found", "detail": "There is none."}).encode())

    def do_POST(self) -> None:
        asked = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if "/exec" in self.path:
            EXECUTED.append(asked)
            MAY_END.wait(60)
            self._answer(200, b'{"exit_code": 0}\n')
            return
        answers = {
            "/clusters/plan": {"fits": True, "placement": [], "hold": "1", "balance": "9", "price_per_hour": "2.00"},
            "/clusters": {"cluster": ENDED},
        }
        found = answers.get(self.path.removeprefix("/api/v1"))
        self._answer(200 if found else 404, json.dumps(found or {"code": "not_found", "detail": "None."}).encode())

    def do_DELETE(self) -> None:
        self._answer(200, json.dumps(ENDED).encode())

    def _answer(self, status: int, body: bytes, kind: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Master)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def windrow(url: str, tmp_path: Path) -> Any:
    def run(*words: str | bytes, shell: str = "", here: Path = tmp_path, **environment: str) -> Any:
        """shell: redirections, such as `>&-`."""
        given = {
            "WINDROW_URL": url,
            "WINDROW_TOKEN": TOKEN,
            "HOME": str(tmp_path / "home"),
            "PYTHONPATH": _path(),
        } | environment
        command: list[str | bytes] = [warm_windrow.command(), *words]
        if shell:
            command = ["sh", "-c", f'exec "$@" {shell}', "sh", sys.executable, "-m", "windrow", *words]
        return subprocess.run(command, cwd=here, env=os.environ | given, capture_output=True, timeout=60, check=False)

    return run


def _path() -> str:
    return os.pathsep.join(path for path in sys.path if path)


# --- exit codes -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (NotFound("x"), 3),
        (ApiProblem(404, {}), 3),
        (InvalidInput("x"), 2),
        (NameTaken("x"), 5),
        (ApiProblem(422, {}), 2),
        (NoMaster(), 2),
        (ApiProblem(401, {}), 4),
        (ApiProblem(403, {}), 4),
        (ApiProblem(409, {}), 5),
        (ApiProblem(402, {}), 5),
        (MasterUnreachable("x"), 6),
        (ApiProblem(503, {}), 6),
        (ApiProblem(500, {}), 1),
        (WaitTimedOut("x"), 124),
    ],
)
def test_each_error_has_a_code_of_the_table(error: Any, code: int) -> None:
    assert exits.exit_code(error) == code
    assert code in exits.MEANINGS


def test_the_documents_and_the_help_print_the_table_that_the_code_uses(windrow: Any) -> None:
    written = " ".join((ROOT / "sdk" / "README.md").read_text().split())
    shown = " ".join(windrow("--help").stdout.decode().split())

    assert exits.table() in written
    for code, meaning in exits.MEANINGS.items():
        assert f"{code} {meaning.split(',')[0].split(';')[0].split('(')[0].strip()}" in shown


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("cluster", "show", "nosuch"), 3),
        (("cluster", "delete", "--yes", "nosuch"), 3),
        (("cluster", "logs", "nosuch"), 3),
        (("cluster", "exec", "nosuch", "true"), 3),
        (("cluster", "stop", "--yes", "nosuch"), 3),
        (("cluster", "forward", "nosuch", "80"), 3),
        (("job", "show", "nosuch"), 3),
        (("job", "logs", "nosuch"), 3),
        (("job", "cancel", "nosuch"), 3),
        (("template", "show", "nosuch"), 3),
        (("volume", "show", "nosuch"), 3),
        (("receipt", "show", "nosuch"), 3),
        (("run", "--memory", "5", "--", "true"), 2),
        (("run", "--gpu", "", "--", "true"), 2),
        (("run", "--memory", "", "--", "true"), 2),
        (("run", "--host", "", "--", "true"), 2),
        (("run", "--name", "", "--", "true"), 2),
        (("run", "--tier", "", "--", "true"), 2),
        (("run", "--env", "NO_SUCH_VARIABLE_HERE", "--", "true"), 2),
        (("job", "submit", "--array", "0", "--", "true"), 2),
        (("job", "submit", "--deadline", "2030-01-31T18:00:00", "--", "true"), 2),
        (("job", "submit", "--deadline", "2030-02-31T18:00:00Z", "--", "true"), 2),
        (("cluster", "forward", "x", "ssh"), 2),
        (("run", "--no-such-option"), 2),
        (("nosuch",), 2),
    ],
)
@pytest.mark.case("B-F7", "B-F9", "B-F11", "B-F13", "M-30")
def test_a_script_learns_from_the_exit_code_what_was_wrong(windrow: Any, words: tuple[str, ...], code: int) -> None:
    done = windrow(*words)

    assert (done.returncode, done.stdout) == (code, b""), done.stderr
    assert done.stderr.startswith(b"Error: ")
    _are_words(done.stderr)


def _are_words(said: bytes) -> None:
    """No traceback, no None, and one line for each thing that is said."""
    text = said.decode()
    assert "Traceback" not in text and not re.search(r"\bNone\b", text), text
    assert not re.search(r"[─│╭]", text), text


# --- what cannot be sent, read or written -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ("run", "--no-files", "--", "echo", b"\xe9"),
        ("run", "--no-files", "--env", b"L=caf\xe9", "--", "true"),
        ("cluster", "show", b"caf\xe9"),
        ("artefact", "rm", "--yes", b"lat\xe9.txt", "--of", "job_1"),
        ("artefact", "rm", "--yes", "new\nline", "--of", "job_1"),
    ],
)
@pytest.mark.case("B-D4")
@pytest.mark.case("B-D4")
def test_a_word_that_is_no_text_is_refused_in_words(windrow: Any, words: tuple[str | bytes, ...]) -> None:
    done = windrow(*words)

    assert done.returncode in (2, 3), done.stderr
    assert b"UTF-8" in done.stderr or b"no cluster" in done.stderr
    _are_words(done.stderr)


def test_a_folder_that_is_gone_is_said_to_be(windrow: Any, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    here = "cd gone; rmdir ../gone; exec"
    done = subprocess.run(
        ["sh", "-c", f'{here} "$@"', "sh", sys.executable, "-m", "windrow", "host", "ls"],
        cwd=tmp_path, env=os.environ | {"PYTHONPATH": _path()}, capture_output=True, timeout=60, check=False,
    )  # fmt: skip

    assert (done.returncode, done.stderr) == (
        1,
        b"Error: The current folder has been removed. Change to another one.\n",
    )


@pytest.mark.case("B-C11")
@pytest.mark.parametrize("words", [("host", "ls"), ("host", "ls", "--json"), ("version",)])
def test_standard_output_that_is_closed_or_full_is_no_traceback(windrow: Any, words: tuple[str, ...]) -> None:
    closed, full = windrow(*words, shell=">&-"), windrow(*words, shell=">/dev/full")

    assert closed.returncode == 0
    _are_words(closed.stderr + full.stderr)
    if words != ("host", "ls"):  # which has nothing to write
        assert full.returncode == 1
        assert full.stderr == b"Error: Standard output cannot be written: No space left on device.\n"


def test_standard_error_that_is_closed_stops_nothing(windrow: Any) -> None:
    done = windrow("host", "ls", "--json", shell="2>&-")

    assert (done.returncode, json.loads(done.stdout)) == (0, [])


def test_a_fault_of_ours_is_one_line_and_its_traceback_is_there_on_request(tmp_path: Path) -> None:
    script = (
        "import sys\nfrom windrow.cli import hosts, main\n"
        "def fail(*a, **k): raise ValueError('odd wt_' + 'Abcdefgh_1234567-' * 3)\n"
        "hosts.client = fail\nsys.argv = ['windrow', 'host', 'ls']\nmain.main()\n"
    )
    asked = [sys.executable, "-c", script]
    plain = subprocess.run(asked, capture_output=True, text=True, timeout=60, check=False)
    whole = subprocess.run(
        asked, capture_output=True, text=True, timeout=60, check=False, env=os.environ | {"WINDROW_TRACEBACK": "1"}
    )

    assert plain.returncode == 1
    assert plain.stderr.count("\n") == 1 and "ValueError at <string>:3: odd ***" in plain.stderr
    assert "Traceback" in whole.stderr


# --- what is where ----------------------------------------------------------------------------------------------------


def test_a_run_has_the_programs_output_on_standard_output_and_all_else_on_standard_error(windrow: Any) -> None:
    done = windrow("run", "--no-files", "--", "sh", "-c", "printf out")

    assert (done.returncode, done.stdout) == (0, b"out"), done.stderr
    assert b"cost 0.01 EUR (test money): 3 s at 2.00 per hour" in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("run", "--no-files", "--", "true"),
        ("run", "--no-files", "--detach", "--", "true"),
        ("cluster", "show", "c1a2b3c4"),
        ("cluster", "create", "--", "true"),
        ("receipt", "show", "d1a2b3c4"),
    ],
    ids=" ".join,
)
def test_a_terminal_has_ids_short_and_a_pipe_has_them_whole(
    windrow: Any, url: str, tmp_path: Path, words: tuple[str, ...]
) -> None:
    piped = windrow(*words)
    at_terminal = _at_terminal(url, tmp_path, *words)

    assert WHOLE_ID.search(piped.stdout + piped.stderr), piped
    assert re.search(rb"\b[0-9a-f]{8}\b", at_terminal) and not WHOLE_ID.search(at_terminal), at_terminal


def _at_terminal(url: str, here: Path, *words: str) -> bytes:
    """What a terminal shows of this command."""
    ours, theirs = pty.openpty()
    try:
        with subprocess.Popen(
            [sys.executable, "-m", "windrow", *words], stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, cwd=here,
            env=os.environ | {"WINDROW_URL": url, "WINDROW_TOKEN": TOKEN, "PYTHONPATH": _path(), "COLUMNS": "200"},
        ):  # fmt: skip
            os.close(theirs)
            said = b""
            with contextlib.suppress(OSError):  # the other end is closed
                while part := os.read(ours, 4096):
                    said += part
        return said
    finally:
        os.close(ours)


def test_a_log_keeps_its_colours_alone_on_a_terminal_and_all_of_it_elsewhere(
    url: str, windrow: Any, tmp_path: Path
) -> None:
    words = ("logs", "sh", "--rank", "1")
    assert windrow(*words).stdout == COLOURED
    assert _at_terminal(url, tmp_path, *words) == b"\x1b[31mred\x1b[0m"
    assert _at_terminal(url, tmp_path, *words, "--raw") == COLOURED


@pytest.mark.case("B-D15")
def test_the_document_of_a_run_is_alone_on_standard_output(windrow: Any) -> None:
    done = windrow("run", "--json", "--no-files", "--", "sh", "-c", "printf out")

    assert json.loads(done.stdout)["receipt"] == RECEIPT
    assert b"out" in done.stderr


@pytest.mark.parametrize(("shell", "is_told"), [("</dev/null", False), ("<data", True), ("<empty", False)])
def test_input_that_no_program_gets_is_said_to_be_left(windrow: Any, tmp_path: Path, shell: str, is_told: bool) -> None:
    (tmp_path / "data").write_text("hello")
    (tmp_path / "empty").touch()

    done = windrow("run", "--no-files", "--", "cat", shell=shell)

    assert done.returncode == 0
    assert (b"Standard input is not sent to the program" in done.stderr) is is_told


@pytest.mark.case("B-D10")
def test_input_from_a_pipe_is_said_to_be_left(url: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "windrow", "run", "--no-files", "--", "cat"], input=b"hello", cwd=tmp_path,
        env=os.environ | {"WINDROW_URL": url, "WINDROW_TOKEN": TOKEN, "PYTHONPATH": _path()},
        capture_output=True, timeout=60, check=False,
    )  # fmt: skip

    assert b"Standard input is not sent to the program" in done.stderr


@pytest.mark.parametrize("shell", ["</dev/null", "<&-", "<data", "<empty"])
def test_a_command_inside_a_cluster_is_not_run_without_the_data_it_should_read(
    windrow: Any, tmp_path: Path, shell: str
) -> None:
    (tmp_path / "data").write_text("hello")
    (tmp_path / "empty").touch()
    EXECUTED.clear()
    MAY_END.set()

    done = windrow("cluster", "exec", CLUSTER, "--", "cat", shell=shell)

    is_refused = shell == "<data"
    assert (done.returncode, bool(EXECUTED)) == ((2, False) if is_refused else (0, True)), done.stderr
    assert (b"the command was not run. A machine with SSH takes it" in done.stderr) is is_refused


def test_a_command_inside_a_cluster_fails_where_data_came_while_it_ran(url: str, tmp_path: Path) -> None:
    EXECUTED.clear()
    MAY_END.clear()
    with subprocess.Popen(
        [sys.executable, "-m", "windrow", "cluster", "exec", CLUSTER, "--", "cat"], cwd=tmp_path,
        env=os.environ | {"WINDROW_URL": url, "WINDROW_TOKEN": TOKEN, "PYTHONPATH": _path()},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as running:  # fmt: skip
        assert running.stdin is not None and running.stderr is not None
        poll(lambda: EXECUTED, 30)
        running.stdin.write(b"late")
        running.stdin.flush()
        MAY_END.set()
        said = running.stderr.read()

    assert running.returncode == 1 and b"Standard input is not sent to the program" in said


@pytest.mark.case("B-D16")
def test_a_long_line_stays_one_line_where_no_terminal_shows_it(windrow: Any) -> None:
    name = "x" * 300

    done = windrow("cluster", "show", f"a {name} b", COLUMNS="40")

    assert done.stderr.decode().splitlines() == [
        f"Error: There is no cluster 'a {name} b'. List them: windrow cluster ls"
    ]


# --- the way to the Master --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["HTTP_PROXY", "https_proxy", "ALL_PROXY"])
@pytest.mark.case("B-F15")
def test_no_proxy_stands_before_this_machine(windrow: Any, name: str) -> None:
    done = windrow("host", "ls", "--json", **{name: "http://127.0.0.1:9", "no_proxy": "", "NO_PROXY": ""})

    assert (done.returncode, json.loads(done.stdout)) == (0, []), done.stderr


def test_a_proxy_before_another_machine_is_named_where_it_does_not_answer(windrow: Any) -> None:
    done = windrow(
        "host", "ls", WINDROW_URL="https://market.example", HTTPS_PROXY="http://127.0.0.1:9", NO_PROXY="", no_proxy=""
    )

    assert done.returncode == 6
    assert b"through the proxy of HTTPS_PROXY" in done.stderr
