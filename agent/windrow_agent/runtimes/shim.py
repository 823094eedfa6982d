"""The detached parent of one workload's processes: it outlives the agent and writes down when they began and ended.

Run by path with `python -I -S` and the standard library alone. `run FOLDER` detaches, starts what `launch.json` says
and keeps `log`, `start.json`, `end.json`; `exec FILE` stays attached and ends with its command. Whatever the command
leaves behind is killed: this process adopts all orphans below it.

Bubblewrap is outside of the sandbox that it makes. So it starts with an environment and a folder that no renter chose,
and hears what it is to make by a descriptor; a root's shim begins it as the unprivileged user that its workload is.

SIGTERM asks everything below to end, SIGUSR1 kills it. Where the agent has not noted before that it asks, somebody else
ends this process, such as a host that is shut down: then that end is not the command's own, whatever it says to that.
"""

import ctypes
import errno
import fcntl
import json
import os
import resource
import select
import signal
import stat
import struct
import sys
import time
from typing import Any

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
MARKER = b"\n[windrow: the log was cut here, at its limit of %d bytes; later output is dropped]\n"
PIECE = 65536
OOM_SCORE = 500
"""Of a workload; everybody else has 0. Where the host runs out of memory it goes before the agent and the system."""
ASKED = "asked"
"""The file by which the agent says that what ends this workload from now on is its doing."""
SIGNALLED = (137, 143)
"""Exit codes of what SIGKILL and SIGTERM ended."""
CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWNET = 0x00020000, 0x10000000, 0x40000000
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000
MS_SAFE = 0x2 | 0x4 | 0x8
"""Without rights of programs, devices, and programs at all."""
PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 4, 22, 38
SECCOMP_MODE_FILTER = 2
NS_GET_USERNS = 0xB701
"""Numbers of Linux's sched.h, mount.h, prctl.h, seccomp.h and nsfs.h."""
PROC = "/proc"
HIDING = (5, 8)
"""The Linux from which on one view of the processes can hide what another shows."""
KEYCTL = {"x86_64": 250, "aarch64": 219}
"""The number of the system call keyctl(2)."""
JOIN_SESSION_KEYRING = 1
STATUS_FD = 63
"""The descriptor on which bubblewrap reports what became of it, in lines of JSON; closed in what it runs."""
ARGUMENTS_FD, FILTER_FD = 62, 61
"""The descriptors from which bubblewrap reads its arguments, and the filter of system calls."""
PIDS_FD, USERS_FD, INNER_USERS_FD = 7, 8, 9
"""The namespaces of a sandbox that is joined; a shell can close them by one digit."""
STAGE = "/tmp"
"""The folder in which a root's shim shows the folders of a workload to its user, who could not come to them: in a view
of the files that is bubblewrap's alone."""
BEGAN = b'"exit-code"'
"""In that: said at the end of a command that had begun."""
UNMADE = 1
"""How bubblewrap ends when it cannot make the sandbox."""
NO_SANDBOX = 125
"""The exit code when it could not be made at all, as Docker has it."""
EXECVP = b"bwrap: execvp "
"""How its words begin where the sandbox is made, and the command in it cannot be started."""
CANNOT_RUN, NO_PROGRAM = 126, 127
LAST_BYTES = 4096
LAUNCHES = 6
AGAIN_S = 0.1
TICK_S = 0.5
"""How often an exit is looked for even if its signal was missed."""


libc = ctypes.CDLL(None, use_errno=True)
SPACES = (("user", CLONE_NEWUSER), ("net", CLONE_NEWNET))


def prctl(option: int, value: int) -> None:
    libc.prctl(option, value, 0, 0, 0)


def start_ticks(pid: int) -> int:
    """Field 22 of /proc/PID/stat: with the pid it names a process for the life of the kernel."""
    return int(_stat(pid)[19])


def is_alive(pid: int, ticks: int) -> bool:
    """True if this very process, and no other with its number, is there and has not ended."""
    try:
        fields = _stat(pid)
    except OSError:
        return False
    return int(fields[19]) == ticks and fields[0] != b"Z"


def _stat(pid: int) -> list[bytes]:
    """The fields of /proc/PID/stat from the third on."""
    with open(f"/proc/{pid}/stat", "rb") as file:
        return file.read().rpartition(b")")[2].split()


