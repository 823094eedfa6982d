"""Keeps containers away from this host and its network: puts the rules of core/egress.py into the kernel.

It takes root's right over the network: the agent does it itself where it has that, else a service step does
(`windrow-agent fence`), which leaves a note that only root can have written. Blocking, with deadlines.
"""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

from windrow_agent.core import egress

CALL_S: Final = 10.0
NOTE: Final = Path("/run/windrow-fence")
"""Gone with the rules when the machine restarts."""
RESOLV_CONF: Final = Path("/etc/resolv.conf")
NFT_PATH: Final = "/usr/sbin:/sbin:/usr/bin:/bin"
BRIDGES: Final = Path("/proc/sys/net/bridge")
"""The switch of the kernel's module br_netfilter; without it two containers of one bridge meet past all rules. Docker
loads it for such a network, Podman does not."""
CALLS: Final = ("bridge-nf-call-iptables", "bridge-nf-call-ip6tables")


def install(*, is_anew: bool, note: Path = NOTE) -> str:
    """Have the rules stand; returns why they do not, empty when they do. is_anew: replace those that stand."""
    nft = shutil.which("nft", path=NFT_PATH)
    if nft is None:
        return "nft is missing (on Debian: apt-get install nftables)"
    if os.geteuid() != 0:
        return _noted(note)
    if failed := _within_bridges():
        return failed
    if not is_anew and _is_there(nft):
        return ""
    try:
        servers = egress.resolvers(RESOLV_CONF.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        servers = ()
    failed = _call([nft, "-f", "-"], egress.rules(servers))
    if not failed:
        note.write_text("standing\n")
    return failed


def remove(note: Path = NOTE) -> str:
    """Take the rules away; returns why that failed, empty when there are none."""
    nft = shutil.which("nft", path=NFT_PATH)
    note.unlink(missing_ok=True)
    if nft is None or not _is_there(nft):
        return ""
    return _call([nft, "delete", "table", "inet", egress.TABLE])


def _within_bridges() -> str:
    """Have the rules hold within a bridge as well; why they do not, empty when they do."""
    modprobe = shutil.which("modprobe", path=NFT_PATH)
    if not BRIDGES.is_dir() and modprobe is not None:
        _call([modprobe, "br_netfilter"])
    try:
        for name in CALLS:
            if (BRIDGES / name).read_text().strip() != "1":
                (BRIDGES / name).write_text("1")
    except OSError as error:
        return f"containers here reach each other ({error.strerror}): modprobe br_netfilter, as root"
    return ""


def _is_there(nft: str) -> bool:
    return not _call([nft, "list", "chain", "inet", egress.TABLE, "to_host"])


def _call(command: list[str], told: str = "") -> str:
    """Why it failed; empty when it did not."""
    try:
        done = subprocess.run(command, input=told, capture_output=True, text=True, timeout=CALL_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)[:200]
    return "" if done.returncode == 0 else (done.stderr.strip().splitlines() or ["nft failed"])[0][:200]


def _noted(note: Path) -> str:
    """Reads the note that root left; an agent without rights cannot look at the rules themselves."""
    try:
        is_roots = note.lstat().st_uid == 0
    except OSError:
        is_roots = False
    return "" if is_roots else "only root can set the rules: run `windrow-agent fence` as root at each boot"
