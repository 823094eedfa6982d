/* What a renter may try from inside a workload, each try a line: its name and `passed` or `refused: why`.
 *
 * probes all|looks HOST PEER SECRET KEY: the addresses of the host and of another renter's workload, a file of
 * the agent's, the key of shared memory of the host's; probes listen: be that other workload. Each try is a process of
 * its own with two seconds to live, so that none of them spoils the next. Static: the image has nothing else in it.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/if_packet.h>
#include <linux/netlink.h>
#include <net/ethernet.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/io.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *host, *peer, *secret, *key;

/* A TCP connection, as far as the other end's word that it is there. */
static int reach(const char *address, int port) {
    struct sockaddr_storage where = {0};
    struct sockaddr_in *four = (void *)&where;
    struct sockaddr_in6 *six = (void *)&where;
    int family = strchr(address, ':') ? AF_INET6 : AF_INET, error = 0;
    socklen_t size = sizeof error;
    where.ss_family = family;
    if (family == AF_INET) {
        four->sin_port = htons(port);
        inet_pton(AF_INET, address, &four->sin_addr);
    } else {
        six->sin6_port = htons(port);
        inet_pton(AF_INET6, address, &six->sin6_addr);
    }
    int line = socket(family, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (line < 0) return -1;
    if (connect(line, (void *)&where, family == AF_INET ? sizeof *four : sizeof *six) == 0) return 0;
    if (errno != EINPROGRESS) return -1;
    struct pollfd ready = {line, POLLOUT, 0};
    if (poll(&ready, 1, 700) != 1) return errno = ETIMEDOUT, -1;
    getsockopt(line, SOL_SOCKET, SO_ERROR, &error, &size);
    return error ? (errno = error, -1) : 0;
}

/* A datagram that is answered. */
static int ask(const char *address, int port) {
    struct sockaddr_in where = {.sin_family = AF_INET, .sin_port = htons(port)};
    char answer[16];
    inet_pton(AF_INET, address, &where.sin_addr);
    int line = socket(AF_INET, SOCK_DGRAM, 0);
    if (line < 0 || connect(line, (void *)&where, sizeof where) || send(line, "hello", 5, 0) < 0) return -1;
    struct pollfd ready = {line, POLLIN, 0};
    if (poll(&ready, 1, 700) != 1) return errno = ETIMEDOUT, -1;
    return recv(line, answer, sizeof answer, 0) > 0 ? 0 : -1;
}

static int opens(const char *path, int flags) { return open(path, flags) < 0 ? -1 : 0; }

static int writes(const char *path, const char *text) {
    int file = open(path, O_WRONLY);
    return file < 0 || write(file, text, strlen(text)) < 0 ? -1 : 0;
}

static int makes(const char *path) { return open(path, O_CREAT | O_WRONLY, 0600) < 0 ? -1 : 0; }

static int has(const char *path) {
    struct stat found;
    return stat(path, &found);
}

/* Whether any of these paths is there. */
static int has_any(const char **paths) {
    for (; *paths; paths++)
        if (!has(*paths)) return 0;
    return -1;
}

/* A socket of the host's: by its path, or without one where it begins with `@`. */
static int meets(const char *name) {
    struct sockaddr_un where = {.sun_family = AF_UNIX};
    strncpy(where.sun_path, name, sizeof where.sun_path - 1);
    if (*name == '@') *where.sun_path = 0;
    int line = socket(AF_UNIX, SOCK_STREAM, 0);
    return connect(line, (void *)&where, offsetof(struct sockaddr_un, sun_path) + strlen(name));
}

/* A file of the control group of memory, of either version: where there are several, they lie in a folder of our own. */
static const char *group(const char *name) {
    static char whole[300];
    snprintf(whole, sizeof whole, "/sys/fs/cgroup%s/%s", has("/sys/fs/cgroup/memory") ? "" : "/memory", name);
    return whole;
}

static int below(const char *root, const char *path) {
    char whole[512];
    snprintf(whole, sizeof whole, "%s%s", root, path);
    return opens(whole, O_RDONLY);
}

/* Whether a process is in sight that is neither ours nor the first of the sandbox. */
static int sees_others(void) {
    DIR *folder = opendir("/proc");
    struct dirent *one;
    while (folder && (one = readdir(folder))) {
        char path[300], name[32] = {0};
        snprintf(path, sizeof path, "/proc/%s/comm", one->d_name);
        int file = *one->d_name >= '1' && *one->d_name <= '9' ? open(path, O_RDONLY) : -1;
        if (file < 0 || read(file, name, sizeof name - 1) <= 0) continue;
        int is_own = !strncmp(name, "probes", 6) || !strncmp(name, "bwrap", 5) || !strncmp(name, "docker-init", 11) || !strncmp(name, "catatonit", 9);
        if (!is_own) return 1;
        close(file);
    }
    return 0;
}

/* Whether the key that was put on the host is in sight. */
static int sees_key(void) {
    char text[65536] = {0};
    int file = open("/proc/keys", O_RDONLY), length = 0, more = 0;
    while (file >= 0 && length < (int)sizeof text - 1 && (more = read(file, text + length, sizeof text - 1 - length)) > 0)
        length += more;
    return strstr(text, "windrow-planted") != NULL;
}

/* Whether the second process is the kernel's own, as it is outside of every process namespace. */
static int sees_kernel_thread(void) {
    char name[32] = {0};
    int file = open("/proc/2/comm", O_RDONLY);
    return file >= 0 && read(file, name, sizeof name - 1) > 0 && !strncmp(name, "kthreadd", 8);
}

/* A number of the status of a process, in hexadecimal. */
static unsigned long long status(int pid, const char *name) {
    char line[256];
    unsigned long long value = ~0ull;
    snprintf(line, sizeof line, "/proc/%d/status", pid);
    FILE *file = fopen(line, "r");
    while (file && fgets(line, sizeof line, file))
        if (!strncmp(line, name, strlen(name))) value = strtoull(line + strlen(name), NULL, 16);
    return value;
}

static int when(int is_so) { return is_so ? 0 : (errno = EPERM, -1); }

static int route_is_added(void) {
    struct { struct nlmsghdr head; char rest[64]; } word = {0};
    struct { struct nlmsghdr head; struct nlmsgerr error; } answer = {0};
    int line = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
    if (line < 0) return -1;
    word.head.nlmsg_len = sizeof word;
    word.head.nlmsg_type = 24; /* RTM_NEWROUTE */
    word.head.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE;
    word.rest[0] = AF_INET;
    if (send(line, &word, sizeof word, 0) < 0 || recv(line, &answer, sizeof answer, 0) < 0) return -1;
    return answer.error.error == -EPERM ? (errno = EPERM, -1) : 0;
}

static int handle_is_opened(void) {
    struct { struct file_handle head; unsigned char id[8]; } root = {{8, 1, {}}, {2, 0, 0, 0, 0, 0, 0, 0}};
    int place = open("/etc", O_RDONLY);
    return syscall(SYS_open_by_handle_at, place, &root, O_RDONLY) < 0 ? -1 : 0;
}

static int device_is_made(int major, int minor) {
    mknod("/tmp/device", S_IFBLK | 0600, makedev(major, minor));
    return opens("/tmp/device", O_RDONLY);
}

static int mounts(const char *kind) { return mount("none", "/tmp", kind, 0, NULL); }

static int unshares(int what) { return unshare(what); }

static int joins(const char *path, int what) {
    int space = open(path, O_RDONLY);
    return space < 0 ? -1 : setns(space, what);
}

static int clones(unsigned long flags) {
    long child = syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);
    return child == 0 ? (_exit(0), 0) : child < 0 ? -1 : 0;
}

