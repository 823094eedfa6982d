"""`python -m windrow.worker serve|describe`, in the working folder of a cluster.

`serve` writes where it listens, its secret and its Python to a file that only its own user reads; `describe` waits for
that file and prints it. An old Python says so instead, in words that it can read.
"""

import json
import os
import sys
import time

HOME = ".windrow"
DESCRIPTION = "worker.json"
DESCRIBE_S = 30.0
OLDEST = (3, 11)


def _write(record):  # type: ignore[no-untyped-def]  # read by old Pythons, too
    os.makedirs(HOME, mode=0o700, exist_ok=True)
    made = os.path.join(HOME, DESCRIPTION + ".new")
    descriptor = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump(record, file)
    os.rename(made, os.path.join(HOME, DESCRIPTION))


def _describe():  # type: ignore[no-untyped-def]
    ends = time.monotonic() + DESCRIBE_S
    while time.monotonic() < ends:
        try:
            with open(os.path.join(HOME, DESCRIPTION)) as file:
                sys.stdout.write(file.read() + "\n")
            return 0
        except OSError:
            time.sleep(0.05)
    return 1


def _serve():  # type: ignore[no-untyped-def]
    if sys.version_info[:2] < OLDEST:
        _write({"python": list(sys.version_info[:3]), "port": None, "secret": None})  # type: ignore[no-untyped-call]
        time.sleep(600)
        return 1
    from windrow.worker.start import serve

    return serve(_write)


if __name__ == "__main__":
    sys.exit(_describe() if sys.argv[1:] == ["describe"] else _serve())  # type: ignore[no-untyped-call]
