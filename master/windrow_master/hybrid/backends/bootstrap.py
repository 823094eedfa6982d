"""The first script of a bought machine: sets up what ends the machine in any case, then installs the agent. Pure.

The dead man (`dead-man`) looks each minute and ends the machine at its time, or when its agent has had no word of the
Master for too long. It counts by the time since the machine started, which no change of its clock moves. An adapter
may leave a script `end` beside it, which then ends the machine in place of switching it off.
"""

import ipaddress
from typing import Final
from urllib.parse import urlsplit

from windrow_master.hybrid.backends.port import USER_DATA_MAX, Finding, PurchaseId
from windrow_proto.errors import InvalidInput
from windrow_proto.units import SECOND

FOLDER: Final = "/var/lib/windrow-purchase"
"""Root's own, on the machine."""
HEARD: Final = "/var/lib/windrow-agent/master-heard"
"""The file that the agent touches at each word of its Master."""
JOINED: Final = "/var/lib/windrow-agent/identity"
"""The folder that an agent has once it has joined."""
LOOPS: Final = "/run/windrow-dead-man.pid"
"""The process that looks again and again, where no systemd does."""
LOOK_S: Final = 60
JOIN_AGAIN_S: Final = 10

DEAD_MAN: Final = """\
#!/bin/sh
# Ends this machine at its end, or when its agent has had no word of the Master for too long.
ENDS_AT=@ENDS_AT@ ORPHAN_TTL=@ORPHAN_TTL@
FOLDER=@FOLDER@ HEARD=@HEARD@ NOTES=/run/windrow-dead-man
mkdir -p "$NOTES"
read -r up _ </proc/uptime
up=${up%.*}
heard=$(stat -c %Y "$HEARD" 2>/dev/null || echo never)
[ "$heard" = "$(cat "$NOTES/heard" 2>/dev/null)" ] || { echo "$heard" >"$NOTES/heard"; echo "$up" >"$NOTES/since"; }
since=$(cat "$NOTES/since")
if [ "$(date +%s)" -ge "$ENDS_AT" ]; then
    why="its time is over"
elif [ $((up - ${since:-0})) -ge "$ORPHAN_TTL" ]; then
    why="there was no word of its Master for $ORPHAN_TTL s"
else
    exit 0
fi
echo "windrow: this machine ends: $why"
if [ -f "$FOLDER/end" ]; then
    exec sh "$FOLDER/end"
elif [ -f "$NOTES/asked" ]; then # a minute ago, and it still runs
    sync
    poweroff -f || echo o >/proc/sysrq-trigger
fi
: >"$NOTES/asked"
shutdown -h now || poweroff || systemctl poweroff
"""

USER_DATA: Final = """\
#!/bin/sh
# Brings this machine into a market for the purchase @PURCHASE@, and ends it when nobody wants it any more.
umask 077
FOLDER=@FOLDER@
mkdir -p "$FOLDER"
cat >"$FOLDER/dead-man" <<'WINDROW'
@DEAD_MAN@WINDROW
if [ -d /run/systemd/system ]; then
    cat >/etc/systemd/system/windrow-dead-man.service <<WINDROW
[Service]
Type=oneshot
ExecStart=/bin/sh $FOLDER/dead-man
StandardOutput=journal+console
WINDROW
    cat >/etc/systemd/system/windrow-dead-man.timer <<WINDROW
[Timer]
OnBootSec=@LOOK@
OnUnitActiveSec=@LOOK@
AccuracySec=5
[Install]
WantedBy=timers.target
WINDROW
    systemctl daemon-reload
    systemctl enable --now windrow-dead-man.timer
else
    loop="echo \\$\\$ >@LOOPS@; while [ -f '$FOLDER/dead-man' ]; do sh '$FOLDER/dead-man'; sleep @LOOK@; done"
    setsid sh -c "$loop" </dev/null >"$FOLDER/dead-man.log" 2>&1 &
fi
umask 022
command -v curl >/dev/null || { apt-get update && apt-get install --yes curl; } || dnf install --assumeyes curl
until [ -d @JOINED@ ]; do # a failed installation leaves none
    @JOIN@
    [ -d @JOINED@ ] || sleep @AGAIN@
done
"""


def user_data(join_line: str, purchase_id: PurchaseId, ends_at_ns: int, orphan_ttl_s: int) -> str:
    """The script for root of a fresh machine, with its join token at the end.

    join_line: of onboarding, as for a person. ends_at_ns: wall time. orphan_ttl_s: seconds without a word of the
    Master. Raises InvalidInput where it is longer than providers take.
    """
    dead_man = _filled(
        DEAD_MAN,
        ENDS_AT=str(-(-ends_at_ns // SECOND)),
        ORPHAN_TTL=str(orphan_ttl_s),
        FOLDER=FOLDER,
        HEARD=HEARD,
    )
    look_s = max(1, min(LOOK_S, orphan_ttl_s // 2))
    text = _filled(
        USER_DATA,
        FOLDER=FOLDER,
        DEAD_MAN=dead_man,
        LOOPS=LOOPS,
        LOOK=str(look_s),
        AGAIN=str(JOIN_AGAIN_S),
        JOINED=JOINED,
        PURCHASE=purchase_id,
        JOIN=join_line,
    )
    if len(text.encode()) > USER_DATA_MAX:
        raise InvalidInput(f"The first script of a machine may have {USER_DATA_MAX} bytes, and has more.")
    return text


def reachability(https_url: str) -> Finding:
    """Whether a machine at a provider could reach this Master, by its address alone."""
    host = urlsplit(https_url).hostname or ""
    try:
        is_outside = ipaddress.ip_address(host).is_global
    except ValueError:
        is_outside = "." in host and not host.endswith((".local", ".internal", ".localhost"))
    if is_outside:
        return Finding("reachability", True, f"Machines join at {https_url}.")
    return Finding(
        "reachability",
        False,
        f"Machines are told to join at {https_url}, which nobody outside this network reaches.",
        "Start the Master with an address that they reach: windrow up --listen 0.0.0.0 --public ADDRESS. Where a "
        "private network leads from the provider to here, go on.",
    )


def _filled(text: str, **values: str) -> str:
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    return text
