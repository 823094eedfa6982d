"""A renter's process tries to get out of its sandbox, on a host whose agent is root and on one whose agent is not."""

import ctypes
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.services import need
from tests.support.confined import ORDINARY, STAY, Confined, confined
from tests.support.places import commands
from windrow_agent.host.psutil_reader import addresses
from windrow_agent.runtimes import sandbox
from windrow_agent.runtimes.process import ProcessRuntime
from windrow_proto.conditions import ConditionCode
from windrow_proto.errors import InvalidInput, RuntimeUnavailable
from windrow_proto.ids import ClusterId, HostId, WorkloadId
from windrow_proto.model import WorkloadSpec

HERE = Path(__file__).parent
PLANTED = "PLANTED-not-for-renters"
HOST = HostId("host_hostile")
SPEC = WorkloadSpec(WorkloadId("work_1"), ClusterId("cluster_1"), (), "process", argv=("true",))
SCRIPT = "[ -e {secret} ] && echo OUTSIDE by $0; true\n"
MODULE = "import os, sys\nif os.path.exists({secret!r}): print('OUTSIDE by', sys.argv, file=sys.stderr)\n"
AS = pytest.mark.parametrize("host", [None, ORDINARY], ids=["root", "ordinary"], indirect=True)


@dataclass(frozen=True, slots=True)
class Library:
    """The library that a renter has compiled. secret: the file that it looks for."""

    path: Path
    secret: Path


@pytest.fixture
def host(request: pytest.FixtureRequest) -> Iterator[Confined]:
    need("bubblewrap")
    with confined(request.param, PLANTED, WINDROW_TEST_SECRET=PLANTED) as found:
        yield found


@pytest.fixture
def library(host: Confined, tmp_path: Path) -> Library:
    need("gcc")
    secret, made = host.secrets[1], tmp_path / "preloaded.so"
    words = ["gcc", "-shared", "-fPIC", f'-DSECRET="{secret}"', "-o", str(made), str(HERE / "preloaded.c")]
    subprocess.run(words, check=True, timeout=60)
    return Library(made, secret)


@pytest.fixture
def scripts(library: Library, tmp_path: Path) -> dict[str, str]:
    """A folder in which everything that a program may take from its folder is the renter's."""
    named = {
        **dict.fromkeys(("bwrap", "pasta", "nft", "sh", "env.sh"), SCRIPT.format(secret=library.secret)),
        **dict.fromkeys(("sitecustomize.py", "usercustomize.py", "json.py"), MODULE.format(secret=str(library.secret))),
        "gconv-modules": "module UTF-8// INTERNAL ./preloaded 1\n",
    }
    found = dict.fromkeys(
        ("preloaded.so", "libcap.so.2", "libselinux.so.1", "libc.so.6", "libseccomp.so.2"), library.path
    )
    for name, text in named.items():
        found[name] = tmp_path / name
        found[name].write_text(text)
    return {name: str(path) for name, path in found.items()}


ALONE = {"LD_PRELOAD": "./preloaded.so", "LD_AUDIT": "./preloaded.so", "LD_BIND_NOW": "1"}
TOGETHER = {
    "LD_PRELOAD": "./preloaded.so",
    "GCONV_PATH": ".",
    "LOCPATH": ".",
    "BASH_ENV": "./env.sh",
    "ENV": "./env.sh",
    "PYTHONPATH": ".",
    "PYTHONSTARTUP": "./sitecustomize.py",
    "PERL5OPT": "-Msitecustomize",
    "GLIBC_TUNABLES": "glibc.malloc.check=3",
    "HOSTALIASES": "./env.sh",
    "TMPDIR": ".",
    "BWRAP": "./bwrap",
}


@AS
@pytest.mark.row("F1")
def test_what_a_renter_sets_never_runs_outside_of_its_sandbox(host: Confined, scripts: dict[str, str]) -> None:
    waiting = ["/bin/sh", "-c", f"echo begun; {STAY}"]
    said = [
        host.run(waiting, ALONE, scripts, ["/bin/true"]),
        host.run(waiting, TOGETHER, scripts, ["/usr/bin/python3", "-c", "print('of python')"]),
        host.run(["true"], {"PATH": ".:/usr/bin:/bin", "LD_LIBRARY_PATH": "."}, {**scripts, "true": "/bin/true"}),
    ]

    everything = "".join(one.log + one.beside for one in said)
    assert "OUTSIDE" not in everything
    assert "inside in" in said[0].log and "inside in" in said[0].beside, "what was to be loaded was, in the sandbox"
    assert "inside in" in said[1].log and "inside in" in said[1].beside
    assert PLANTED not in everything


@AS
@pytest.mark.row("F2")
def test_nothing_that_a_renter_tries_inside_leads_out(host: Confined) -> None:
    with ExitStack() as cleanup:
        told = _met(cleanup)
        env = {"SECRET": str(host.secrets[1]), "AGENT": str(os.getpid()), **told}
        script = (HERE / "inside.py").read_text()
        waits = f"{script}\nos.execvp('sh', ['sh', '-c', {STAY!r}])\n"
        said = host.run(["python3", "-c", waits], env, {}, ["python3", "-c", script])

    for words in (said.log, said.beside):
        tried = json.loads(next(line for line in words.splitlines() if line.startswith("{")))
        assert len(tried) >= 80
        assert {what: had for what, had in tried.items() if had != "held"} == {}
        assert PLANTED not in words


