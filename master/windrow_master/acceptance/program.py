"""The program that a test rental runs on the host, and the parser of its log. Pure.

It serves SSH if its image has an SSH server (nobody can sign in), else greets as one would on the same port, and says
which. Beside that it counts the GPUs that it was given, writes to their memory and reads it back, and has each of them
measured by a child (benchmark.py). What it finds is one line of JSON each in its log, which is read as what a stranger
wrote.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from windrow_master.acceptance import benchmark
from windrow_master.acceptance.benchmark import Figures
from windrow_master.placement.model import Runtime
from windrow_proto.model import GpuFacts

PORT_MIN: Final = 20_000
PORT_MAX: Final = 32_000
"""Below the ports that Linux gives to connections that go out (32,768 and up)."""
LIFE_S: Final = 300
"""After which it ends by itself, whatever becomes of the Master."""
TOUCH_BYTES: Final = 1 << 30
"""Of each GPU's memory, at most: it takes less than a second, and a card that is broken there was seen to be."""
MARK: Final = "windrow-proof "
LINE_MAX: Final = 4_096
FIGURE_MAX: Final = 1 << 62

SCRIPT: Final = """
if command -v python3 >/dev/null 2>&1; then exec python3 -c "$PROOF_PROGRAM"; fi
trap 'exit 0' TERM
echo 'windrow-proof {"server": "", "why": "there is neither python3 nor a way to try a port in its image"}'
echo 'windrow-proof {"gpus": null, "why": "there is no python3 in its image to count them with"}'
echo 'windrow-proof {"measured": 0, "why": "there is no python3 in its image to measure it with"}'
sleep "$PROOF_LIFE_S" & wait
"""

PROGRAM: Final = r"""
import ctypes, json, os, shutil, signal, socket, subprocess, sys, tempfile, threading, time
port, bind, life = int(os.environ["PROOF_PORT"]), os.environ["PROOF_BIND"], int(os.environ["PROOF_LIFE_S"])
lock = threading.Lock()
def say(**found):
    with lock: print("windrow-proof " + json.dumps(found), flush=True)
children, starting = [], threading.RLock()
def start(words, **given):
    with starting:
        children.append(subprocess.Popen(words, **given))
        return children[-1]
def end(*_):
    with starting:
        for child in children: child.terminate()
        os._exit(0)
signal.signal(signal.SIGTERM, end)
def ssh():
    places = os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin:/sbin"
    server, keygen = shutil.which("sshd", path=places), shutil.which("ssh-keygen", path=places)
    if not server or not keygen: return False
    folder = tempfile.mkdtemp()
    key = os.path.join(folder, "key")
    try:
        subprocess.run([keygen, "-q", "-t", "ed25519", "-N", "", "-f", key], check=True, timeout=20)
        if os.getuid() == 0: os.makedirs("/run/sshd", exist_ok=True)
    except (OSError, subprocess.SubprocessError): return False
    options = ["PidFile=none", "AuthorizedKeysFile=none", "PasswordAuthentication=no", "PubkeyAuthentication=no"]
    options += ["KbdInteractiveAuthentication=no", "UsePAM=no", "ListenAddress=" + bind]
    words = [server, "-D", "-e", "-f", "/dev/null", "-p", str(port), "-h", key]
    child = start(words + [w for o in options for w in ("-o", o)])
    for _ in range(50):
        if child.poll() is not None: return False
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return True
        except OSError: time.sleep(0.1)
    child.terminate()
    return False
def serve():
    if ssh():
        say(server="sshd", port=port)
        return
    try: listener = socket.create_server((bind, port))
    except OSError: listener = socket.create_server((bind, 0))
    say(server="greeter", port=listener.getsockname()[1])
    while True:
        one, _ = listener.accept()
        with one:
            try:
                one.settimeout(10)
                one.sendall(b"SSH-2.0-windrow_proof\r\n")
                one.recv(256)
            except OSError: pass
threading.Thread(target=serve, daemon=True).start()
def cards():
    try: cuda = ctypes.CDLL("libcuda.so.1")
    except OSError: return say(gpus=None, why="there is no libcuda.so.1 inside")
    number = ctypes.c_int()
    code = cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(number))
    if code == 100: return say(gpus=0)  # CUDA_ERROR_NO_DEVICE
    if code: return say(gpus=None, why="CUDA does not start inside: error %d" % code)
    say(gpus=number.value)
    total = 0
    for index in range(number.value):
        size, wrong = touch(cuda, index)
        if wrong: return say(memory=None, gpu=index, why=wrong)
        total += size
    say(memory=total)
def touch(cuda, index):
    pattern, most = 0x57494E44 + index, int(os.environ["PROOF_TOUCH_BYTES"])
    context, place = ctypes.c_void_p(), ctypes.c_uint64()
    free, whole = ctypes.c_size_t(), ctypes.c_size_t()
    def ask(name, *given):
        code = getattr(cuda, name)(*given)
        if code: raise RuntimeError("%s on GPU %d: error %d" % (name, index, code))
    try:
        device = ctypes.c_int()
        ask("cuDeviceGet", ctypes.byref(device), index)
        ask("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        ask("cuCtxSetCurrent", context)
        ask("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(whole))
        words = min(most, free.value // 2) // 4
        ask("cuMemAlloc_v2", ctypes.byref(place), ctypes.c_size_t(words * 4))
        ask("cuMemsetD32_v2", place, ctypes.c_uint(pattern), ctypes.c_size_t(words))
        got = (ctypes.c_uint * 1024)()
        for step in range(16):
            start = (words - 1024) * step // 15
            ask("cuMemcpyDtoH_v2", got, ctypes.c_uint64(place.value + 4 * start), ctypes.c_size_t(4096))
            if any(word != pattern for word in got): return 0, "what was read is not what was written"
        ask("cuMemFree_v2", place)
        ask("cuDevicePrimaryCtxRelease_v2", device)
        return words * 4, ""
    except (RuntimeError, AttributeError) as error: return 0, str(error)
def measure():
    asked = json.loads(os.environ.get("PROOF_CARDS", "[]"))
    ends, begun = time.monotonic() + int(os.environ.get("PROOF_WAIT_S", "0")), []
    for card in asked:
        given = dict(os.environ, PROOF_CARD=json.dumps(card))
        words = [sys.executable, "-c", os.environ["PROOF_BENCHMARK"]]
        child = start(words, env=given, stderr=subprocess.DEVNULL)
        begun.append((card, child))
    for card, child in begun:
        try: code = child.wait(max(0.1, ends - time.monotonic()))
        except subprocess.TimeoutExpired:
            child.kill()
            say(benchmark=card[0], why="it was not measured in time")
            continue
        if code: say(benchmark=card[0], why="what measures it ended with %d" % code)
    say(measured=len(begun))
cards()
measure()
time.sleep(life)
end()
"""


