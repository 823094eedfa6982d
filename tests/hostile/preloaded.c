/* Loaded wherever a renter gets it loaded: says in what it is, and whether it sees what the agent keeps. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((constructor)) static void look(void) {
    char in[512] = {0}, said[700];
    if (readlink("/proc/self/exe", in, sizeof in - 1) < 0) return;
    int is_outside = strstr(in, "bwrap") || strstr(in, "pasta") || open(SECRET, O_RDONLY) >= 0;
    int size = snprintf(said, sizeof said, "%s in %s\n", is_outside ? "OUTSIDE" : "inside", in);
    if (write(2, said, size) < 0) return;
}

/* What the loader asks of an auditing library (rtld-audit(7)). */
unsigned int la_version(unsigned int version) { return version; }
/* What iconv asks of a converter. */
int gconv_init(void *step) { return look(), 1; }