def boot_id() -> str:
    with open("/proc/sys/kernel/random/boot_id") as file:
        return file.read().strip()


def write_whole(folder: str, name: str, record: dict[str, Any]) -> None:
    """Atomically and durably: a reader sees all of it or nothing, and nobody else reads it: it may hold secrets."""
    temporary = os.path.join(folder, name + ".new")
    with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        json.dump(record, file)
        file.flush()
        os.fsync(file.fileno())
    os.rename(temporary, os.path.join(folder, name))
    handle = os.open(folder, os.O_RDONLY)
    os.fsync(handle)
    os.close(handle)


def below(root: int) -> list[int]:
    """Every process below `root`, by parents as /proc has them now."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    fields = file.read().rpartition(b")")[2].split()
            except OSError:
                continue
            if fields[0] != b"Z":
                children.setdefault(int(fields[1]), []).append(int(name))
    found, queue = [], [root]
    while queue:
        for child in children.get(queue.pop(), []):
            found.append(child)
            queue.append(child)
    return found


def send_below(number: int, spare_sandbox: bool) -> int:
    """Signal everything below this process; the sandbox's own processes do not pass SIGTERM on and are spared it."""
    sent = 0
    for pid in below(os.getpid()):
        try:
            if spare_sandbox:
                with open(f"/proc/{pid}/comm") as file:
                    if file.read().strip() == "bwrap":
                        continue
            os.kill(pid, number)
            sent += 1
        except OSError:
            continue
    return sent


def kill_below() -> None:
    """Until nothing is left; a process that cannot die (uninterruptible) is given up after ten seconds."""
    end = time.monotonic() + 10
    while time.monotonic() < end:
        hold_below(end)
        if not send_below(signal.SIGKILL, False):
            break
        reap(-1)
        time.sleep(0.01)
    reap(-1)


def hold_below(end: float) -> None:
    """Stop everything below this process, until the monotonic second `end`: what was begun a moment before its parent
    was killed would come below the first process of a sandbox that was joined, and be seen here no more."""
    held: set[int] = set()
    while (fresh := set(below(os.getpid())) - held) and time.monotonic() < end:
        for pid in fresh:
            try:
                os.kill(pid, signal.SIGSTOP)
            except OSError:
                continue
        held |= fresh


def reap(wanted: int) -> int | None:
    """Collect every ended child; returns the exit code of `wanted` if it was among them."""
    code = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return code
        if pid == 0:
            return code
        if pid == wanted:
            code = os.waitstatus_to_exitcode(status)
            code = 128 - code if code < 0 else code


def go_first() -> None:
    """Makes this process the first to go when the host runs out of memory."""
    try:
        with open("/proc/self/oom_score_adj", "w") as score:
            score.write(str(OOM_SCORE))
    except OSError:
        return  # a kernel without it


def enter_groups(spec: dict[str, Any]) -> None:
    """This process, and all that it begins from now on, is limited by these control groups."""
    for group in spec["groups"]:
        with open(os.path.join(group["folder"], "cgroup.procs"), "w") as members:
            members.write("0")


def close_groups(spec: dict[str, Any]) -> None:
    """Nothing more begins in them: what forks all the time is then killed in one go."""
    for group in spec["groups"]:
        try:
            with open(os.path.join(group["folder"], "pids.max"), "r+") as most:
                most.write("0")
        except OSError:
            continue  # this group limits something else


def confine(own: dict[str, Any]) -> None:
    """Become what may start bubblewrap for a workload: its user, in its network, without keys or rights of this one."""
    opened = [(f"/proc/{own['network']}/ns/{kind}", flag) for kind, flag in SPACES]
    spaces = [(os.open(path, os.O_RDONLY), flag) for path, flag in opened]
    beside = [] if own["beside"] is None else around(own["beside"])
    if own["user"] is not None:
        show(own["stage"])
        give_streams(own["user"])
        os.setgroups(own["groups"])
        os.setresgid(own["user"], own["user"], own["user"])
        os.setresuid(own["user"], own["user"], own["user"])
        prctl(PR_SET_DUMPABLE, 1)  # its files in /proc are root's otherwise, and bubblewrap writes to them
    call(libc.syscall(KEYCTL[os.uname().machine], JOIN_SESSION_KEYRING, None) < 0)
    for space, flag in spaces:
        call(libc.setns(space, flag))
    hand("\0".join([*own["options"], ""]).encode("utf-8", "surrogateescape"), ARGUMENTS_FD)
    hand(bytes.fromhex(own["filter"]), FILTER_FD)
    for space, descriptor in beside:
        os.dup2(space, descriptor)
    refuse(bytes.fromhex(own["making"]))


