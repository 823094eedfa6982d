/* clock_nanosleep as the kernel has it, loaded before libfaketime: where that leaves the monotonic clock alone, its own
 * (0.9.10) subtracts wall time from what Python's time.sleep asks for, which fails with EINVAL. */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *asked, struct timespec *left) {
    int before = errno;
    int error = syscall(SYS_clock_nanosleep, clock, flags, asked, left) == 0 ? 0 : errno;
    errno = before;
    return error;
}
