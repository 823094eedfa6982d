"""A second machine comes in by the one line, works, and goes without a trace; whoever is not ours is refused."""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.support import clean_debian
from tests.support.second_host import SecondHost, bridge, clean_host, need_namespaces, second_host
from tests.support.stack import Stack, stack, wait_for
from windrow.errors import ApiProblem
from windrow_proto import enrol

pytestmark = [pytest.mark.timeout(700), pytest.mark.slow]

JOIN_S = 420
"""For the line to end on a busy machine of two cores: the Master packs the agent with its own Python first."""
NAME = "second-host"


@dataclass(frozen=True, slots=True)
class Market:
    """A running market that listens for other machines, and the bridge they come by."""

    stack: Stack
    bridge: str
    address: str

    def ask(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        """One call of the HTTP API."""
        with self.stack.client() as api:
            answer: dict[str, Any] = api.request(method, path, body=body)
            return answer

    def token(self) -> dict[str, Any]:
        """A fresh join token with its line."""
        return self.ask("POST", "/join-tokens", body={"role": "host"})

    def host(self, host_id: str) -> dict[str, Any]:
        """One host as the Master sees it."""
        return self.ask("GET", f"/hosts/{host_id}")

    def wheel(self) -> Path:
        """The agent's wheel, as the Master serves it."""
        return next((self.stack.data_dir / "wheels" / "ours").glob("windrow_agent-*.whl"))


@pytest.fixture(scope="module")
def market() -> Iterator[Market]:
    need_namespaces()
    with bridge() as (name, address), stack("--listen", "0.0.0.0", "--public", address) as running:
        found = Market(running, name, address)
        wait_for(lambda: found.ask("GET", "/me"))
        wait_for(lambda: json.loads((running.data_dir / "wheels" / "manifest.json").read_text())["files"])
        yield found


@pytest.fixture
def machine(market: Market) -> Iterator[SecondHost]:
    with second_host(market.bridge, market.address) as found:
        yield found


def joined_as(machine: SecondHost) -> str:
    """The id in the identity of the agent installed there."""
    read = machine.run("cat /var/lib/windrow-agent/identity/identity.json")
    found: str = json.loads(read.stdout)["id"]
    return found


def say_when_it_was_listed(market: Market, host_id: str, began_s: float) -> None:
    """The promise is a minute from the download; how long it took is printed, since a busy machine takes longer."""
    listed = wait_for(lambda: market.host(host_id)["listed_at"])
    stages = {one["name"]: one["state"] for one in market.ask("GET", f"/hosts/{host_id}/proof")["stages"]}
    assert {stages[name] for name in ("downloaded", "certified", "listed")} == {"done"}, stages
    print(f"listed {datetime.fromisoformat(listed).timestamp() - began_s:.1f} s after the line was begun")


def prove(market: Market, host_id: str) -> None:
    """Have the host proved, which has to pass."""
    market.ask("POST", f"/hosts/{host_id}/prove")
    proof = wait_for(lambda: market.host(host_id)["proof"])
    print(proof["words"])
    assert proof["outcome"] == "passed", proof["words"]


@pytest.mark.proves("a second host joins by one line, is online, and leaves nothing")
@pytest.mark.long
def test_a_second_host_joins_by_one_line_is_online_and_leaves_nothing(market: Market, machine: SecondHost) -> None:
    files, processes = machine.files(), machine.processes()
    made = market.token()
    began_s = time.time()
    done = machine.run(made["command"], JOIN_S)
    assert done.returncode == 0, done.stdout + done.stderr
    host_id = joined_as(machine)
    host = wait_for(lambda: (found := market.host(host_id))["link_state"] == "online" and found)
    assert host["name"].startswith(NAME)
    assert host["simulated"] is False
    say_when_it_was_listed(market, host_id, began_s)
    prove(market, host_id)
    work = {"kind": "box", "host_id": host_id, "argv": ["sleep", "3600"], "runtime": "process"}
    cluster = market.ask("POST", "/clusters", body=work)["cluster"]["id"]
    wait_for(lambda: market.ask("GET", f"/clusters/{cluster}")["phase"].lower() == "running")
    wait_for(lambda: "sleep 3600" in machine.processes())  # its sandbox comes first
    assert any("windrow-agent run" in line for line in machine.processes())
    assert not any(made["join_token"] in line for line in machine.processes())
    gone = machine.run("sh /opt/windrow-agent/install.sh uninstall --yes", JOIN_S)
    assert gone.returncode == 0, gone.stdout + gone.stderr
    assert machine.processes() == processes
    assert machine.files() == files


@pytest.mark.long
def test_a_used_token_is_refused_with_its_sentence_and_leaves_nothing(
    market: Market, machine: SecondHost, tmp_path: Path
) -> None:
    made = market.token()
    command = made["command"]
    url, first = market.stack.cli["https_url"], enrol.IdentityFolder(tmp_path)
    enrol.join(first, url, made["join_token"], enrol.JoinRequest("host", "came-first"))
    files = machine.files()
    done = machine.run(command, JOIN_S)
    assert done.returncode != 0
    assert "join token" in done.stderr and "could not join" in done.stderr
    assert machine.files() == files


def test_one_changed_byte_in_a_served_wheel_is_refused_and_leaves_nothing(market: Market, machine: SecondHost) -> None:
    files, wheel = machine.files(), market.wheel()
    content = wheel.read_bytes()
    try:
        wheel.write_bytes(content[:5_000] + bytes([content[5_000] ^ 1]) + content[5_001:])
        done = machine.run(market.token()["command"], JOIN_S)
    finally:
        wheel.write_bytes(content)
    assert done.returncode != 0
    assert f"{wheel.name} is not the file that the Master listed" in done.stderr
    assert machine.files() == files


def test_a_master_with_another_key_is_not_listened_to(market: Market, machine: SecondHost) -> None:
    files = machine.files()
    url, other = market.stack.cli["https_url"], "sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
    done = machine.run(f"set -e; curl -fsSL -k --pinnedpubkey {other} {url}/install.sh >/tmp/got; sh /tmp/got")
    assert done.returncode == 90  # curl: the pinned key does not match
    assert machine.run("test ! -s /tmp/got && rm -f /tmp/got").returncode == 0
    assert machine.files() == files


# --- a clean Debian: no Python, no agent, with and without systemd ----------------------------------------------------

SANDBOX = ("bubblewrap", "passt", "nftables")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clean Debian without systemd, which every test sees as it was made."""
    clean_debian.need_debian()
    return clean_debian.make(tmp_path_factory.mktemp("bare") / "root", "curl", "openssl")


@pytest.fixture(scope="module")
def root_with_systemd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with systemd, and with what process workloads need."""
    clean_debian.need_debian()
    more = ("systemd", "dbus", *SANDBOX)
    return clean_debian.make(tmp_path_factory.mktemp("systemd") / "root", "curl", "openssl", *more)


@pytest.fixture
def bare(market: Market, root: Path) -> Iterator[SecondHost]:
    with clean_host(market.bridge, market.address, root, has_systemd=False) as found:
        yield found


@pytest.fixture
def served(market: Market, root_with_systemd: Path) -> Iterator[SecondHost]:
    """Its first process is systemd."""
    with clean_host(market.bridge, market.address, root_with_systemd, has_systemd=True) as found:
        yield found


@pytest.fixture(
    params=[
        pytest.param("bare", id="systemd absent", marks=pytest.mark.long),
        pytest.param("served", id="systemd present"),
    ]
)
def clean(request: pytest.FixtureRequest) -> SecondHost:
    found: SecondHost = request.getfixturevalue(request.param)
    return found


def fetch(market: Market, path: str) -> str:
    """The beginning of a line that fetches this from the Master whose key is pinned."""
    url, pin = market.stack.cli["https_url"], market.token()["command"].split("--pinnedpubkey ")[1].split()[0]
    return f"curl -fsSL -k --retry 60 --retry-delay 2 --pinnedpubkey {pin} {url}{path}"


def keep_token(market: Market, machine: SecondHost) -> None:
    """A fresh join token in /srv/token."""
    machine.run("umask 077; printf '%s\\n' \"$T\" >/srv/token", more={"T": market.token()["join_token"]})


def online(market: Market, machine: SecondHost) -> dict[str, Any]:
    """The host that joined from there, once it is online."""
    host_id = joined_as(machine)
    return wait_for(lambda: (found := market.host(host_id))["link_state"] == "online" and found)


def runs_nothing_and_says_what_to_install(market: Market, host_id: str, said: str) -> None:
    """To whoever joined it by the line, and to whoever looks at it or asks for its proof."""
    assert f"apt-get install {' '.join(SANDBOX)}" in said
    host = market.host(host_id)
    assert "process.no_sandbox" in {one["code"] for one in host["conditions"]}
    assert "process" not in host["runtimes"]
    with pytest.raises(ApiProblem, match="windrow-agent doctor says what to install"):
        market.ask("POST", f"/hosts/{host_id}/prove")


def holds_one_right_and_comes_back_when_killed(market: Market, machine: SecondHost) -> None:
    """The service of an agent that systemd runs."""
    shown = machine.run("systemctl show windrow-agent -p MainPID -p AmbientCapabilities -p NoNewPrivileges").stdout
    told = dict(line.split("=", 1) for line in shown.splitlines())
    assert (told["AmbientCapabilities"], told["NoNewPrivileges"]) == ("cap_syslog", "yes")
    status = machine.run(f"cat /proc/{told['MainPID']}/status").stdout
    rights = {line.split(":")[0]: int(line.split()[1], 16) for line in status.splitlines() if line.startswith("Cap")}
    assert rights["CapEff"] == 1 << 34 and rights["CapAmb"] == 0
    assert machine.run(f"kill -KILL {told['MainPID']}").returncode == 0
    wait_for(lambda: machine.run("systemctl show windrow-agent -p NRestarts --value").stdout.strip() == "1")
    online(market, machine)


@pytest.mark.proves("one line brings in a clean Debian, with and without systemd, and leaves nothing", by="make test")
def test_one_line_brings_in_a_clean_debian_as_a_service_of_one_right_and_leaves_nothing(
    market: Market, clean: SecondHost
) -> None:
    files, processes = clean.files(), clean.processes()
    assert clean.run("command -v python3").returncode != 0
    keep_token(market, clean)
    began_s = time.time()
    done = clean.run(f"{fetch(market, '/install.sh')} | sh -s -- --token-file /srv/token", JOIN_S)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "one that comes with it" in done.stdout
    host = online(market, clean)
    assert host["simulated"] is False
    say_when_it_was_listed(market, host["id"], began_s)
    if clean.run("command -v bwrap").returncode == 0:
        prove(market, host["id"])
    else:
        runs_nothing_and_says_what_to_install(market, host["id"], done.stdout)
    assert any("windrow_agent run" in line for line in clean.processes())
    if clean.run("command -v systemctl").returncode == 0:
        holds_one_right_and_comes_back_when_killed(market, clean)
    gone = clean.run("sh /opt/windrow-agent/install.sh uninstall --yes && rm /srv/token", JOIN_S)
    assert gone.returncode == 0, gone.stdout + gone.stderr
    assert clean.processes() == processes
    assert clean.files() == files


@pytest.mark.long
def test_a_package_is_installed_joins_and_is_purged_without_a_trace(market: Market, bare: SecondHost) -> None:
    files, processes = bare.files(), bare.processes()
    keep_token(market, bare)
    done = bare.run(f"cd /tmp && {fetch(market, '/dl/SHA256SUMS')} -o SHA256SUMS", JOIN_S)
    assert done.returncode == 0, done.stderr
    deb = "windrow-agent_$(dpkg --print-architecture).deb"
    install = f"{fetch(market, '/dl/')}{deb} -o {deb} && sha256sum --check --ignore-missing SHA256SUMS && dpkg -i {deb}"
    done = bare.run(f"cd /tmp && {install}", JOIN_S)
    assert done.returncode == 0, done.stdout + done.stderr
    url = market.stack.cli["https_url"]
    as_agent = "setpriv --reuid=windrow-agent --regid=windrow-agent --init-groups --"
    state = "--data-dir /var/lib/windrow-agent"
    done = bare.run(f"{as_agent} windrow-agent join {url} {state} --token-file - </srv/token", JOIN_S)
    assert done.returncode == 0, done.stdout + done.stderr
    bare.run(f"({as_agent} windrow-agent run {state} </dev/null >/dev/null 2>&1 &)")
    online(market, bare)
    pid = json.loads(bare.run("cat /var/lib/windrow-agent/agent.json").stdout)["pid"]
    assert bare.run(f"kill {pid}").returncode == 0
    wait_for(lambda: not any("windrow_agent" in line for line in bare.processes()))
    gone = bare.run("dpkg --purge windrow-agent && rm -f /tmp/* /srv/token", JOIN_S)
    assert gone.returncode == 0, gone.stdout + gone.stderr
    assert bare.processes() == processes
    left = {line for line in set(bare.files()) ^ set(files) if not line.startswith("/var/lib/dpkg/")}
    assert left == set()


@pytest.mark.long
def test_one_file_joins_and_finds_what_is_missing(market: Market, bare: SecondHost) -> None:
    keep_token(market, bare)
    program = "windrow-agent-linux-$(uname -m)"
    done = bare.run(f"cd /srv && {fetch(market, '/dl/')}{program} -o agent && chmod 755 agent", JOIN_S)
    assert done.returncode == 0, done.stderr
    done = bare.run(f"/srv/agent join {market.stack.cli['https_url']} --token-file /srv/token", JOIN_S)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(bare.run("/srv/agent doctor --json").stdout)
    levels = {one["check"]: one["level"] for one in found}
    assert (levels["identity"], levels["master"], levels["clock"], levels["access"]) == ("ok",) * 4
    assert levels["containers"] == "fix"
    bare.run("(/srv/agent run </dev/null >/dev/null 2>&1 &)")
    online(market, bare)


@pytest.mark.long
def test_a_changed_byte_in_the_packed_agent_is_refused_and_leaves_nothing(market: Market, bare: SecondHost) -> None:
    keep_token(market, bare)
    assert bare.run(f"{fetch(market, '/dl/SHA256SUMS')} -o /dev/null", JOIN_S).returncode == 0
    files = bare.files()
    (archive,) = (market.stack.data_dir / "packages").glob("*/*.tar.gz")
    content = archive.read_bytes()
    try:
        archive.write_bytes(content[:5_000] + bytes([content[5_000] ^ 1]) + content[5_001:])
        done = bare.run(f"{fetch(market, '/install.sh')} | sh -s -- --token-file /srv/token", JOIN_S)
    finally:
        archive.write_bytes(content)
    assert done.returncode != 0
    assert f"{archive.name} is not the file that the Master listed" in done.stderr
    assert bare.files() == files