def refuse(program: bytes) -> None:
    """From here on these system calls are refused. Bubblewrap sets the workload's own filter last, when what it joins
    can see it already."""
    text = ctypes.create_string_buffer(program, len(program))
    lines = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(text))
    call(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    call(libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, lines, 0, 0))


def around(pid: int) -> list[tuple[int, int]]:
    """The namespaces of this process that bubblewrap joins, opened, each with the number that it will have: of
    processes, of users as that has it, and of users as it is inside."""
    pids, inner = (high(os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY)) for kind in ("pid", "user"))
    return [(pids, PIDS_FD), (high(fcntl.ioctl(pids, NS_GET_USERNS)), USERS_FD), (inner, INNER_USERS_FD)]


def high(descriptor: int) -> int:
    """The same by a number above those that bubblewrap is told."""
    return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, STATUS_FD + 1)


def show(folders: list[str]) -> None:
    """Have each of them below STAGE, by its number, where only this process and what it becomes see it."""
    call(libc.unshare(CLONE_NEWNS))
    call(libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None))
    held = [os.open(folder, os.O_PATH | os.O_CLOEXEC) for folder in folders]  # one of them may be what STAGE covers
    if tuple(int(part) for part in os.uname().release.split("-")[0].split(".")[:2] if part.isdigit()) >= HIDING:
        # Bubblewrap keeps this open, where what it joins can take it: no process of anybody else is in it. Where the
        # kernel allows no view of one's own, as in some containers, it is left as it is.
        libc.mount(b"proc", PROC.encode(), b"proc", MS_SAFE, b"hidepid=2")
    call(libc.mount(b"tmpfs", STAGE.encode(), b"tmpfs", 0, b"mode=0755"))
    for number, folder in enumerate(held):
        os.mkdir(f"{STAGE}/{number}", 0o755)
        call(libc.mount(f"/proc/self/fd/{folder}".encode(), f"{STAGE}/{number}".encode(), None, MS_BIND | MS_REC, None))
        os.close(folder)


def give_streams(user: int) -> None:
    """Gives the streams to the workload's user, who may open them again, as by /dev/stdout."""
    for descriptor in (0, 1, 2):
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(descriptor):
            os.fchown(descriptor, user, user)


def hand(data: bytes, descriptor: int) -> None:
    """Have what is executed next read this from this descriptor."""
    held = os.memfd_create("windrow")
    with open(held, "wb", closefd=False) as file:
        file.write(data)
    os.lseek(held, 0, os.SEEK_SET)
    os.dup2(held, descriptor)


def call(has_failed: int) -> None:
    """Raise OSError where a call of the C library has failed."""
    if has_failed:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def end_network(spec: dict[str, Any]) -> None:
    """Ends the processes that hold the network of this workload."""
    for pid, ticks in spec["holders"]:
        if is_alive(pid, ticks):
            os.kill(pid, signal.SIGKILL)


