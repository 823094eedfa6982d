"""A pretend Master: HTTPS with a key to pin, the shipped installer, and a release whose agent is a script of a page."""

import base64
import json
import ssl
import subprocess
import sysconfig
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.support.pki import issue, make_ca
from windrow_master.onboarding.join_line import filled
from windrow_master.onboarding.model import Artifact, Manifest, by_name, record_of
from windrow_master.onboarding.service import HANDED_OUT, carried
from windrow_master.onboarding.wheel import Declared, pack
from windrow_proto.keys import SigningKey, public_key_sha256
from windrow_proto.manifest import signed

RUN_S = 180
AGENT = """
import json, pathlib, signal, sys, time

def main():
    verb, arguments = sys.argv[1], sys.argv[2:]
    if verb == "--help":
        return
    state = pathlib.Path(arguments[arguments.index("--data-dir") + 1])
    identity = state / "identity" / "identity.json"
    if verb == "join":
        token = pathlib.Path(arguments[arguments.index("--token-file") + 1]).read_text().strip()
        if token != "wj_good":
            sys.exit("The join token was used before. Ask for a new one.")
        identity.parent.mkdir(mode=0o700)
        places = [value for flag, value in zip(arguments, arguments[1:]) if flag == "--access"]
        identity.write_text(json.dumps({"master_url": arguments[0], "access": places}))
    elif verb == "run":
        runs = state / "runs"
        runs.write_text(runs.read_text() + "x" if runs.exists() else "x")
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        while True:
            time.sleep(60)
    elif verb == "doctor":
        print("doctor: RELEASE")
    elif verb == "end":
        print("ended")
"""
CHECK = """
import pathlib, sys
sys.exit("not signed by our Master" if (pathlib.Path(sys.argv[2]) / "refuse").exists() else 0)
"""


def agent_wheel(release: str) -> tuple[str, bytes]:
    """The pretend agent; its doctor says the release."""
    declared = Declared(
        name="windrow-agent",
        version="0.1.0",
        summary="A pretend agent.",
        requires_python=">=3.11",
        licence="Apache-2.0",
        dependencies=(),
        scripts={"windrow-agent": "windrow_agent.app.main:main"},
    )
    files = {
        "windrow_agent/__init__.py": b"",
        "windrow_agent/app/main.py": AGENT.replace("RELEASE", release).encode(),
        "windrow_agent/release.py": CHECK.encode(),
    }
    return pack(declared, files)


SIGNING = SigningKey.generate()
"""The pretend Master's."""


def release_of(name: str, python: str | None = None, signing: SigningKey = SIGNING) -> dict[str, bytes]:
    """Path -> answer of a whole release, manifest included."""
    wheel_name, wheel = agent_wheel(name)
    contents = {wheel_name: wheel, **{script: carried(script).read_bytes() for script in HANDED_OUT}}
    files = by_name([Artifact.of(file, HANDED_OUT.get(file, "wheel"), content) for file, content in contents.items()])
    manifest = Manifest(python or sysconfig.get_python_version(), sysconfig.get_platform(), "0" * 64, files)
    answers = {f"/dl/{file}": content for file, content in contents.items()}
    return {**answers, "/dl/manifest.json": signed(record_of(manifest), signing)}


@dataclass
class Pretend:
    """The files that are served; change `answers` as you like. asked: the paths that were asked for."""

    url: str
    pin: str
    answers: dict[str, bytes]
    problems: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    @property
    def wheel_path(self) -> str:
        """The path of the agent's wheel."""
        return next(path for path in self.answers if path.endswith(".whl"))


@contextmanager
def pretend_master(folder: Path) -> Iterator[Pretend]:
    """Serve release `one` on a free port of loopback."""
    identity = issue(make_ca(), "master", "master")
    certificate, key = folder / "server.pem", folder / "server.key"
    certificate.write_bytes(identity.certificate_pem)
    key.write_bytes(identity.key_pem)
    pin = "sha256//" + base64.b64encode(public_key_sha256(identity.certificate_pem)).decode()
    master = Pretend("", pin, release_of("one"))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            master.asked.append(self.path)
            problems = master.problems.get(self.path, [])
            status, body = 200, master.answers.get(self.path)
            if problems:
                status, detail = problems.pop(0)
                body = json.dumps({"detail": detail}).encode()
            elif body is None:
                status, body = 404, b'{"detail": "There is no such file."}'
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            return

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: object, client_address: object) -> None:
            return  # a client that does not like our key hangs up

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with Server(("127.0.0.1", 0), Handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        master.url = f"https://127.0.0.1:{server.server_address[1]}"
        for name in ("install.sh", "install-cli.sh"):
            script = carried(name).read_text(encoding="utf-8")
            master.answers[f"/{name}"] = filled(script, master.url, pin, SIGNING.public).encode()
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        serving.start()
        try:
            yield master
        finally:
            server.shutdown()
            serving.join()


@dataclass
class Machine:
    """A machine to install on: folders of a test, and this user."""

    top: Path
    master: Pretend

    @property
    def prefix(self) -> Path:
        """The folder of programs."""
        return self.top / "opt" / "agent"

    @property
    def state(self) -> Path:
        """The folder of keys and state."""
        return self.top / "var" / "agent"

    def run(self, *arguments: str, token: str = "wj_good", pin: str = "") -> "subprocess.CompletedProcess[str]":
        """Run the installer from a pipe, as the join line does."""
        place = ["--prefix", str(self.prefix), "--state", str(self.state), "--no-user"]
        where = [] if "uninstall" in arguments else ["--url", self.master.url, "--pin", pin or self.master.pin]
        return pipe(self.master.answers["/install.sh"], [*arguments, *where, *place], {"WINDROW_JOIN_TOKEN": token})

    def made(self) -> list[str]:
        """Everything that exists below the folders of this machine."""
        return sorted(str(path.relative_to(self.top)) for path in self.top.rglob("*"))


def pipe(script: bytes, arguments: list[str], more: Mapping[str, str]) -> "subprocess.CompletedProcess[str]":
    """`... | sh -s -- ARGUMENTS` without a terminal."""
    environment = {"PATH": ":".join((*more.get("PATH", "").split(), "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"))}
    done = subprocess.run(
        ["sh", "-s", "--", *arguments],
        input=script,
        env={**environment, **{name: value for name, value in more.items() if name != "PATH"}},
        capture_output=True,
        timeout=RUN_S,
        start_new_session=True,
        check=False,
    )
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())
