"""nginx as a peer of `relay`: `grpc_pass` of the same streams with the same TLS on both sides, in its own folder."""

import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.pki import TestAuthority, issue
from windrow_proto.keys import SERVER_NAMES, TlsIdentity

START_S = 20.0
STOP_S = 10.0
CONFIG = """daemon off;
worker_processes 1;
pid nginx.pid;
error_log error.log;
events {{ worker_connections 4096; }}
http {{
  access_log off;
  client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fast; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
  client_max_body_size 0;
  client_body_timeout 1h;
  server {{
    listen 127.0.0.1:{port} ssl http2;
    ssl_certificate server.pem;
    ssl_certificate_key server.key;
    ssl_client_certificate ca.pem;
    ssl_verify_client on;
    location / {{
      grpc_pass grpcs://{onward};
      grpc_read_timeout 1h;
      grpc_send_timeout 1h;
      grpc_socket_keepalive on;
      grpc_ssl_certificate client.pem;
      grpc_ssl_certificate_key client.key;
      grpc_ssl_trusted_certificate ca.pem;
      grpc_ssl_verify on;
      grpc_ssl_name {name};
    }}
  }}
}}
"""


def configuration(port: int, onward: str) -> str:
    """Its file: TLS with a client's certificate on both sides, no limit on how long a stream may last."""
    return CONFIG.format(port=port, onward=onward, name=SERVER_NAMES["access"])


def _write(folder: Path, name: str, identity: TlsIdentity) -> None:
    (folder / f"{name}.pem").write_bytes(identity.certificate_pem)
    (folder / f"{name}.key").write_bytes(identity.key_pem)
    (folder / "ca.pem").write_bytes(identity.ca_pem)


@contextmanager
def nginx(authority: TestAuthority, onward: str) -> Iterator[str | None]:
    """Run it in a temporary folder; its address, or None where it is not installed. onward: host:port behind it."""
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")
    if program is None:
        yield None
        return
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="windrow-nginx-") as name:
        folder = Path(name)
        _write(folder, "server", issue(authority, "access", "access_" + "e" * 32))
        _write(folder, "client", issue(authority, "host", "host_" + "e" * 32))
        (folder / "nginx.conf").write_text(configuration(port, onward))
        command = [program, "-p", name, "-c", "nginx.conf", "-e", "error.log"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            _await_listening(port, process, folder)
            yield f"127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(STOP_S)


def _await_listening(port: int, process: "subprocess.Popen[bytes]", folder: Path) -> None:
    ends = time.monotonic() + START_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            if process.poll() is not None or time.monotonic() > ends:
                said = folder / "error.log"
                raise RuntimeError(f"nginx did not start: {said.read_text()[-500:] if said.exists() else ''}") from None
            time.sleep(0.05)
