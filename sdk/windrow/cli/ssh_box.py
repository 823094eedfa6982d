"""Makes a host of a machine that OpenSSH reaches: runs the line of a join token there, and waits for the host."""

import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from windrow.cli.output import say
from windrow.client import Client
from windrow.errors import InvalidInput, WaitTimedOut, WindrowClientError

JOIN_S: Final = 600
"""For the agent to be fetched, installed and joined: its archive has some 60 MB."""
ONLINE_S: Final = 120
PAUSE_S: Final = 1.0
OPTIONS: Final = (
    *("-o", "BatchMode=yes"),
    *("-o", "ConnectTimeout=10"),
    *("-o", "ServerAliveInterval=10"),
    *("-o", "ServerAliveCountMax=3"),
    "-T",
)
"""Nothing is asked, and a machine that falls silent is given up."""
SSH_FAILED: Final = 255
"""The exit status with which ssh says that it could not reach or enter the machine."""
ADVICE: Final = (
    ("REMOTE HOST IDENTIFICATION HAS CHANGED", "Its key is not the one that you know: somebody may be in between."),
    ("Host key verification failed", "Its key is not known here. Connect once by hand and compare it: ssh {target}"),
    ("Permission denied", "It does not let your key in. Try by hand: ssh {target}"),
    ("timed out", "It does not answer. Is it on, and may this machine reach its port?"),
    ("Connection refused", "Nothing listens there. Is sshd running?"),
    ("Could not resolve", "Nobody knows this name."),
)
"""What ssh says, and what to do."""


def joined(api: Client, target: str, config: Path | None = None) -> str:
    """The id of the host that this machine has become. config: for ssh, in place of the user's own.

    The line goes over standard input, so that no list of processes shows the token. Raises WindrowClientError with the
    way out; a token that was not used is revoked.
    """
    ssh = shutil.which("ssh")
    if ssh is None:
        raise WindrowClientError("This machine has no ssh (on Debian: apt-get install openssh-client).")
    if target.startswith("-") or any(letter.isspace() for letter in target):
        raise InvalidInput(f"--ssh is a machine, as [USER@]HOST: {target!r}")
    made = api.request("POST", "/join-tokens", body={"role": "host"})
    if "--this-machine-only" in made["command"]:
        api.request("DELETE", f"/join-tokens/{made['id']}")
        raise WindrowClientError("This Master listens on this machine only. Start it with --listen and --public.")
    say(f"Installing the agent on {target} ...")
    command = [ssh, *(("-F", str(config)) if config else ()), *OPTIONS, "--", target, "sh -s"]
    try:
        _run(command, made["command"] + "\n", target)
        return _online(api, made["id"], target)
    except BaseException:
        if api.get(f"/join-tokens/{made['id']}")["used_by"] is None:
            api.request("DELETE", f"/join-tokens/{made['id']}")
        raise


def _run(command: Sequence[str], line: str, target: str) -> None:
    try:
        done = subprocess.run(command, input=line, capture_output=True, text=True, timeout=JOIN_S, check=False)
    except subprocess.TimeoutExpired:
        raise WaitTimedOut(f"{target}: the agent was not installed within {JOIN_S // 60} min.") from None
    if done.returncode == 0:
        return
    said = done.stderr.strip() or done.stdout.strip()
    last = "\n".join(said.splitlines()[-5:])[-2_000:]
    if done.returncode == SSH_FAILED:
        advice = next((text for words, text in ADVICE if words in said), "Try by hand: ssh {target}")
        raise WindrowClientError(f"ssh does not get into {target}. {advice.format(target=target)}\n{last}")
    raise WindrowClientError(f"{target}: the agent could not be installed.\n{last}")


def _online(api: Client, token_id: str, target: str) -> str:
    host_id = api.get(f"/join-tokens/{token_id}")["used_by"]
    if host_id is None:
        raise WindrowClientError(
            f"{target} has an agent that joined before. Bind its host by name: windrow host ls, then --host NAME"
        )
    deadline_s = time.monotonic() + ONLINE_S
    while api.get(f"/hosts/{host_id}")["link_state"] != "online":
        if time.monotonic() > deadline_s:
            raise WaitTimedOut(
                f"{target} joined as {host_id} and is not online after {ONLINE_S} s. See: windrow host ls"
            )
        time.sleep(PAUSE_S)
    return str(host_id)
