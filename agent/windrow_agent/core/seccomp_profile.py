"""The seccomp profile of a container, as container daemons read it: the system calls that it may make. Pure.

A daemon's own profile is as old as the daemon: older ones leave io_uring and sockets to the host of a virtual machine,
Podman's new user namespaces as well. This one is the same everywhere, and refuses what the filter of processes refuses.
"""

import json
from typing import Any, Final

from windrow_agent.core.seccomp_filter import FAMILIES, NAMESPACES, REFUSED

ALLOWED: Final = """
_llseek _newselect accept accept4 access adjtimex alarm arch_prctl arm_fadvise64_64 arm_sync_file_range bind
breakpoint brk cacheflush cachestat capget capset chdir chmod chown chown32 clock_adjtime64 clock_getres
clock_getres_time64 clock_gettime clock_gettime64 clock_nanosleep clock_nanosleep_time64 close close_range connect
copy_file_range creat dup dup2 dup3 epoll_create epoll_create1 epoll_ctl epoll_ctl_old epoll_pwait epoll_pwait2
epoll_wait epoll_wait_old eventfd eventfd2 execve execveat exit exit_group faccessat faccessat2 fadvise64
fadvise64_64 fallocate fanotify_mark fchdir fchmod fchmodat fchmodat2 fchown fchown32 fchownat fcntl fcntl64
fdatasync fgetxattr flistxattr flock fork fremovexattr fsetxattr fstat fstat64 fstatat64 fstatfs fstatfs64 fsync
ftruncate ftruncate64 futex futex_requeue futex_time64 futex_wait futex_waitv futex_wake futimesat get_mempolicy
get_robust_list get_thread_area getcpu getcwd getdents getdents64 getegid getegid32 geteuid geteuid32 getgid
getgid32 getgroups getgroups32 getitimer getpeername getpgid getpgrp getpid getppid getpriority getrandom getresgid
getresgid32 getresuid getresuid32 getrlimit getrusage getsid getsockname getsockopt gettid gettimeofday getuid
getuid32 getxattr inotify_add_watch inotify_init inotify_init1 inotify_rm_watch io_cancel io_destroy io_getevents
io_pgetevents io_setup io_submit ioctl ioprio_get ioprio_set ipc kill landlock_add_rule landlock_create_ruleset
landlock_restrict_self lchown lchown32 lgetxattr link linkat listen listmount listxattr llistxattr lremovexattr
lseek lsetxattr lstat lstat64 madvise map_shadow_stack mbind membarrier memfd_create memfd_secret mincore mkdir
mkdirat mknod mknodat mlock mlock2 mlockall mmap mmap2 modify_ldt mprotect mq_getsetattr mq_notify mq_open
mq_timedreceive mq_timedreceive_time64 mq_timedsend mq_timedsend_time64 mq_unlink mremap mseal msgctl msgget msgrcv
msgsnd msync munlock munlockall munmap nanosleep newfstatat open openat openat2 pause pidfd_getfd pidfd_open
pidfd_send_signal pipe pipe2 pkey_alloc pkey_free pkey_mprotect poll ppoll ppoll_time64 prctl pread64 preadv preadv2
prlimit64 process_mrelease process_vm_readv process_vm_writev pselect6 pselect6_time64 ptrace pwrite64 pwritev
pwritev2 read readahead readdir readlink readlinkat readv recv recvfrom recvmmsg recvmmsg_time64 recvmsg
remap_file_pages removexattr rename renameat renameat2 restart_syscall riscv_hwprobe rmdir rseq rt_sigaction
rt_sigpending rt_sigprocmask rt_sigqueueinfo rt_sigreturn rt_sigsuspend rt_sigtimedwait rt_sigtimedwait_time64
rt_tgsigqueueinfo sched_get_priority_max sched_get_priority_min sched_getaffinity sched_getattr sched_getparam
sched_getscheduler sched_rr_get_interval sched_rr_get_interval_time64 sched_setaffinity sched_setattr sched_setparam
sched_setscheduler sched_yield seccomp select semctl semget semop semtimedop semtimedop_time64 send sendfile
sendfile64 sendmmsg sendmsg sendto set_mempolicy set_mempolicy_home_node set_robust_list set_thread_area
set_tid_address set_tls setfsgid setfsgid32 setfsuid setfsuid32 setgid setgid32 setgroups setgroups32 setitimer
setpgid setpriority setregid setregid32 setresgid setresgid32 setresuid setresuid32 setreuid setreuid32 setrlimit
setsid setsockopt setuid setuid32 setxattr shmat shmctl shmdt shmget shutdown sigaction sigaltstack signal signalfd
signalfd4 sigpending sigprocmask sigreturn sigsuspend socketpair splice stat stat64 statfs statfs64 statmount statx
symlink symlinkat sync sync_file_range sync_file_range2 syncfs syscall sysinfo tee tgkill time timer_create
timer_delete timer_getoverrun timer_gettime timer_gettime64 timer_settime timer_settime64 timerfd timerfd_create
timerfd_gettime timerfd_gettime64 timerfd_settime timerfd_settime64 times tkill truncate truncate64 ugetrlimit umask
uname unlink unlinkat utime utimensat utimensat_time64 utimes vfork vmsplice wait4 waitid waitpid write writev
"""
"""Those of the daemons' own profiles that need no capability, but for the refused ones and `socketcall`, by which
programs of 32 bits could ask for any socket. A daemon skips a name that it does not know."""
PERSONALITIES: Final = (0x0, 0x0008, 0x20000, 0x20008, 0xFFFFFFFF)
"""Linux and a 32-bit machine, with the name of a kernel 2.6 or not, and the question which it is."""
_ARCHITECTURES: Final = {"X86_64": ("X86", "X32"), "AARCH64": ("ARM",)}
_ALLOW, _ERRNO = "SCMP_ACT_ALLOW", "SCMP_ACT_ERRNO"
_EPERM, _ENOSYS = 1, 38


def profile() -> str:
    """The whole profile, as JSON."""
    made = {
        "defaultAction": _ERRNO,
        "defaultErrnoRet": _ENOSYS,
        "archMap": [
            {"architecture": f"SCMP_ARCH_{name}", "subArchitectures": [f"SCMP_ARCH_{one}" for one in others]}
            for name, others in _ARCHITECTURES.items()
        ],
        "syscalls": [
            {"names": ALLOWED.split(), "action": _ALLOW},
            {"names": sorted(REFUSED), "action": _ERRNO, "errnoRet": _EPERM},
            {"names": ["clone3"], "action": _ERRNO, "errnoRet": _ENOSYS},
            _where("clone", "MASKED_EQ", NAMESPACES),
            *(_where("personality", "EQ", one) for one in PERSONALITIES),
            *_sockets(),
        ],
    }
    return json.dumps(made, separators=(",", ":"))


def _sockets() -> list[dict[str, Any]]:
    """Those of all families between the refused ones."""
    low, high = FAMILIES
    between = [_where("socket", "EQ", family) for family in range(low + 1, high)]
    return [_where("socket", "LT", low), *between, _where("socket", "GT", high)]


def _where(name: str, how: str, value: int) -> dict[str, Any]:
    """Allowed where its first argument is so; MASKED_EQ: where it has none of these bits."""
    return {"names": [name], "action": _ALLOW, "args": [{"index": 0, "value": value, "op": f"SCMP_CMP_{how}"}]}
