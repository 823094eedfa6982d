"""A program that speaks as `nvidia-cuda-mps-control` does: a daemon with `-f`, its client without; no card is needed.

As NVIDIA's, it starts a server as the user of a client, which comes to the daemon by path, before the client is served.

A file `broken` beside it makes the daemon end at once with a word; `deaf` lets it ignore `quit`.
"""

import json
import os
import socket
import struct
import sys
from pathlib import Path

NAME = "nvidia-cuda-mps-control"


def installed(folder: Path) -> Path:
    """Put the program into a folder; where to look for it."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / NAME
    program.write_text(f"#!{sys.executable} -IS\n{Path(__file__).read_text()}\nmain()\n")
    program.chmod(0o755)
    return folder


def daemon(pipe: str) -> None:
    beside = Path(__file__).parent
    if (beside / "broken").exists():
        sys.exit("Cannot find MPS control daemon process")
    Path(os.environ["CUDA_MPS_LOG_DIRECTORY"], "started.json").write_text(json.dumps(dict(os.environ)))
    Path(pipe, f"{NAME}.pid").write_text(str(os.getpid()))
    with socket.socket(socket.AF_UNIX) as listening:
        os.chdir(pipe)  # a socket's path is short
        listening.bind("control")
        os.chmod("control", 0o666)
        os.chdir("/")
        listening.listen()
        while True:
            with listening.accept()[0] as client:
                asked = client.recv(4096).decode().strip()
                if asked == "connect":
                    client.sendall(b"served\n" if has_server(client, pipe) else b"error 805\n")
                    continue
                client.sendall(b"\n" if asked in ("quit", "get_server_list") else b"unknown command\n")
                if asked == "quit" and not (beside / "deaf").exists():
                    return


def has_server(client: socket.socket, pipe: str) -> bool:
    """True if a server that is the client's user finds this daemon."""
    _, user, group = struct.unpack("3i", client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    server = os.fork()
    if server == 0:
        try:
            if os.getuid() != user:
                os.setgroups([])
                os.setgid(group)
                os.setuid(user)
            os._exit(0 if os.access(Path(pipe, "control"), os.W_OK) else 1)
        finally:
            os._exit(1)
    return os.waitpid(server, 0)[1] == 0


def ask(pipe: str) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        try:
            os.chdir(pipe)
            client.connect("control")
        except OSError:
            sys.exit("Cannot find MPS control daemon process")
        client.sendall(sys.stdin.buffer.read())
        client.shutdown(socket.SHUT_WR)
        print(client.recv(4096).decode(), end="")


def main() -> None:
    pipe = os.environ["CUDA_MPS_PIPE_DIRECTORY"]
    daemon(pipe) if sys.argv[1:] == ["-f"] else ask(pipe)
