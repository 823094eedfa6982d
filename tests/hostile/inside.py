"""Runs in a sandbox and tries ways out of it: prints one object, by what was tried, with "held" or what was had.

Told by its environment: SECRET, a file of the agent's; AGENT, its pid; PORT and ABSTRACT, where this host listens;
PREFIX, where the agent's interpreter is, which a sandbox sees.
"""

import ctypes
import json
import os
import signal
import socket
import struct

NUMBERS = {
    "mount": 165, "umount2": 166, "pivot_root": 155, "chroot": 161, "unshare": 272, "setns": 308,
    "add_key": 248, "request_key": 249, "keyctl": 250, "bpf": 321, "perf_event_open": 298, "userfaultfd": 323,
    "open_by_handle_at": 304, "init_module": 175, "io_uring_setup": 425, "clone3": 435,
    "fsopen": 430, "open_tree": 428, "shmget": 29, "msgget": 68, "capset": 126, "mknod": 133, "clone": 56,
}  # fmt: skip
NEW_USER, NEW_NAMESPACE = 0x10000000, 0x00020000
kept = os.environ["SECRET"].split("/") + os.environ["PREFIX"].split("/")
secret, port = os.environ["SECRET"], int(os.environ["PORT"])
libc = ctypes.CDLL(None, use_errno=True)
found: dict[str, str] = {}


def tried(what, attempt):
    """Note that it held, or what was had. An attempt returns something true where it came through."""
    try:
        had = attempt()
    except (OSError, ValueError):
        found[what] = "held"
        return
    found[what] = f"had {str(had)[:100]}" if had else "held"


def call(name, *arguments):
    number = NUMBERS[name]
    result = libc.syscall(number, *[one.encode() if isinstance(one, str) else one for one in arguments])
    if result < 0:
        raise OSError(ctypes.get_errno(), name)
    return f"{name} {result}"


def done(function, *arguments):
    function(*arguments)
    return "done"


def writes(path):
    with open(path, "w"):
        return path


def reads(path):
    with open(path, "rb"):
        return path


def text(path):
    with open(path, "rb") as file:
        return file.read(4096)


def reaches(family, address):
    with socket.socket(family, socket.SOCK_STREAM) as line:
        line.settimeout(1)
        line.connect(address)
    return f"a connection to {address}"


def uncovered():
    """Returns the files that appear where mounts are taken away, one after the other."""
    with open("/proc/self/mountinfo") as mounts:
        lines = mounts.read().splitlines()
    for line in reversed(lines):
        libc.umount2(line.split()[4].encode(), 2)
    return os.path.exists(secret) and text(secret)


def environments():
    """Returns the environments that other processes were started with."""
    own = os.environ["WINDROW_WORKLOAD_ID"].encode()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            said = text(f"/proc/{pid}/environ")
        except OSError:
            continue
        if (said and own not in said) or b"-".join((b"PLANTED", b"not-for")) in said:
            return f"{pid}: {said!r}"
    return None


def memory():
    """Returns secrets in the memory of the first process, which came from outside."""
    with open("/proc/1/maps") as maps, open("/proc/1/mem", "rb", 0) as file:
        for line in maps:
            start, end = (int(one, 16) for one in line.split()[0].split("-"))
            if line.split()[1][0] == "r" and "[v" not in line:
                file.seek(start)
                if b"-".join((b"PLANTED", b"not-for")) in file.read(end - start):
                    return line
    return None


def child_of(flags):
    pid = call("clone", flags | signal.SIGCHLD, 0, 0, 0, 0)
    if pid.endswith(" 0"):
        os._exit(0)
    os.wait()
    return pid


tried("the agent's file", lambda: text(secret))
tried("the agent's folder", lambda: [n for n in os.listdir(os.path.dirname(os.path.dirname(secret))) if n != "process"])
for pid in ("1", "self", "2"):
    tried(f"the root of process {pid}", lambda pid=pid: os.path.exists(f"/proc/{pid}/root{secret}"))
    tried(f"the folder of process {pid}", lambda pid=pid: os.path.exists(f"/proc/{pid}/cwd/../../../identity"))
