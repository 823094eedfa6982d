"""The processes that calls run in. `python -m windrow.worker.zygote FD`; one thread, blocking, no part of the server.

A zygote has imported what calls need beside the code. Forked from it, a code process imports one state of the code.
Forked from that, a child runs calls. Messages are JSON in one packet each, with descriptors beside them.

Where the server has gone, however it went, all of them end: who waits for it reads the end of its channel, who imports
is killed with its parent, and a code process kills its children with what they have started.
"""

import contextlib
import importlib
import json
import os
import select
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Sequence
from typing import Any, Final

from windrow.worker import calling, config
from windrow.worker.parents import end_with_parent

PACKET_BYTES_MAX: Final = 128 * 1024
FDS_MAX: Final = 4
REAP_S: Final = 0.2
"""Between two looks whether a child has ended that could not say so itself."""
OOM_SCORE: Final = "500"
"""Children are ended before the worker where memory runs out (proc(5), oom_score_adj)."""


def main(descriptor: int) -> None:
    """Fork code processes until the server has gone."""
    server, own = socket.socket(fileno=descriptor), os.getpid()
    end_with_parent(signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        message, descriptors = receive(server)
        if message is None:
            return
        _reap()
        if message["do"] == "preload":
            _preload(message["modules"])
        elif os.fork() == 0:
            server.close()
            end_with_parent(signal.SIGKILL)
            if os.getppid() != own:  # it was over before we asked for that
                os._exit(1)
            _code(message, descriptors)
        for one in descriptors:
            os.close(one)


def send(channel: socket.socket, message: dict[str, Any], descriptors: Sequence[int] = ()) -> None:
    """One packet; raises OSError."""
    socket.send_fds(channel, [json.dumps(message).encode()], list(descriptors))


def receive(channel: socket.socket) -> tuple[dict[str, Any] | None, list[int]]:
    """The next packet and what came with it; None where the other side has gone."""
    try:
        data, descriptors, _, _ = socket.recv_fds(channel, PACKET_BYTES_MAX, FDS_MAX)
    except OSError:
        return None, []
    return (json.loads(data) if data else None), descriptors


def _preload(modules: list[str]) -> None:
    """Import what a call has imported from the environment, so that the next state of the code has it at once."""
    for name in modules:
        with contextlib.suppress(BaseException):
            importlib.import_module(name)


def _reap() -> dict[int, int]:
    """Children that have ended, with their wait status."""
    ended = {}
    with contextlib.suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            ended[found[0]] = found[1]
    return ended


# --- a code process ----------------------------------------------------------------------------------------------


def _code(message: dict[str, Any], descriptors: list[int]) -> None:
    """Import the code, say how that went, and fork children. Never returns."""
    status = 0
    try:
        channel = socket.socket(fileno=descriptors[0])
        with contextlib.suppress(OSError):
            os.setpgid(0, 0)
        send(channel, {"do": "began", "pid": os.getpid()})
        _take_output(descriptors[1], descriptors[2])
        before = set(sys.modules)
        failed = calling.load(message)
        said: dict[str, Any] = {"do": "ready", "failed": failed, "forks": _is_forkable()}
        said["modules"] = _from_environment(before, message["tree"] or "\0")
        sys.stdout.flush()
        send(channel, said)
        if failed is None:
            _fork_children(channel)
    except BaseException:
        status = 1
        traceback.print_exc()
    finally:
        with contextlib.suppress(BaseException):
            sys.stdout.flush()
        os._exit(status)


def _fork_children(channel: socket.socket) -> None:
    end_with_parent(0)
    children: set[int] = set()
    while True:
        for pid, status in _reap().items():
            children.discard(pid)
            with contextlib.suppress(OSError):
                send(channel, {"do": "ended", "pid": pid, "status": status})
        if not select.select([channel], [], [], REAP_S if children else None)[0]:
            continue
        message, descriptors = receive(channel)
        if message is None:
            for pid in children:
                with contextlib.suppress(OSError):
                    os.killpg(pid, signal.SIGKILL)
            return
        if message["inside"]:
            end_with_parent(signal.SIGKILL)
            channel.close()
            _child(message, descriptors)
        pid = os.fork()
        if pid == 0:
            channel.close()
            _child(message, descriptors)
        children.add(pid)
        with contextlib.suppress(OSError):  # it does so, too; whoever comes first
            os.setpgid(pid, pid)
        for one in descriptors:
            os.close(one)


def _from_environment(before: set[str], tree: str) -> list[str]:
    """The modules that importing the code has brought in and that are none of it; what has a parent comes with it."""
    found = []
    for name in set(sys.modules) - before:
        origin = getattr(getattr(sys.modules.get(name), "__spec__", None), "origin", None) or ""
        if "." not in name and origin and not str(origin).startswith(tree) and not name.startswith("_"):
            found.append(name)
    return sorted(found)[:256]


def _is_forkable() -> bool:
    """True if a fork of this process works: threads and a GPU's context do not come along."""
    torch: Any = sys.modules.get("torch")
    try:
        return threading.active_count() == 1 and not (torch is not None and torch.cuda.is_initialized())
    except Exception:
        return False


# --- a child -------------------------------------------------------------------------------------------------------


def _child(message: dict[str, Any], descriptors: list[int]) -> None:
    """Run the calls of one channel, one after another, until it ends. Never returns."""
    try:
        channel = socket.socket(fileno=descriptors[0])
        with contextlib.suppress(OSError):
            os.setpgid(0, 0)
        with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
            file.write(OOM_SCORE)
        _take_output(descriptors[1], descriptors[2])
        send(channel, {"do": "began", "pid": os.getpid()})
        while True:
            job, _ = receive(channel)
            if job is None:
                break
            config.add(job["env"])
            send(channel, calling.call(job))
    except BaseException:
        pass
    finally:
        os._exit(0)


def _take_output(out: int, err: int) -> None:
    """Standard output and error from here on; standard input is empty."""
    for source, target in ((out, 1), (err, 2)):
        os.dup2(source, target)
        os.close(source)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    # Not reconfigured: what was opened on a file asks it where it stands, which a pipe cannot say.
    sys.stdout = _text(1)
    sys.stderr = _text(2)


def _text(descriptor: int) -> Any:
    return open(descriptor, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)


if __name__ == "__main__":
    main(int(sys.argv[1]))
