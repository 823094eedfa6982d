"""The seccomp filter of a process workload as classic BPF: the system calls that it may not make. Pure.

They are those that container daemons refuse as well: what changes mounts, namespaces, modules, keys or clocks, and what
has often been a way into the kernel. What is refused fails with EPERM; `clone3` fails with ENOSYS, whose flags a filter
cannot see, so that C libraries fall back to `clone`.
"""

import struct
from collections.abc import Iterator
from typing import Final

X86_64, AARCH64 = "x86_64", "aarch64"
_AUDIT: Final = {X86_64: 0xC000003E, AARCH64: 0xC00000B7}
"""AUDIT_ARCH_* of Linux's audit.h: by which set of numbers a call is made."""
_COLUMN: Final = {X86_64: 0, AARCH64: 1}
REFUSED: Final[dict[str, tuple[int | None, int | None]]] = {
    "acct": (163, 89),
    "add_key": (248, 217),
    "bpf": (321, 280),
    "chroot": (161, 51),
    "clock_adjtime": (305, 266),
    "clock_settime": (227, 112),
    "delete_module": (176, 106),
    "fanotify_init": (300, 262),
    "finit_module": (313, 273),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "init_module": (175, 105),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "ioperm": (173, None),
    "iopl": (172, None),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "lookup_dcookie": (212, 18),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "open_tree_attr": (467, 467),
    "perf_event_open": (298, 241),
    "pivot_root": (155, 41),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "reboot": (169, 142),
    "request_key": (249, 218),
    "setns": (308, 268),
    "settimeofday": (164, 170),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "syslog": (103, 116),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
    "vhangup": (153, 58),
}
"""Numbers of Linux's tables of system calls, on x86-64 and on 64-bit ARM; None: it has no such call."""
_CLONE: Final = (56, 220)
_CLONE3: Final = 435
_SOCKET: Final = (41, 198)
_IOCTL: Final = (16, 29)
MAKING: Final = frozenset({"chroot", "mount", "mount_setattr", "move_mount", "open_tree", "pivot_root"}) | {
    *("fsconfig", "fsmount", "fsopen", "fspick", "setns", "umount2", "unshare"),
}
"""System calls that bubblewrap needs to make a sandbox. A process that traces bubblewrap has no rights to use them."""
NAMESPACES: Final = 0x7E020000
"""CLONE_NEW* of Linux's sched.h."""
FAMILIES: Final = (38, 40)
"""AF_ALG, in the kernel's own code, and AF_VSOCK, which leads to the host of a virtual machine."""
_TERMINAL: Final = (0x5412, 0x541C)
"""TIOCSTI and TIOCLINUX: what types into the terminal of somebody else."""
_X32: Final = 0x40000000
"""From this number on a call is of the x32 set, which x86-64 numbers separately."""
_EPERM, _ENOSYS = 1, 38
_LOAD, _EQUAL, _GREATER, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_NUMBER, _ARCH, _FIRST, _SECOND = 0, 4, 16, 24
"""Offsets in struct seccomp_data; of arguments the lower half, in the order of both machines."""

_Line = tuple[int, int, int, int]


def program(machine: str, *, is_making: bool = False) -> bytes | None:
    """The filter for this kind of processor, as platform.machine() names it; None: there is none for it. is_making: for
    what makes the sandbox."""
    if machine not in _AUDIT:
        return None
    return b"".join(struct.pack("<HBBI", *line) for line in _lines(machine, is_making=is_making))


def _lines(machine: str, *, is_making: bool) -> Iterator[_Line]:
    column = _COLUMN[machine]
    yield _LOAD, 0, 0, _ARCH
    yield _EQUAL, 1, 0, _AUDIT[machine]
    yield _refuse(_ENOSYS)  # a call of another set of numbers, as of 32-bit programs
    yield _LOAD, 0, 0, _NUMBER
    if machine == X86_64:
        yield _GREATER, 0, 1, _X32
        yield _refuse(_ENOSYS)
    for name, numbers in REFUSED.items():
        number = numbers[column]
        if number is not None and not (is_making and name in MAKING):
            yield _EQUAL, 0, 1, number
            yield _refuse(_EPERM)
    yield _EQUAL, 0, 1, _CLONE3
    yield _refuse(_ENOSYS)
    if not is_making:
        yield _EQUAL, 0, 4, _CLONE[column]
        yield _LOAD, 0, 0, _FIRST
        yield _ANY_BIT, 0, 1, NAMESPACES
        yield _refuse(_EPERM)
        yield _allow()
    for call, argument, values in ((_SOCKET, _FIRST, FAMILIES), (_IOCTL, _SECOND, _TERMINAL)):
        yield _EQUAL, 0, 2 * len(values) + 2, call[column]
        yield _LOAD, 0, 0, argument
        for value in values:
            yield _EQUAL, 0, 1, value
            yield _refuse(_EPERM)
        yield _allow()
    yield _allow()


def _refuse(error: int) -> _Line:
    return _RETURN, 0, 0, _ERRNO | error


def _allow() -> _Line:
    return _RETURN, 0, 0, _ALLOW
