"""Makes the network namespace of one process workload, holds it with a process that only sleeps, and enters it to
connect.

Run by path with `python -I -S` and the standard library alone, since a process can enter a user namespace only while it
has one thread. `hold` reads what is wanted from standard input and prints what it has made; `dial` and `tun` make a
connection or a device inside, and hand it over by the Unix socket that is their standard input.

    this host ── pasta ──┐                                 pasta, outside, translates addresses; it has no rights here
    user namespace of the network: root in it is the workload's user, who may do nothing on the host
      network namespace: loopback, pasta's device, nftables' rules, maybe the device of a private network
        user namespace of the workload (bubblewrap): no rights, in the same network
"""

import ctypes
import fcntl
import json
import os
import signal
import socket
import stat
import struct
import subprocess
import sys
from collections.abc import Callable
from typing import Any

CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWNET = 0x00020000, 0x10000000, 0x40000000
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER = 1, 4, 36
TUN = "/dev/net/tun"
TUN_NUMBER = 10, 200
SCRATCH = "/tmp"
"""A folder that everybody may enter, in root's own view of the files; nobody else sees it."""
_TUNSETIFF, _IFF_TUN, _IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _SIOCSIFADDR, _SIOCSIFNETMASK, _SIOCSIFMTU = 0x8913, 0x8914, 0x8916, 0x891C, 0x8922
_IFF_UP = 0x1
"""Numbers of Linux's sched.h, mount.h, prctl.h, if_tun.h, sockios.h and if.h."""
STEP_S = 10.0
"""For nft, for pasta; each takes some milliseconds."""
_libc = ctypes.CDLL(None, use_errno=True)


def checked(result: int, what: str) -> None:
    """Raise OSError for a call of the C library that has failed."""
    if result:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    """mount(2). Raises OSError."""
    words = [word.encode() for word in (source, target, kind)]
    checked(_libc.mount(*words, ctypes.c_ulong(flags), options.encode()), f"mount {target}")


def own_view() -> None:
    """From here on this process has mounts of its own, of which nobody else sees anything, and SCRATCH is empty."""
    checked(_libc.unshare(CLONE_NEWNS), "unshare")
    mount("none", "/", "none", MS_REC | MS_PRIVATE)
    mount("tmpfs", SCRATCH, "tmpfs", 0, "mode=0755")


def become(user: int | None) -> None:
    """Be this user, and of no group but its own; None: stay who one is."""
    if user is not None:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
        checked(_libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0), "prctl")  # its own files in /proc are its own again


def enter(pid: int) -> None:
    """Be in the network of this process; who is not root comes to have all rights over it, and none elsewhere."""
    with open(f"/proc/{pid}/ns/user") as users, open(f"/proc/{pid}/ns/net") as network:
        if os.geteuid() != 0:
            join(users.fileno(), CLONE_NEWUSER)
        join(network.fileno(), CLONE_NEWNET)


def join(space: int, kind: int) -> None:
    """Have this thread be in this namespace, an open file. Raises OSError."""
    checked(_libc.setns(space, kind), "setns")


# --- hold -------------------------------------------------------------------------------------------------------------


def hold() -> int:
    """Make the network. Printed: the pids that stay, each with its start, the first of them in the network; why it
    leads nowhere, empty where it does; and which ports of the host lead into it. No pids: it could not be made."""
    asked, pids, published = json.load(sys.stdin), list[int](), ""
    try:
        checked(_libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "prctl")
        if os.geteuid() == 0:
            own_view()
            _open_tun()
        become(asked["user"])
        pids.append(_sleeper(asked))
        if not (why := _ruled(asked, pids[0])):
            why, published = _outward(asked, pids[0])
        pids += [pid for pid in _children() if pid not in pids]
        told = [[pid, _start_ticks(pid)] for pid in pids]
    except OSError as error:
        told, why = [], error.strerror or str(error)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
    print(json.dumps({"pids": told, "why": why, "published": published}))
    return 0


def _open_tun() -> None:
    """Opens TUN; where only root may open it, the workload's user gets one of its own, for devices in its network
    only."""
    try:
        if os.stat(TUN).st_mode & 0o006 == 0o006:
            return
        os.umask(0)
        os.mknod(f"{SCRATCH}/tun", stat.S_IFCHR | 0o666, os.makedev(*TUN_NUMBER))
        mount(f"{SCRATCH}/tun", TUN, "none", MS_BIND)
    except OSError:
        return  # pasta will say that it lacks it


def _sleeper(asked: dict[str, Any]) -> int:
    """Begin the process that holds the network; its pid. Raises OSError."""
    said, say = os.pipe()
    hear, go = os.pipe()
    sleeper = os.fork()
    if not sleeper:
        try:
            checked(_libc.unshare(CLONE_NEWUSER | CLONE_NEWNET), "unshare")
            os.write(say, b"-")
            os.read(hear, 1)
            _up("lo")
            null = os.open(os.devnull, os.O_RDWR)
            for descriptor in (0, 1, 2):
                os.dup2(null, descriptor)
            os.chdir("/")
            os.execve("/bin/sleep", ["sleep", "2147483647"], asked["env"])
        except OSError as error:
            os.write(say, f"{error.strerror or error}".encode())
        os._exit(1)
    os.close(say)
    if (why := os.read(said, 512)) == b"-":
        for name, text in (("setgroups", "deny"), ("uid_map", f"0 {os.getuid()} 1"), ("gid_map", f"0 {os.getgid()} 1")):
            with open(f"/proc/{sleeper}/{name}", "w") as file:
                file.write(text)
        os.write(go, b"g")
        why = os.read(said, 512)  # nothing: it has become what sleeps
    if why:
        raise OSError(0, why.decode(errors="replace"))
    return sleeper


