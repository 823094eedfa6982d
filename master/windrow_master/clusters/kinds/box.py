"""A cluster of kind `box`: builds the commands that let its renter log in by SSH and open a notebook. Pure.

The image, or for a process the host, brings OpenSSH's server and Jupyter; a box starts whichever it was asked for and
finds, says in its log what is missing, and runs the renter's command beside them. Both are reached through tunnels
alone: SSH with the renter's own keys, the notebook with a token that only the renter is told.
"""

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from windrow_master.clusters.model import Cluster, ClusterKind, ClusterRequest
from windrow_master.placement.model import Runtime
from windrow_proto.errors import Conflict, InvalidInput
from windrow_proto.service_names import forward_host, service_name, service_url

SSH_PORT: Final = 2222
"""In a container: below 1024 not every daemon lets a user other than root listen."""
NOTEBOOK_PORT: Final = 8888
SSH_PLACE, NOTEBOOK_PLACE = 0, 1
"""In the block of ports of a box that is a process: it shares its host's network, where 8888 may be somebody else's."""
CODE: Final = "WINDROW_BOX"
"""The script itself, so that lists of processes stay readable."""
KEYS: Final = "WINDROW_SSH_KEYS"
TOKEN: Final = "JUPYTER_TOKEN"
"""The variable in which Jupyter looks for its token: so it stands on no command line, and Jupyter does not print it."""