tried("taking mounts away", uncovered)
tried("environments of others", environments)
tried("what process 1 was told", memory)
tried(
    "files that process 1 has open",
    lambda: [n for n in os.listdir("/proc/1/fd") if os.path.exists(f"/proc/1/fd/{n}/..")],
)
tried("mounting", lambda: call("mount", "none", "/tmp", "tmpfs", 0, 0))
tried("mounting anew", lambda: call("mount", "none", "/", 0, 32, 0))
tried("mounting proc", lambda: call("mount", "proc", "/tmp", "proc", 0, 0))
tried("mounting the new way", lambda: call("fsopen", "tmpfs", 0))
tried("cloning a tree", lambda: call("open_tree", -100, "/", 1))
tried("unmounting /tmp", lambda: call("umount2", "/tmp", 2))
tried("another root", lambda: call("pivot_root", "/tmp", "/tmp"))
tried("chroot", lambda: call("chroot", "/tmp"))
tried("a user namespace", lambda: call("unshare", NEW_USER))
tried("a mount namespace", lambda: call("unshare", NEW_NAMESPACE))
tried("a child in a user namespace", lambda: child_of(NEW_USER))
for kind in ("user", "mnt", "net", "pid"):
    tried(f"the {kind} namespace of process 1", lambda kind=kind: call("setns", os.open(f"/proc/1/ns/{kind}", 0), 0))
tried("signals to the agent", lambda: done(os.kill, int(os.environ["AGENT"]), 0))
tried("rights", lambda: text("/proc/self/status").decode().split("CapEff:\t")[1][:16].strip("0"))
tried("new rights", lambda: call("capset", struct.pack("Ii", 0x20080522, 0), struct.pack("IIIIII", *[2**32 - 1] * 6)))
tried("programs with rights", lambda: "NoNewPrivs:\t1" not in text("/proc/self/status").decode())
tried("being root", lambda: done(os.setresuid, 0, 0, 0))
tried("a key", lambda: call("add_key", "user", "windrow", "x", 1, -3))
tried("the session's keys", lambda: call("keyctl", 11, -3, 0, 0))
tried("a key of others", lambda: call("request_key", "user", "windrow-planted", 0, -3))
tried("bpf", lambda: call("bpf", 0, bytes(64), 64))
tried("perf", lambda: call("perf_event_open", bytes(128), -1, 0, -1, 0))
tried("page faults", lambda: call("userfaultfd", 0))
tried("io_uring", lambda: call("io_uring_setup", 8, bytes(120)))
tried("a module", lambda: call("init_module", "", 0, ""))
tried("a device", lambda: done(os.mknod, "/tmp/device", 0o060600, os.makedev(254, 0)) and reads("/tmp/device"))
tried("a loopback port of the host", lambda: reaches(socket.AF_INET, ("127.0.0.1", port)))
for number, address in enumerate(json.loads(os.environ["ADDRESSES"])):
    tried(f"address {number} of the host", lambda address=address: reaches(socket.AF_INET, (address, port)))
tried("an abstract socket", lambda: reaches(socket.AF_UNIX, "\0" + os.environ["ABSTRACT"]))
tried("the host of a virtual machine", lambda: socket.socket(40, socket.SOCK_STREAM))
tried("the kernel's own code", lambda: socket.socket(38, socket.SOCK_SEQPACKET))
tried("raw packets", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 3))
for path in json.loads(os.environ["SOCKETS"]):
    tried(f"the socket {path}", lambda path=path: reaches(socket.AF_UNIX, path))
for folder in (
    "/home",
    "/root",
    "/run",
    "/srv",
    "/mnt",
    "/media",
    "/boot",
    "/var/log",
    "/var/lib",
    "/sys/fs",
    "/sys/kernel",
):
    tried(f"what is in {folder}", lambda folder=folder: [n for n in os.listdir(folder) if n not in kept])
for path in ("/etc/shadow", "/etc/ssh", "/etc/docker", "/dev/mem", "/dev/kmsg", "/dev/vda", "/dev/sda", "/dev/net/tun"):
    tried(f"{path}", lambda path=path: os.path.exists(path))
for path in ("/x", "/etc/x", "/usr/x", "/dev/x", "/sys/x", "/proc/sys/kernel/hostname", "/proc/sysrq-trigger"):
    tried(f"writing {path}", lambda path=path: writes(path))
tried("shared memory of the host", lambda: os.listdir("/dev/shm"))
tried("System V memory of the host", lambda: call("shmget", int(os.environ["SHM_KEY"]), 0, 0))
print(json.dumps(found), flush=True)