def command(port: int, runtime: str, gpus: Sequence[GpuFacts] = ()) -> tuple[tuple[str, ...], dict[str, str]]:
    """The words and the environment of the rental. gpus: to be measured. In a container it listens for the host that
    holds it; as a plain process, which shares the host's network, on loopback. A simulated host is asked for what it
    draws."""
    if runtime == Runtime.SIMULATED:
        return ("rates", MARK), {}
    environment = {
        "PROOF_PROGRAM": PROGRAM,
        "PROOF_PORT": str(port),
        "PROOF_BIND": "127.0.0.1" if runtime == Runtime.PROCESS else "0.0.0.0",
        "PROOF_LIFE_S": str(LIFE_S),
        "PROOF_TOUCH_BYTES": str(TOUCH_BYTES),
    }
    return ("sh", "-c", SCRIPT), environment | benchmark.environment(gpus)


def port_of(chance: int) -> int:
    """The port to try, from any number."""
    return PORT_MIN + chance % (PORT_MAX - PORT_MIN)


@dataclass(frozen=True, slots=True)
class Told:
    """The content of the log so far. server: sshd or greeter, "" where there is none, None: not said yet; gpus,
    memory: None where nothing could be counted or touched, with the reason in the words beside it; figures: by card,
    all of them once has_measured."""

    server: str | None = None
    port: int = 0
    server_why: str = ""
    has_counted: bool = False
    gpus: int | None = None
    gpus_why: str = ""
    has_touched: bool = False
    memory_bytes: int | None = None
    memory_why: str = ""
    has_measured: bool = False
    measured_why: str = ""
    figures: Mapping[str, Figures] = field(default_factory=dict)


def read(log: bytes) -> Told:
    """The lines of the program among whatever else is there; what is no such line is passed over."""
    server, counted, touched, measured = _none, _none, _none, _none
    cards: list[Mapping[str, Any]] = []
    for raw in log.splitlines():
        line = raw[: LINE_MAX + 1].decode(errors="replace")
        if not line.startswith(MARK) or len(line) > LINE_MAX:
            continue
        try:
            found = json.loads(line.removeprefix(MARK))
        except (ValueError, RecursionError):
            continue
        if not isinstance(found, dict):
            continue
        if "benchmark" in found:  # such a line has a figure of memory, too
            cards.append(found)
        else:
            server = found if "server" in found else server
            counted = found if "gpus" in found else counted
            touched = found if "memory" in found else touched
            measured = found if "measured" in found else measured
    said = server.get("server")
    return Told(
        server=said if said in ("sshd", "greeter") else None if server is _none else "",
        port=_figure(server, "port") or 0,
        server_why=_why(server),
        has_counted=counted is not _none,
        gpus=_figure(counted, "gpus"),
        gpus_why=_why(counted),
        has_touched=touched is not _none,
        memory_bytes=_figure(touched, "memory"),
        memory_why=_why(touched),
        has_measured=measured is not _none,
        measured_why=_why(measured),
        figures=benchmark.read(cards),
    )


_none: Final[Mapping[str, Any]] = {}


def _figure(found: Mapping[str, Any], name: str) -> int | None:
    value = found.get(name)
    return value if type(value) is int and 0 <= value < FIGURE_MAX else None


def _why(found: Mapping[str, Any]) -> str:
    value = found.get("why")
    text = value if isinstance(value, str) else ""
    return "".join(letter for letter in text if letter.isprintable())[:200]