static int clones_anew(uint64_t flags) {
    uint64_t words[8] = {flags, 0, 0, 0, SIGCHLD};
    long child = syscall(SYS_clone3, words, sizeof words);
    return child == 0 ? (_exit(0), 0) : child < 0 ? -1 : 0;
}

static int joins_by_pid(int what) {
    int first = syscall(SYS_pidfd_open, 1, 0);
    return first < 0 ? -1 : setns(first, what);
}

/* The parts of a mount without mount(2): a new file system, and a copy of one that is there. */
static int opens_kind(const char *kind) { return syscall(SYS_fsopen, kind, 0) < 0 ? -1 : 0; }

static int copies_tree(void) { return syscall(SYS_open_tree, AT_FDCWD, "/", 1) < 0 ? -1 : 0; }

static int moves_mount(void) { return syscall(SYS_move_mount, AT_FDCWD, "/proc", AT_FDCWD, "/tmp", 0); }

static int sets_mount(void) {
    uint64_t words[4] = {0, 1};
    return syscall(SYS_mount_setattr, AT_FDCWD, "/", 0, words, sizeof words);
}

static int rings(void) { return syscall(SYS_io_uring_setup, 8, (char[120]){0}) < 0 ? -1 : 0; }

static int speaks(int family, int kind, int protocol) { return socket(family, kind, protocol) < 0 ? -1 : 0; }

static int packet(void) { return socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL)) < 0 ? -1 : 0; }

static int raw(void) { return socket(AF_INET, SOCK_RAW, IPPROTO_ICMP) < 0 ? -1 : 0; }