_KINDS: Final = frozenset(
    {
        *("ssh-ed25519", "ssh-rsa", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521"),
        *("sk-ssh-ed25519@openssh.com", "sk-ecdsa-sha2-nistp256@openssh.com"),
    }
)
_LINE: Final = re.compile(r"[^\x00-\x1f\x7f]*")


@dataclass(frozen=True, slots=True)
class EntryPorts:
    """The ports by which a box is entered; None: not this way. at: the address on which it listens there."""

    ssh_port: int | None = None
    notebook_port: int | None = None
    at: str = ""


def check(request: ClusterRequest) -> None:
    """Raise InvalidInput where keys or a notebook are asked for that a box cannot have."""
    is_box = request.kind is ClusterKind.BOX
    if (request.ssh_keys or request.notebook) and not is_box:
        raise InvalidInput("ssh_keys and notebook are for machines of kind box only.", subject="ssh_keys")
    for key in request.ssh_keys:
        _check_key(key)


def is_entered(request: ClusterRequest) -> bool:
    """Return whether this is a box that starts something to enter it by."""
    return request.kind is ClusterKind.BOX and bool(request.ssh_keys or request.notebook)


def needs_block(request: ClusterRequest, runtime: str) -> bool:
    """Return whether it listens among the ports of its host, and so needs some of its own."""
    return is_entered(request) and runtime == Runtime.PROCESS


def entry_ports(cluster: Cluster, runtime: str) -> EntryPorts:
    """Return the ports by which this box is entered on a host that runs it so; nowhere where it is none, or only
    simulated."""
    request = cluster.request
    if not is_entered(request) or runtime == Runtime.SIMULATED:
        return EntryPorts()
    ssh, notebook, at = SSH_PORT, NOTEBOOK_PORT, "0.0.0.0"  # its own network: tunnels come to its address there
    if runtime == Runtime.PROCESS:
        if cluster.first_port is None:
            return EntryPorts()
        ssh, notebook, at = cluster.first_port + SSH_PLACE, cluster.first_port + NOTEBOOK_PLACE, "127.0.0.1"
    return EntryPorts(ssh if request.ssh_keys else None, notebook if request.notebook else None, at)


def environment(cluster: Cluster, runtime: str) -> Mapping[str, str]:
    """Return the environment of a box: the renter's and the box's own variables; the renter's own token for Jupyter
    wins."""
    own, found = entry_ports(cluster, runtime), dict(cluster.request.env)
    if own != EntryPorts():
        found[CODE] = SCRIPT
    if own.ssh_port is not None:
        found[KEYS] = "\n".join(cluster.request.ssh_keys)
    if own.notebook_port is not None:
        found.setdefault(TOKEN, cluster.secret or "")
    return found


def command(cluster: Cluster, runtime: str, place: str = "") -> tuple[str, ...]:
    """Return the command to run: SSH and the notebook, and beside them the renter's command or nothing. place: as of
    page_url; the notebook answers under that name, too."""
    own = entry_ports(cluster, runtime)
    if own == EntryPorts():
        return cluster.request.argv
    names = [forward_host(cluster.name, cluster.cluster_id)]
    if own.notebook_port is not None and place:
        names.append(service_name(cluster.cluster_id, own.notebook_port, place.rpartition(":")[0]))
    words = (str(own.ssh_port or 0), str(own.notebook_port or 0), own.at, "','".join(names))
    return ("sh", "-c", f'eval "${CODE}"', "windrow", *words, *cluster.request.argv)


def token(cluster: Cluster) -> str | None:
    """With which the notebook is opened; None: there is none."""
    if not cluster.request.notebook:
        return None
    return cluster.request.env.get(TOKEN) or cluster.secret


def page_url(cluster: Cluster, runtime: str, place: str) -> tuple[int, str]:
    """Return the notebook's port, and its address for a browser with its token. cluster: whole. place: DOMAIN:PORT of
    an Access with an HTTPS path to services, empty where there is none. Raises Conflict where there is no address, or
    where the renter chose the token: anybody may try to guess it at that address."""
    port = entry_ports(cluster, runtime).notebook_port
    if port is None:
        raise Conflict("This machine has no notebook.", subject=cluster.cluster_id)
    if TOKEN in cluster.request.env or not cluster.secret:
        said = "This notebook has a token of your own choice, so it gets no address in the internet. Use: "
        raise Conflict(f"{said}windrow cluster forward {cluster.name} {NOTEBOOK_PORT}", subject=cluster.cluster_id)
    if not place:
        said = "No relay of this market has an address for web pages. Use: "
        raise Conflict(f"{said}windrow cluster forward {cluster.name} {NOTEBOOK_PORT}", subject=cluster.cluster_id)
    return port, f"{service_url(cluster.cluster_id, port, place)}?token={cluster.secret}"


def _check_key(key: str) -> None:
    words = key.split(" ", 2)
    if "PRIVATE KEY" in key:
        raise InvalidInput(
            "ssh_keys holds a private key: keep it, and give the .pub file beside it.", subject="ssh_keys"
        )
    if not _LINE.fullmatch(key) or len(words) < 2 or words[0] not in _KINDS:
        said = "each a line as in id_ed25519.pub: its kind, the key, and maybe a comment"
        raise InvalidInput(f"ssh_keys must be public keys, {said}.", subject="ssh_keys")
    try:
        body = base64.b64decode(words[1], validate=True)
    except (binascii.Error, ValueError):
        body = b""
    kind = words[0].encode()
    if not body.startswith(len(kind).to_bytes(4, "big") + kind):
        raise InvalidInput(f"ssh_keys holds a damaged key: {words[0]} {words[1][:16]}...", subject="ssh_keys")


SCRIPT: Final = r"""# SSH's port or 0, the notebook's or 0, the address, the notebook's name; then the renter's command
ssh_port=$1 notebook_port=$2 at=$3 notebook_host=$4
shift 4
unset WINDROW_BOX
work=$PWD
mask=$(umask)
say() { echo "windrow: $*" >&2; }
umask 077
own=${TMPDIR:-/tmp}/windrow-box.$$
mkdir "$own" || exit 1

# Started again when it ends, as where memory ran out: the box stays up without it.
keep() {
  name=$1
  shift
  (
    trap - TERM
    umask "$mask"
    while :; do
      "$@"
      say "$name ended with $?, and is started again"
      sleep 5
    done
  ) &
}

open_ssh() {
  sshd=
  for one in $(command -v sshd) /usr/sbin/sshd /usr/local/sbin/sshd; do
    if [ -x "$one" ]; then sshd=$one; break; fi
  done
  if [ -z "$sshd" ] || ! command -v ssh-keygen >/dev/null; then
    say "no SSH: there is no OpenSSH server here. See docs/machines.md for an image that has one."
    return
  fi
  if ! id -un >/dev/null 2>&1; then
    say "no SSH: user $(id -u) has no name here; the image's USER must stand in its /etc/passwd."
    return
  fi
  if [ "$(id -u)" = 0 ]; then
    if grep -q '^CapEff:[[:space:]]*0*$' /proc/self/status; then
      say "no SSH: this image runs as root, which here has none of the rights that sshd needs of it."
      say "Give the image a USER of its own, as in docs/machines.md."
      return
    fi
    if [ ! -d /run/sshd ] && ! mkdir -m 755 /run/sshd 2>/dev/null; then
      say "no SSH: sshd of root needs the folder /run/sshd on this host: mkdir -m 755 /run/sshd"
      return
    fi
  fi
  printf '%s\n' "$WINDROW_SSH_KEYS" >"$own/keys"
  ssh-keygen -q -t ed25519 -N '' -C windrow -f "$own/host_key" || return
  for one in /usr/lib/openssh/sftp-server /usr/libexec/openssh/sftp-server /usr/lib/ssh/sftp-server; do
    if [ -x "$one" ]; then sftp="Subsystem sftp $one"; break; fi
  done
  # Whoever logs in finds what the box itself has: sshd would begin with an empty environment.
  cat >"$own/session" <<END
windrow_term=\$TERM
. '$own/env'
[ -z "\$windrow_term" ] || export TERM="\$windrow_term"
unset windrow_term OLDPWD
cd '$work' || cd
END
  cat >>"$own/session" <<'END'
if [ -n "$SSH_ORIGINAL_COMMAND" ]; then exec "${SHELL:-/bin/sh}" -c "$SSH_ORIGINAL_COMMAND"; fi
exec "${SHELL:-/bin/sh}"
END
  cat >"$own/sshd_config" <<END
Port $ssh_port
ListenAddress $at
HostKey $own/host_key
PidFile none
AuthorizedKeysFile $own/keys
AuthenticationMethods publickey
PasswordAuthentication no
StrictModes no
PermitRootLogin prohibit-password
X11Forwarding no
PrintMotd no
LogLevel ERROR
ForceCommand /bin/sh $own/session
${sftp:-}
END
  say "SSH is started."
  keep sshd "$sshd" -D -e -f "$own/sshd_config"
}

open_notebook() {
  cd "$work" || return
  set -- --no-browser --ip="$at" --port="$notebook_port" --port-retries=0 --log-level=WARN
  if [ "$(id -u)" = 0 ]; then set -- "$@" --allow-root; fi
  # By any other name a page of another site could ask for it. Lists are written so for old and new versions.
  names="['localhost','$notebook_host']"
  said="notebook is started."
  if command -v jupyter-lab >/dev/null; then
    keep jupyter jupyter-lab "$@" --ServerApp.allow_remote_access=False --ServerApp.local_hostnames="$names"
  elif command -v jupyter-notebook >/dev/null; then
    # The older one is configured by the first name, the newer by the second; each passes over the other's.
    set -- "$@" --NotebookApp.allow_remote_access=False --NotebookApp.local_hostnames="$names"
    keep jupyter jupyter-notebook "$@" --ServerApp.allow_remote_access=False --ServerApp.local_hostnames="$names"
  elif command -v jupyter-server >/dev/null; then
    keep jupyter jupyter-server "$@" --ServerApp.allow_remote_access=False --ServerApp.local_hostnames="$names"
  else
    said="no notebook: there is no Jupyter here. See docs/machines.md for an image that has one."
  fi
  say "$said"
}

(unset WINDROW_SSH_KEYS; export -p) >"$own/env"
if [ "$ssh_port" != 0 ]; then open_ssh; fi
unset WINDROW_SSH_KEYS
if [ "$notebook_port" != 0 ]; then open_notebook; fi
umask "$mask"
cd "$work" || exit 1

if [ $# -eq 0 ]; then
  trap 'exit 0' TERM INT
  while :; do sleep 3600 & wait $!; done
fi
"$@" &
main=$!
trap 'kill -TERM $main 2>/dev/null' TERM INT
wait $main
code=$?
while kill -0 $main 2>/dev/null; do
  wait $main
  code=$?
done
exit $code
"""