def _met(cleanup: ExitStack) -> dict[str, str]:
    """Sets up the things on this host that a neighbour could find: ports, sockets with and without a name, memory."""
    server = cleanup.enter_context(socket.create_server(("", 0)))
    abstract = cleanup.enter_context(socket.socket(socket.AF_UNIX))
    abstract.bind(f"\0windrow-{os.getpid()}")
    abstract.listen()
    folder = cleanup.enter_context(tempfile.TemporaryDirectory(prefix="windrow-agent.", dir="/tmp"))
    named = cleanup.enter_context(socket.socket(socket.AF_UNIX))
    named.bind(f"{folder}/ssh-agent")
    named.listen()
    Path(folder).chmod(0o755)
    Path(folder, "ssh-agent").chmod(0o777)
    key, libc = 0x57494E44, ctypes.CDLL(None)
    memory = libc.shmget(key, 4096, 0o1666)
    cleanup.callback(libc.shmctl, memory, 0, None)
    sockets = [f"{folder}/ssh-agent", "/var/run/docker.sock", "/run/docker.sock", "/run/dbus/system_bus_socket"]
    own = [one for one in addresses() if not one.startswith("127.")]
    return {
        "PORT": str(server.getsockname()[1]),
        "ABSTRACT": f"windrow-{os.getpid()}",
        "SOCKETS": json.dumps([*sockets, "/run/podman/podman.sock", "/run/containerd/containerd.sock"]),
        "ADDRESSES": json.dumps([*own, own[0].rsplit(".", 1)[0] + ".1", "169.254.169.254", "198.18.255.1"]),
        "SHM_KEY": str(key),
        "PREFIX": sys.base_prefix,
    }


@pytest.mark.row("F1")
@pytest.mark.parametrize("value", ["x\0--bind\0/\0/host", "x\0", "\0"])
async def test_a_variable_cannot_say_anything_to_bubblewrap(value: str, tmp_path: Path) -> None:
    need("bubblewrap")
    runtime = ProcessRuntime(tmp_path / "process", tmp_path, HOST)
    spec = WorkloadSpec(SPEC.workload_id, SPEC.cluster_id, (), "process", argv=("true",), env={"A": value})
    try:
        await runtime.prepare(spec, lambda *_, **__: None)
        with pytest.raises(InvalidInput):
            await runtime.start(spec.workload_id)
    finally:
        await runtime.remove(spec.workload_id)


@pytest.mark.row("F1")
async def test_no_secret_of_a_renters_stands_on_a_command_line(tmp_path: Path) -> None:
    need("bubblewrap")
    runtime = ProcessRuntime(tmp_path / "process", tmp_path, HOST)
    spec = WorkloadSpec(SPEC.workload_id, SPEC.cluster_id, (), "process", argv=("sleep", "600"), env={"TOKEN": PLANTED})
    try:
        await runtime.prepare(spec, lambda *_, **__: None)
        await runtime.start(spec.workload_id)
        assert "bwrap" in (shown := commands()) and PLANTED not in shown
    finally:
        await runtime.remove(spec.workload_id)


@pytest.mark.row("F25")
async def test_without_bubblewrap_no_process_is_run_and_the_host_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "SEARCH_PATH", str(tmp_path))
    runtime = ProcessRuntime(tmp_path / "process", tmp_path, HOST)

    facts = await runtime.facts()

    assert (facts.is_usable, facts.condition) == (False, ConditionCode.PROCESS_NO_SANDBOX)
    assert "bubblewrap is missing" in facts.detail
    with pytest.raises(RuntimeUnavailable, match="no sandbox"):
        await runtime.prepare(SPEC, lambda *_, **__: None)


@pytest.mark.row("F25")
async def test_bubblewrap_that_is_taken_away_while_the_agent_runs_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    need("bubblewrap")
    with tempfile.TemporaryDirectory(prefix="windrow-test-", dir="/var/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        shutil.copy(str(shutil.which("bwrap")), folder)
        monkeypatch.setattr(sandbox, "SEARCH_PATH", name)
        runtime = ProcessRuntime(folder / "process", folder / "agent", HOST)
        before = await runtime.facts()
        (folder / "bwrap").unlink()
        after = await runtime.facts()
    assert (before.is_usable, before.condition) == (True, "")
    assert (after.is_usable, after.condition) == (False, ConditionCode.PROCESS_NO_SANDBOX)


@pytest.mark.row("F25")
async def test_a_host_whose_owner_wants_no_sandbox_says_so(tmp_path: Path) -> None:
    facts = await ProcessRuntime(tmp_path / "process", tmp_path, HOST, is_bubblewrap_wanted=False).facts()
    assert (facts.is_usable, facts.version, facts.condition) == (True, "plain", ConditionCode.PROCESS_UNCONFINED)


@pytest.mark.row("F25")
@pytest.mark.parametrize("missing", ["pasta", "nft"])
def test_without_what_leads_out_there_is_loopback_alone(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    need("bubblewrap")
    have = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name, path: None if name == missing else have(name, path=path))
    found = sandbox.find_sandbox(Path("/var/lib/windrow-nothing"))
    assert found.bwrap is not None and found.closed.startswith(f"{missing} is missing")


@pytest.mark.row("F2")
def test_an_agent_whose_own_folder_workloads_would_see_runs_none(tmp_path: Path) -> None:
    assert "lies in /opt" in sandbox.find_sandbox(Path("/opt/windrow/data")).why
    assert f"lies in {tmp_path}" in sandbox.find_sandbox(tmp_path / "data", shown=(tmp_path,)).why