def _ruled(asked: dict[str, Any], sleeper: int) -> str:
    """Why the rules do not stand; without them it leads nowhere."""
    if not asked["nft"]:
        return str(asked["why"])
    return _done([asked["nft"], "-f", "-"], {}, asked["rules"], lambda: enter(sleeper))


def _outward(asked: dict[str, Any], sleeper: int) -> tuple[str, str]:
    """Why pasta does not run, which goes on by itself once it does; and which ports it has: the first of what is asked
    for that it could have."""
    spaces = ("--userns", f"/proc/{sleeper}/ns/user", "--netns", f"/proc/{sleeper}/ns/net")
    why = str(asked["why"])
    for published in asked["published"] if asked["pasta"] else ():
        why = _done([*asked["pasta"], "--tcp-ports", published, *spaces], asked["env"])
        if not why:
            return "", published
    return why, ""


def _done(words: list[str], env: dict[str, str], told: str = "", first: Callable[[], None] | None = None) -> str:
    """Run a program to its end; why it failed, empty where it did not. first: called in it before it begins."""
    try:
        with open(os.devnull, "wb") as null:
            pipe = subprocess.PIPE
            made = subprocess.Popen(words, stdin=pipe, stdout=null, stderr=pipe, env=env, cwd="/", preexec_fn=first)
            # What goes on in the background may keep the pipe open: its end is not waited for.
            assert made.stdin is not None and made.stderr is not None
            with made.stdin as line:
                line.write(told.encode())
            code = made.wait(STEP_S)
            os.set_blocking(made.stderr.fileno(), False)
            said = (made.stderr.read() or b"").decode(errors="replace")
    except (OSError, subprocess.SubprocessError) as error:
        return f"{os.path.basename(words[0])}: {error}"[:200]
    lines = [line for line in said.splitlines() if "syslog" not in line]
    return "" if code == 0 else f"{os.path.basename(words[0])}: {(lines or ['it failed'])[0]}"[:200]


def _children() -> list[int]:
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        return [int(word) for word in file.read().split()]


def _start_ticks(pid: int) -> int:
    with open(f"/proc/{pid}/stat", "rb") as file:
        return int(file.read().rpartition(b")")[2].split()[19])


# --- inside -----------------------------------------------------------------------------------------------------------


def tun(name: str, address: str, bits: str, mtu: str) -> int:
    """A device that is up, with this address, in the network that this thread is in; its descriptor never waits. Raises
    OSError."""
    device = os.open(TUN, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        fcntl.ioctl(device, _TUNSETIFF, struct.pack("16sH22x", name.encode(), _IFF_TUN | _IFF_NO_PI))
        try:  # it has no use for IPv6, whose neighbours the kernel would look for
            with open(f"/proc/sys/net/ipv6/conf/{name}/disable_ipv6", "w") as switch:
                switch.write("1")
        except OSError:
            pass
        mask = socket.inet_ntoa(struct.pack("!I", 0xFFFFFFFF << (32 - int(bits)) & 0xFFFFFFFF))
        _set(name, _SIOCSIFMTU, struct.pack("i", int(mtu)))
        _set(name, _SIOCSIFADDR, _sockaddr(address))
        _set(name, _SIOCSIFNETMASK, _sockaddr(mask))
        _up(name)
    except BaseException:
        os.close(device)
        raise
    return device


def _up(name: str) -> None:
    flags = struct.unpack("16sH22x", _set(name, _SIOCGIFFLAGS, b""))[1]
    _set(name, _SIOCSIFFLAGS, struct.pack("H", flags | _IFF_UP))


def _set(name: str, request: int, told: bytes) -> bytes:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        return fcntl.ioctl(asking, request, struct.pack("16s24s", name.encode(), told))


def _sockaddr(address: str) -> bytes:
    return struct.pack("HH4s", socket.AF_INET, 0, socket.inet_aton(address))


def dial(address: str, port: str, timeout_s: str) -> int:
    """A connection to this address, as a descriptor. Raises OSError."""
    return socket.create_connection((address, int(port)), float(timeout_s)).detach()


def handed(pid: str, make: Callable[..., int], *words: str) -> int:
    """Make it inside, and hand it over by standard input: one byte and the descriptor, or the errno in digits."""
    with socket.socket(fileno=0) as line:
        try:
            enter(int(pid))
            socket.send_fds(line, [b"+"], [make(*words)])
        except OSError as error:
            line.sendall(str(error.errno or 5).encode())
    return 0


MAKERS: dict[str, Callable[..., int]] = {"dial": dial, "tun": tun}

if __name__ == "__main__":
    sys.exit(hold() if sys.argv[1] == "hold" else handed(sys.argv[2], MAKERS[sys.argv[1]], *sys.argv[3:]))