def launch(spec: dict[str, Any], inherited: int | None, out: int | None) -> tuple[int, int, int, int]:
    """Fork the command up to a gate. Returns pid, the gate (write a byte to let it run), where an errno comes, and
    where bubblewrap says what became of it."""
    gate_read, gate_write = os.pipe()
    fail_read, fail_write = os.pipe()
    said_read, said_write = os.pipe()
    parent = os.getpid()
    pid = os.fork()
    if pid:
        os.close(gate_read)
        os.close(fail_write)
        os.close(said_write)
        return pid, gate_write, fail_read, said_read
    try:
        os.close(gate_write)
        os.close(fail_read)
        fail_write = high(fail_write)
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent or os.read(gate_read, 1) != b"g":
            os._exit(125)  # the shim is gone, and with it the record of this start
        os.setpgid(0, 0)
        for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGCHLD, signal.SIGPIPE, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        if inherited is not None:
            os.dup2(inherited, 0)
        if out is not None:
            os.dup2(out, 1)
            os.dup2(out, 2)
        go_first()
        enter_groups(spec)
        for name, (soft, hard) in spec["limits"].items():
            resource.setrlimit(getattr(resource, name), (soft, hard))
        os.chdir(spec["cwd"])
        os.umask(0o022)
        if spec["nice"]:
            os.nice(spec["nice"])
        if spec["sandbox"]:
            os.dup2(said_write, STATUS_FD)
            confine(spec["sandbox"])
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # the kernel forgets it where rights change
            if os.getppid() != parent:
                os._exit(125)
        os.execvpe(spec["argv"][0], spec["argv"], spec["env"])
    except OSError as error:
        os.write(fail_write, str(error.errno).encode())
    except Exception as error:
        os.write(fail_write, str(errno.EINVAL).encode())
        os.write(2, f"windrow: {error}\n".encode())
    os._exit(127)


def is_unmade(spec: dict[str, Any], code: int, said: int) -> bool:
    """True if the process that ended is bubblewrap, before it began the command. A mount of the host that goes while it
    makes the sandbox is enough: it then finds its copy of it gone, too."""
    os.set_blocking(said, False)
    status = heard(said)
    os.close(said)
    return bool(spec["sandbox"]) and code == UNMADE and BEGAN not in status


def unstarted(said: bytes) -> int | None:
    """The exit code, as shells have it, where bubblewrap made the sandbox and could not start the command in it: a
    script whose interpreter is not there, a program for another processor. said: its last words; None: not so."""
    line = said.rstrip(b"\n").rpartition(b"\n")[2]
    if not line.startswith(EXECVP):
        return None
    return CANNOT_RUN if line.endswith(os.strerror(errno.EACCES).encode()) else NO_PROGRAM


class Log:
    """The one log file of a run; cut once, and it says so."""

    def __init__(self, path: str, cap_bytes: int) -> None:
        self.file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self.left = cap_bytes - os.fstat(self.file).st_size
        self.cap = cap_bytes
        self.cut = False
        self.last = b""

    def write(self, data: bytes) -> None:
        self.last = (self.last + data)[-LAST_BYTES:]
        if self.cut:
            return
        try:
            os.write(self.file, data[: max(0, self.left)])
            if len(data) > self.left:
                self.cut = True
                os.write(self.file, MARKER % self.cap)
        except OSError:
            self.cut = True  # a full disk ends the log, not the workload
        self.left -= len(data)


def pump(source: int, log: Log) -> bool:
    """Move what is there; False at the end."""
    try:
        data = os.read(source, PIECE)
    except BlockingIOError:
        return True
    log.write(data)
    return bool(data)