static int bpf_is_loaded(void) {
    union bpf_attr map = {.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1};
    return syscall(SYS_bpf, BPF_MAP_CREATE, &map, sizeof map) < 0 ? -1 : 0;
}

static int perf_is_opened(void) {
    char attribute[128] = {0};
    ((uint32_t *)attribute)[1] = sizeof attribute;
    return syscall(SYS_perf_event_open, attribute, -1, 0, -1, 0) < 0 ? -1 : 0;
}

/* How many processes one can start, beyond any limit that a host would set. */
static int forks(void) {
    for (int count = 0; count < 20000; count++) {
        pid_t child = fork();
        if (child < 0) return kill(0, SIGTERM), -1;
        if (child == 0) pause();
    }
    return 0;
}

/* One try as a process of its own, which says what it came to. */
#define BEGUN(name, what)                                                          \
    ({                                                                             \
        fflush(stdout);                                                            \
        pid_t child = fork();                                                      \
        if (child == 0) {                                                          \
            alarm(2);                                                              \
            errno = 0;                                                             \
            int passed = (what) >= 0;                                              \
            printf("%s: %s%s\n", name, passed ? "passed" : "refused: ", passed ? "" : strerror(errno)); \
            fflush(stdout);                                                        \
            _exit(0);                                                              \
        }                                                                          \
        child;                                                                     \
    })

static void end(pid_t child, const char *name) {
    int how = 0;
    waitpid(child, &how, 0);
    if (WIFSIGNALED(how)) printf("%s: refused: %s\n", name, strsignal(WTERMSIG(how)));
}

#define TRY(name, what) end(BEGUN(name, what), name)

/* What is not answered takes its time: such tries are made at once, and their ends awaited together. */
static struct { const char *name; pid_t child; } beside[32];
static int count_beside;
#define BESIDE(try, what) (beside[count_beside].name = try, beside[count_beside++].child = BEGUN(try, what))

static void network(void) {
    BESIDE("metadata", reach("169.254.169.254", 80));
    BESIDE("metadata of tasks", reach("169.254.170.2", 80));
    BESIDE("metadata by datagram", ask("169.254.169.254", 53));
    BESIDE("metadata in IPv6", reach("fd00:ec2::254", 80));
    BESIDE("the host by its bridge", reach(host, 2375));
    BESIDE("the host by its bridge, by datagram", ask(host, 5353));
    BESIDE("the host by its other address", reach("10.77.0.1", 2375));
    BESIDE("a neighbour in 10/8", reach("10.77.0.2", 80));
    BESIDE("a neighbour in 172.16/12", reach("172.31.9.2", 80));
    BESIDE("a neighbour in 192.168/16", reach("192.168.77.2", 80));
    BESIDE("a neighbour in 100.64/10", reach("100.64.7.2", 80));
    BESIDE("a neighbour's names", ask("10.77.0.2", 53));
    BESIDE("another renter's container", reach(peer, 8080));
    BESIDE("a mail server", reach("11.22.33.2", 25));
    BESIDE("a mail server by submission", reach("11.22.33.2", 587));
    BESIDE("outside", reach("11.22.33.2", 80)); /* as it may */
    while (count_beside) count_beside--, end(beside[count_beside].child, beside[count_beside].name);
}

/* What is seen without doing anything: the control, which runs on the host itself, may look for it as well. */
static void sights(void) {
    TRY("an abstract socket", meets("@windrow-attacked"));
    TRY("keys of others", when(sees_key()));
    TRY("the host's shared memory", shmget((key_t)strtol(key, NULL, 0), 0, 0) < 0 ? -1 : 0);
    TRY("the agent's file", opens(secret, O_RDONLY));
    TRY("the agent's file by a process", below("/proc/1/root", secret));
    TRY("the agent's file by a folder", below("/proc/1/cwd/../../..", secret));
    TRY("others' processes", when(sees_others()));
    TRY("effective capabilities", when(status(getpid(), "CapEff:") != 0));
    TRY("new privileges", when(status(getpid(), "NoNewPrivs:") != 1));
    TRY("system calls without a filter", when(status(getpid(), "Seccomp:") != 2));
}

