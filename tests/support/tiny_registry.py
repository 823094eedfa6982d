"""A registry of one image, just able enough for a container daemon to pull it, to be denied it, or to choke on it."""

import gzip
import hashlib
import http.server
import io
import json
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.support.namespaces import Namespace

MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
CONFIG = "application/vnd.docker.container.image.v1+json"
LAYER = "application/vnd.docker.image.rootfs.diff.tar.gzip"
STOP_S = 10


@dataclass(slots=True)
class TinyRegistry:
    """address: as an image's name begins. is_denying: it answers every question for the image with a refusal."""

    address: str
    is_denying: bool = False
    blobs: dict[str, bytes] = field(default_factory=dict)
    manifest: bytes = b""

    def hold(self, size_bytes: int) -> None:
        """Hold an image of one file of zeros of this size; it is small on the line."""
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as tar:
            member = tarfile.TarInfo("zeros")
            member.size = size_bytes
            tar.addfile(member, io.BytesIO(bytes(size_bytes)))
        plain = out.getvalue()
        layer = gzip.compress(plain, 1)
        config = {"architecture": "amd64", "os": "linux", "config": {"Cmd": ["true"]}}
        config["rootfs"] = {"type": "layers", "diff_ids": [_digest(plain)]}
        kept = json.dumps(config).encode()
        self.blobs = {_digest(one): one for one in (kept, layer)}
        record = {"schemaVersion": 2, "mediaType": MANIFEST, "config": _about(CONFIG, kept)}
        self.manifest = json.dumps(record | {"layers": [_about(LAYER, layer)]}).encode()

    def answer(self, path: str) -> tuple[int, str, bytes]:
        """Status, type and body."""
        if path == "/v2/":
            return 200, "application/json", b"{}"
        if self.is_denying:
            said = {"errors": [{"code": "DENIED", "message": "requested access to the resource is denied"}]}
            return 403, "application/json", json.dumps(said).encode()
        if "/manifests/" in path:
            return 200, MANIFEST, self.manifest
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
            status, kind, body = held.answer(self.path)
            self.send_response(status)
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
    serving = threading.Thread(target=server.serve_forever, name="tiny-registry")
    serving.start()
    try:
        yield held
    finally:
        server.shutdown()
        server.server_close()
        serving.join(STOP_S)