def run(folder: str) -> int:
    lock = os.open(os.path.join(folder, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return 0  # another shim has it
    if os.path.exists(os.path.join(folder, "start.json")):
        return 0  # it ran already, and nothing runs twice
    with open(os.path.join(folder, "launch.json")) as file:
        spec = json.load(file)
    if os.fork():
        os._exit(0)
    os.setsid()
    if os.fork():
        os._exit(0)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    return supervise(folder, spec)


def supervise(folder: str, spec: dict[str, Any]) -> int:
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_read, False)
    os.set_blocking(wake_write, False)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGCHLD):
        signal.signal(number, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    out_read, out_write = os.pipe()
    os.set_blocking(out_read, False)
    null = os.open(os.devnull, os.O_RDWR)
    log = Log(os.path.join(folder, "log"), spec["log_cap_bytes"])
    ends = out_read, out_write, wake_read
    for left in reversed(range(LAUNCHES)):
        began_ns, reason, code, is_told, unmade = once(folder, spec, null, ends, log)
        ran_ns = time.monotonic_ns() - began_ns
        is_asked = is_told or os.path.exists(os.path.join(folder, ASKED))
        if unmade:
            pump(out_read, log)
            if (refused := unstarted(log.last)) is not None:
                unmade, code = False, refused
                log.write(b"[windrow: the command or the interpreter that its first line names cannot be started]\n")
        if not unmade or is_asked or not left:
            break
        log.write(b"[windrow: the sandbox could not be made; trying again]\n")
        time.sleep(AGAIN_S)
    close_groups(spec)
    kill_below()
    end_network(spec)
    # Who ends a group of processes may come to the command first, and to this one while that is cleared away.
    is_told = is_told or (code in SIGNALLED and signal.SIGTERM in heard(wake_read))
    while select.select([out_read], [], [], 0)[0] and pump(out_read, log):
        pass
    code = NO_SANDBOX if unmade else code
    end: dict[str, Any] = {"exit_code": code, "running_ns": ran_ns, "wall_ns": time.time_ns(), "log_cut": log.cut}
    if reason:
        end["exec_error"] = os.strerror(int(reason))
    if is_told and not os.path.exists(os.path.join(folder, ASKED)):
        end["is_by_host"] = True
    write_whole(folder, "end.json", end)
    return 0


def once(
    folder: str, spec: dict[str, Any], null: int, ends: tuple[int, int, int], log: Log
) -> tuple[int, bytes, int, bool, bool]:
    """Launch the command and see it through. Returns when it began (monotonic ns), the errno of what could not be run,
    the exit code, whether SIGTERM came before, and whether its sandbox could not be made, so that it has not run."""
    out_read, out_write, wake = ends
    pid, gate, failed, said = launch(spec, null, out_write)
    began_ns = time.monotonic_ns()
    write_whole(
        folder,
        "start.json",
        {
            "shim_pid": os.getpid(),
            "shim_ticks": start_ticks(os.getpid()),
            "pid": pid,
            "boot_id": boot_id(),
            "monotonic_ns": began_ns,
            "wall_ns": time.time_ns(),
        },
    )
    os.write(gate, b"g")
    os.close(gate)
    reason = os.read(failed, 16)  # empty once the command has taken the child's place
    if not reason:
        write_whole(folder, "running.json", {})
    os.close(failed)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    code, is_told = attend(pid, out_read, wake, log)
    return began_ns, reason, code, is_told, is_unmade(spec, code, said)


def heard(source: int) -> bytes:
    """Reads the bytes that have come there and were not read yet."""
    try:
        return os.read(source, 4096)
    except BlockingIOError:
        return b""


def attend(pid: int, out: int, wake: int, log: Log | None) -> tuple[int, bool]:
    """Serve output and signals until the command itself has ended; its exit code, and whether SIGTERM came before."""
    sources, is_told = [wake, out] if log is not None else [wake], False
    while True:
        ready, _, _ = select.select(sources, [], [], TICK_S)
        if log is not None and out in ready and not pump(out, log):
            sources.remove(out)
        code = reap(pid)
        # Read afterwards: what a host that ends all at once has sent to both is then among them.
        signals = heard(wake)
        is_told = is_told or signal.SIGTERM in signals
        if code is not None:
            return code, is_told
        for number in signals:
            if number == signal.SIGTERM:
                send_below(signal.SIGTERM, True)
            elif number == signal.SIGUSR1:
                send_below(signal.SIGKILL, False)


def end_attached(*_: object) -> None:
    """The agent wants this command ended, or has ended itself."""
    kill_below()
    os._exit(137)


def attached(path: str) -> int:
    """Run one command with this process's own input and output, and end when it or the agent ends."""
    prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    with open(path) as file:
        spec = json.load(file)
    os.unlink(path)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_read, False)
    os.set_blocking(wake_write, False)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGTERM, end_attached)
    for left in reversed(range(LAUNCHES)):
        pid, gate, failed, said = launch(spec, None, None)
        os.write(gate, b"g")
        code, _ = attend(pid, -1, wake_read, None)
        unmade = is_unmade(spec, code, said)
        if not unmade or not left:
            break
        time.sleep(AGAIN_S)
    kill_below()
    code = NO_SANDBOX if unmade else code
    reason = os.read(failed, 16)
    if reason:
        os.write(2, f"windrow: cannot run {spec['program']!r}: {os.strerror(int(reason))}\n".encode())
    return code


if __name__ == "__main__":
    sys.exit(run(sys.argv[2]) if sys.argv[1] == "run" else attached(sys.argv[2]))