static void system_calls(void) {
    TRY("raw socket", raw());
    TRY("packet socket", packet());
    TRY("route", route_is_added());
    TRY("host name", sethostname("other", 5));
    TRY("mount tmpfs", mounts("tmpfs"));
    TRY("mount proc", mounts("proc"));
    TRY("mount sysfs", mounts("sysfs"));
    TRY("mount bind", mount("/proc", "/tmp", NULL, MS_BIND, NULL));
    TRY("mount the root writable", mount(NULL, "/", NULL, MS_REMOUNT, NULL));
    TRY("mount cgroup", mounts("cgroup"));
    TRY("mount cgroup of version 2", mounts("cgroup2"));
    TRY("mount debugfs", mounts("debugfs"));
    TRY("mount bpf", mounts("bpf"));
    TRY("mount message queues", mounts("mqueue"));
    TRY("mount by descriptor", opens_kind("tmpfs"));
    TRY("mount proc by descriptor", opens_kind("proc"));
    TRY("copy of a tree", copies_tree());
    TRY("move of a mount", moves_mount());
    TRY("attributes of a mount", sets_mount());
    TRY("another propagation", mount(NULL, "/", NULL, MS_REC | MS_SHARED, NULL));
    TRY("unmount /proc", umount2("/proc", MNT_DETACH));
    TRY("unmount /tmp", umount2("/tmp", MNT_DETACH));
    TRY("unmount", umount2("/workspace", MNT_DETACH));
    TRY("new root", syscall(SYS_pivot_root, "/workspace", "/workspace"));
    TRY("change root", chroot("/workspace"));
    TRY("user namespace", unshares(CLONE_NEWUSER));
    TRY("mount namespace", unshares(CLONE_NEWNS));
    TRY("network namespace", unshares(CLONE_NEWNET));
    TRY("join a namespace", joins("/proc/1/ns/net", CLONE_NEWNET));
    TRY("control group namespace", unshares(CLONE_NEWCGROUP));
    TRY("child in a user namespace", clones(CLONE_NEWUSER));
    TRY("child in a mount namespace", clones(CLONE_NEWNS));
    TRY("child in a user namespace, anew", clones_anew(CLONE_NEWUSER));
    TRY("join a user namespace", joins("/proc/1/ns/user", CLONE_NEWUSER));
    TRY("join a mount namespace", joins("/proc/1/ns/mnt", CLONE_NEWNS));
    TRY("join by process", joins_by_pid(CLONE_NEWNET | CLONE_NEWNS));
    TRY("open by handle", handle_is_opened());
    TRY("block device", device_is_made(254, 0));
    TRY("memory device", (mknod("/tmp/mem", S_IFCHR | 0600, makedev(1, 1)), opens("/tmp/mem", O_RDONLY)));
    TRY("bpf", bpf_is_loaded());
    TRY("perf", perf_is_opened());
    TRY("keyring", syscall(SYS_add_key, "user", "windrow", "x", 1, -3));
    TRY("keys of the session", syscall(SYS_keyctl, 11, -3, 0, 0));
    TRY("a new session of keys", syscall(SYS_keyctl, 1, "windrow"));
    TRY("a key of others", syscall(SYS_request_key, "user", "windrow-planted", 0, -3));
    TRY("rings of the kernel", rings());
    TRY("the host of a virtual machine", speaks(AF_VSOCK, SOCK_STREAM, 0));
    TRY("ciphers of the kernel", speaks(AF_ALG, SOCK_SEQPACKET, 0));
    TRY("express data path", speaks(44, SOCK_RAW, 0));
    TRY("reliable datagrams", speaks(AF_RDS, SOCK_SEQPACKET, 0));
    TRY("inter-process clusters", speaks(AF_TIPC, SOCK_SEQPACKET, 0));
    TRY("keys for packets", speaks(AF_KEY, SOCK_RAW, 2));
    TRY("amateur radio", speaks(AF_AX25, SOCK_DGRAM, 0));
    TRY("bluetooth", speaks(AF_BLUETOOTH, SOCK_RAW, 1));
    TRY("kernel module", syscall(SYS_init_module, "", 0, ""));
    TRY("another kernel", syscall(SYS_kexec_load, 0, 0, NULL, 0));
    TRY("reboot", reboot(0x89abcdef));
    TRY("swap", swapoff("/swapfile") == 0 ? 0 : errno == EPERM ? -1 : 0);
    TRY("clock", settimeofday(&(struct timeval){1000000000, 0}, NULL));
    TRY("ports of the machine", iopl(3));
    TRY("kernel log", syscall(SYS_syslog, 3, (char[64]){0}, 64));
    TRY("page faults of the kernel", syscall(SYS_userfaultfd, 0));
    TRY("real-time priority", sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){50}));
    TRY("a better nice value", setpriority(PRIO_PROCESS, 0, -20));
    TRY("more open files than the limit", setrlimit(RLIMIT_NOFILE, &(struct rlimit){1u << 30, 1u << 30}));
    TRY("change the owner of a file", (makes("/tmp/own"), chown("/tmp/own", 1234, 1234)));
    TRY("become another user", setresuid(1234, 1234, 1234));
    TRY("accounting", acct(NULL));
    TRY("quota", syscall(SYS_quotactl, 0, "/dev/vda", 0, NULL));
    TRY("system hang-up", vhangup());
}

