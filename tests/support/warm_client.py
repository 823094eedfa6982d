"""The program `windrow` of the tests: passes its words, environment, folder and standard streams on to a process that
has loaded the command line already (`warm_windrow.py`), and ends as the command does there.

It runs without the site's packages and loads next to nothing: all of it takes some 20 ms of a processor.
"""

import array
import os
import signal
import socket
import sys


def main() -> None:
    """Run the words after the socket's path."""
    place, words = sys.argv[1], sys.argv[2:]
    umask = os.umask(0)
    os.umask(umask)
    environment = [name + b"=" + value for name, value in os.environb.items()]
    parts = [os.getcwdb(), str(umask).encode(), str(len(words)).encode(), *map(os.fsencode, words), *environment]
    data = b"\0".join(parts)
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(place)
        streams = array.array("i", [0, 1, 2]).tobytes()
        line.sendmsg([len(data).to_bytes(8, "big")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, streams)])
        line.sendall(data)
        pid = int.from_bytes(line.recv(8, socket.MSG_WAITALL), "big")
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda number, _frame: os.kill(pid, number))
        said = line.recv(8, socket.MSG_WAITALL)
    status = int.from_bytes(said, "big", signed=True) if len(said) == 8 else 1
    if status < 0:
        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)


main()
