// Loaded before libc: while the file that FAILING_DISK names exists, no sync of a SQLite file succeeds.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fails(int file) {
    const char *switch_path = getenv("FAILING_DISK");
    if (switch_path == NULL || access(switch_path, F_OK) != 0) return 0;
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return strstr(path, ".sqlite3") != NULL;
}

static int call(const char *name, int file) {
    if (fails(file)) {
        errno = EIO;
        return -1;
    }
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    return real(file);
}

int fsync(int file) { return call("fsync", file); }

int fdatasync(int file) { return call("fdatasync", file); }
