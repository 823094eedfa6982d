"""A registry of one image, just able enough for a container daemon to pull it, to be denied it, or to choke on it."""

import base64
import gzip
import hashlib
import http.server
import io
import json
import secrets
import tarfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.support.namespaces import Namespace

MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
CONFIG = "application/vnd.docker.container.image.v1+json"
LAYER = "application/vnd.docker.image.rootfs.diff.tar.gzip"
STOP_S = 10
STALLED_S = 60
"""Longer than any test waits; nobody waits for it in vain."""


@dataclass(slots=True)
class TinyRegistry:
    """address: as an image's name begins. is_denying: it answers every question for the image with a refusal. login:
    name and password that it asks for; by_token: for which it gives a token first, as large registries do. said: what
    it was shown, in turn. goes_on: while it is not set, what was asked for of an image does not come."""

    address: str
    is_denying: bool = False
    login: tuple[str, str] | None = None
    by_token: bool = False
    said: list[str] = field(default_factory=list)
    tokens: set[str] = field(default_factory=set)
    blobs: dict[str, bytes] = field(default_factory=dict)
    manifest: bytes = b""
    manifests: dict[str, bytes] = field(default_factory=dict)
    goes_on: threading.Event = field(default_factory=threading.Event)
    waiting: int = 0

    def hold(self, size_bytes: int, program: bytes = b"", names: Sequence[str] = ()) -> None:
        """Hold an image of one file of zeros of this size; it is small on the line. program: /bin/sleep there; names:
        other names of it in /bin."""
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as tar:
            if program:
                member = tarfile.TarInfo("bin/sleep")
                member.size, member.mode = len(program), 0o755
                tar.addfile(member, io.BytesIO(program))
            for name in names:
                member = tarfile.TarInfo(f"bin/{name}")
                member.type, member.linkname = tarfile.SYMTYPE, "sleep"
                tar.addfile(member)
            member = tarfile.TarInfo("zeros")
            member.size = size_bytes
            tar.addfile(member, io.BytesIO(bytes(size_bytes)))
        plain = out.getvalue()
        layer = gzip.compress(plain, 1)
        config = {"architecture": "amd64", "os": "linux", "config": {"Cmd": ["true"]}}
        config["rootfs"] = {"type": "layers", "diff_ids": [_digest(plain)]}
        kept = json.dumps(config).encode()
        self.blobs |= {_digest(one): one for one in (kept, layer)}
        record = {"schemaVersion": 2, "mediaType": MANIFEST, "config": _about(CONFIG, kept)}
        self.manifest = json.dumps(record | {"layers": [_about(LAYER, layer)]}).encode()
        self.manifests[self.digest] = self.manifest

    @property
    def digest(self) -> str:
        """Of the image that every tag is now; those of before are found by theirs."""
        return _digest(self.manifest)

    def challenge(self, path: str, shown: str) -> str | None:
        """How to ask, for who may not ask so; None: they may."""
        if self.login is None:
            return None
        self.said.append(shown)
        basic = "Basic " + base64.b64encode(":".join(self.login).encode()).decode()
        if not self.by_token or path.startswith("/token"):
            return None if shown == basic else 'Basic realm="tiny"'
        if shown.removeprefix("Bearer ") in self.tokens:
            return None
        return f'Bearer realm="http://{self.address}/token",service="tiny",scope="repository:any:pull"'

    def answer(self, path: str) -> tuple[int, str, bytes]:
        """Status, type and body."""
        if path.startswith("/token"):
            self.tokens.add(token := secrets.token_hex(8))
            return 200, "application/json", json.dumps({"token": token}).encode()
        if path == "/v2/":
            return 200, "application/json", b"{}"
        if self.is_denying:
            said = {"errors": [{"code": "DENIED", "message": "requested access to the resource is denied"}]}
            return 403, "application/json", json.dumps(said).encode()
        if "/manifests/" in path:
            wanted = path.rpartition("/")[2]
            found = self.manifests.get(wanted) if wanted.startswith("sha256:") else self.manifest
            return (404, "text/plain", b"") if found is None else (200, MANIFEST, found)
        self.waiting += 1
        self.goes_on.wait(STALLED_S)
        self.waiting -= 1
        blob = self.blobs.get(path.rpartition("/")[2])
        return (404, "text/plain", b"") if blob is None else (200, "application/octet-stream", blob)


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def _about(kind: str, data: bytes) -> dict[str, object]:
    return {"mediaType": kind, "size": len(data), "digest": _digest(data)}


@contextmanager
def tiny_registry(network: Namespace) -> Iterator[TinyRegistry]:
    """One that listens on the loopback of this network, which container daemons ask without TLS."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            challenge = held.challenge(self.path, self.headers.get("Authorization") or "")
            status, kind, body = (401, "text/plain", b"") if challenge else held.answer(self.path)
            self.send_response(status)
            if challenge:
                self.send_header("WWW-Authenticate", challenge)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Docker-Content-Digest", _digest(body))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_HEAD = do_GET  # noqa: N815 - the name that the library calls

        def log_message(self, *words: object) -> None:
            """Nobody reads it."""

    with network.entered():
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    held = TinyRegistry(f"127.0.0.1:{server.server_address[1]}")
    held.goes_on.set()
    serving = threading.Thread(target=server.serve_forever, name="tiny-registry")
    serving.start()
    try:
        yield held
    finally:
        held.goes_on.set()
        server.shutdown()
        server.server_close()
        serving.join(STOP_S)