static void files(void) {
    TRY("write to the root", makes("/escape"));
    TRY("write to /etc", makes("/etc/escape"));
    TRY("core pattern", writes("/proc/sys/kernel/core_pattern", "|/tmp/x"));
    TRY("sysrq", writes("/proc/sysrq-trigger", "h"));
    TRY("address layout", writes("/proc/sys/kernel/randomize_va_space", "0"));
    TRY("power state", writes("/sys/power/state", "freeze"));
    TRY("control group", mkdir(group("escape"), 0700));
    TRY("limit of the control group", writes(group("memory.limit_in_bytes"), "-1") < 0 ? writes(group("memory.max"), "max") : 0);
    TRY("processes of the control group", writes(group("cgroup.procs"), "1"));
    TRY("release agent", writes(group("release_agent"), "/tmp/x"));
    TRY("devices of the control group", writes("/sys/fs/cgroup/devices/devices.allow", "a"));
    TRY("kinds of programs", writes("/proc/sys/fs/binfmt_misc/register", ":x:M::x::/tmp/x:"));
    TRY("helper for modules", writes("/proc/sys/kernel/modprobe", "/tmp/x"));
    TRY("helper for events", writes("/sys/kernel/uevent_helper", "/tmp/x"));
    TRY("forwarding", writes("/proc/sys/net/ipv4/ip_forward", "1"));
    TRY("another name of the host", writes("/proc/sys/kernel/hostname", "x"));
    TRY("merged pages", writes("/sys/kernel/mm/ksm/run", "1"));
    TRY("processors off", writes("/sys/devices/system/cpu/cpu1/online", "0"));
    TRY("who is killed first", writes("/proc/self/oom_score_adj", "-1000"));
    TRY("debugging of the kernel", opens("/sys/kernel/debug/tracing/trace", O_RDONLY));
    TRY("rights of the first process", when(status(1, "CapEff:") != 0 || status(1, "Seccomp:") != 2));
    TRY("sockets of the host", has_any((const char *[]){
        "/run/containerd/containerd.sock", "/run/podman/podman.sock", "/run/dbus/system_bus_socket",
        "/run/systemd/private", "/run/systemd/notify", "/run/user/0/bus", "/run/crio/crio.sock", NULL}));
    TRY("devices of the host", has_any((const char *[]){
        "/dev/net/tun", "/dev/loop-control", "/dev/mapper/control", "/dev/vhost-vsock", "/dev/vsock",
        "/dev/uinput", "/dev/cpu/0/msr", "/dev/port", "/dev/kmem", "/dev/snapshot", "/dev/hpet", NULL}));
    TRY("kernel memory", opens("/proc/kcore", O_RDONLY) < 0 ? -1 : when(has("/proc/kcore") == 0 && 0));
    TRY("physical memory", opens("/dev/mem", O_RDONLY));
    TRY("kernel messages", opens("/dev/kmsg", O_RDONLY));
    TRY("disk", opens("/dev/vda", O_RDONLY) < 0 ? opens("/dev/sda", O_RDONLY) : 0);
    TRY("virtual machines", opens("/dev/kvm", O_RDWR));
    TRY("file systems in user space", opens("/dev/fuse", O_RDWR));
    TRY("a card that was not rented", has("/dev/nvidia0") < 0 ? has("/dev/nvidiactl") : 0);
    TRY("the daemon's socket", has("/var/run/docker.sock") < 0 ? has("/run/docker.sock") : 0);
    TRY("the host's accounts", has("/etc/shadow"));
    TRY("the host's processes", when(getpid() > 4000 || sees_kernel_thread()));
    TRY("bounding capabilities", when(status(getpid(), "CapBnd:") != 0));
    TRY("fork without end", forks());
}

/* Another renter's server. */
static int listen_for_ever(void) {
    struct sockaddr_in where = {.sin_family = AF_INET, .sin_port = htons(8080)};
    int line = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(line, (void *)&where, sizeof where) || listen(line, 8)) return 1;
    for (;;) close(accept(line, NULL, NULL));
}

int main(int count, char **words) {
    signal(SIGTERM, exit);
    if (count == 2) return listen_for_ever();
    if (count != 6) return 2;
    host = words[2], peer = words[3], secret = words[4], key = words[5];
    network(), sights();
    if (!strcmp(words[1], "all")) system_calls(), files();
    return 0;
}
