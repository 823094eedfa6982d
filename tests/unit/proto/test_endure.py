"""A long-lived process sets its memory up at its start."""

import subprocess
import sys

SCRIPT = """
import gc, platform
from windrow_proto import endure
before = gc.get_threshold()
endure.endure()
young, *older = gc.get_threshold()
print(gc.get_freeze_count() > 1000, young == endure.YOUNG_MAX, tuple(older) == before[1:])
print(endure.keep_large_blocks() or platform.libc_ver()[0] != "glibc")
"""

FAULTS = """
import resource, sys
from windrow_proto import endure
if sys.argv[1] == "yes":
    assert endure.keep_large_blocks()
def use():
    for _ in range(200):
        block = bytearray(1 << 20)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
use()
first = use()
print(use() - first)
"""

FILES = """
import resource
from windrow_proto import endure
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
endure.endure()
print(resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard))
"""


def said(script, *arguments):
    done = subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_what_is_there_at_the_start_is_never_searched_again():
    assert said(SCRIPT) == ["True"] * 4


def test_large_blocks_are_used_again_without_asking_the_kernel_for_each_page():
    plain, kept = int(said(FAULTS, "no")[0]), int(said(FAULTS, "yes")[0])
    assert kept * 10 <= plain


def test_a_process_may_hold_as_many_connections_as_the_system_allows():
    assert said(FILES) == ["True"]
