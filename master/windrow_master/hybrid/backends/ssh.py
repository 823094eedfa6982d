"""Uses one machine of the operator's own, reached by OpenSSH's `ssh`, as if it were bought: one purchase at a time.

The machine itself remembers its purchase: a folder that is put in place by one rename, so that of two buyers one gets
it, and asking twice for the same purchase changes nothing. Its end takes the agent away; the machine goes on.
"""

import asyncio
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from windrow_master.hybrid.backends.bootstrap import FOLDER, LOOPS
from windrow_master.hybrid.backends.port import (
    USER_DATA_MAX,
    Billing,
    Doubtful,
    Finding,
    Leftover,
    Machine,
    MachineOffer,
    MachineState,
    Order,
    PurchaseId,
    Refused,
    RefusedFor,
    Wanted,
    in_order,
)
from windrow_master.prices.offers import Kind
from windrow_proto.errors import InvalidInput
from windrow_proto.ports import Clock
from windrow_proto.units import GIB, SECOND, Bytes, Microcents, money_text, parse_money

CONNECT_S: Final = 10
CALL_S: Final = 40.0
CLOCK_OFF_S_MAX: Final = 5
"""As the agent's own doctor bears."""
SAID_MAX: Final = 300
CONSOLE_BYTES: Final = 64 * 1024
OUTPUT_MAX: Final = 1 << 20
"""Bytes that a script may say."""
SSH_FAILED, HELD, NOT_ROOT = 255, 75, 77
"""Exit statuses: of ssh itself, and two of our own scripts."""
BOX: Final = "windrow-box"
"""The name of the machine in the list of known keys, whatever its address."""

_WORD: Final = re.compile(r"[A-Za-z0-9_.:-]{1,64}")
_ADDRESS: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9.:_-]{0,252}")
_USER: Final = re.compile(r"[a-z_][a-z0-9_-]{0,31}")
_HOST_KEY: Final = re.compile(r"(ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(?:256|384|521)) [A-Za-z0-9+/=]{50,2000}")
_KEY: Final = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----\n.+\n-----END [A-Z ]*PRIVATE KEY-----\n*", re.DOTALL)
_CURRENCY: Final = re.compile(r"[A-Z]{3}")
_COUNTRY: Final = re.compile(r"([A-Z]{2})?")
_GPU: Final = re.compile(r"[a-z0-9-]{0,40}")

HEAD: Final = f"""\
set -u
umask 077
F={FOLDER} E={FOLDER}.ended RUNS=/run/windrow-purchase.pid LOOPS={LOOPS}
[ "$(id -u)" = 0 ] || exit {NOT_ROOT}
show() {{
    cat "$1/tags"
    [ ! -f "$1/started/at" ] || echo "started=$(cat "$1/started/at")"
    [ ! -f "$1/ending" ] || echo ending=1
    [ ! -f "$1/ended" ] || echo "ended=$(cat "$1/ended")"
    echo .
}}
"""
END: Final = """\
# Takes away what a purchase brought, and says that it has ended.
: >"$F/ending"
exec 9>"$F/lock"
flock -n 9 || exit 0
if [ -f "$RUNS" ]; then
    runs=$(cat "$RUNS") tries=0
    kill -s TERM -- "-$runs" # an installation takes away what it began
    until [ "$tries" = 150 ] || ! cat /proc/[0-9]*/stat | sed 's/^.*) //' | grep -q "^[^ZX] [0-9]* $runs "; do
        tries=$((tries + 1))
        sleep 0.2
    done
    kill -s KILL -- "-$runs"
    rm -f "$RUNS"
fi
if [ -f /opt/windrow-agent/install.sh ]; then
    sh /opt/windrow-agent/install.sh uninstall --yes || exit 1
fi
if [ -f /etc/systemd/system/windrow-dead-man.timer ]; then
    systemctl disable --now windrow-dead-man.timer
    rm -f /etc/systemd/system/windrow-dead-man.*
    systemctl daemon-reload
fi
loop=$(cat "$LOOPS")
rm -rf "$F/dead-man" "$F/run" /run/windrow-dead-man "$LOOPS"
date +%s >"$F/ended"
purchase=$(sed -n 's/^purchase=//p' "$F/tags")
mkdir -p "$E"
rm -rf "$E/$purchase"
mv -T "$F" "$E/$purchase"
[ -z "$loop" ] || kill -s TERM -- "-$loop" # the last act: it may be what runs this
"""
PROVISION: Final = f"""\
if [ -d "$E/$P" ]; then show "$E/$P"; exit 0; fi
if [ ! -d "$F" ]; then
    rm -rf "$F".new.*
    N=$(mktemp -d "$F.new.XXXXXX") || exit 1
    cat >"$N/tags" <<'WINDROW-TAGS'
@TAGS@
WINDROW-TAGS
    cat >"$N/run" <<'WINDROW-USER-DATA'
@USER_DATA@
WINDROW-USER-DATA
    cat >"$N/end" <<'WINDROW-END'
{HEAD}{END}WINDROW-END
    mv -T "$N" "$F" || rm -rf "$N"
fi
grep -qx "purchase=$P" "$F/tags" || exit {HELD}
if mkdir "$F/started" 2>/dev/null; then
    date +%s >"$F/started/at"
    setsid sh -c "echo \\$\\$ >$RUNS; sh $F/run; rm -f $RUNS" </dev/null >"$F/console" 2>&1 &
fi
show "$F"
"""
DESCRIBE: Final = """\
[ ! -d "$E" ] || find "$E" -mindepth 1 -maxdepth 1 -mtime +7 -exec rm -rf {} +
for one in "$F" "$E"/*; do [ ! -f "$one/tags" ] || show "$one"; done
"""
TERMINATE: Final = """\
grep -qx "purchase=$P" "$F/tags" 2>/dev/null || exit 0
: >"$F/ending"
setsid sh "$F/end" </dev/null >>"$F/end.log" 2>&1 &
"""
CONSOLE: Final = """\
one=$E/$P
grep -qx "purchase=$P" "$F/tags" 2>/dev/null && one=$F
[ ! -f "$one/console" ] || tail -c @BYTES@ "$one/console"
"""
CHECK: Final = """\
echo "now=$(date +%s)"
echo "system=$(uname -srm)"
for program in curl tar gzip flock setsid; do command -v $program >/dev/null || echo "missing=$program"; done
[ ! -f "$F/tags" ] || sed -n 's/^market=/held=/p' "$F/tags"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SshSettings:
    """host_key: the machine's public key, as in its /etc/ssh/ssh_host_ed25519_key.pub. user: root, or one whom sudo
    asks for no password. gpu: model class as in the price book; price_per_hour: what it costs the operator."""

    address: str
    port: int = 22
    user: str = "root"
    host_key: str
    gpu: str
    gpus: int
    cpus: int
    memory_bytes: Bytes
    region: str
    country: str
    price_per_hour: Microcents
    currency: str
    private_key: str = field(repr=False)


def read_settings(settings: Mapping[str, str], secrets: Mapping[str, str]) -> SshSettings:
    """The settings and the secret of an operator. Raises InvalidInput."""

    def matched(name: str, form: re.Pattern[str], default: str, what: str) -> str:
        value = settings.get(name, "").strip() or default
        if not form.fullmatch(value):
            raise InvalidInput(f"{name} is {what}.")
        return value

    def number(name: str, default: str, least: int, most: int) -> int:
        value = settings.get(name, "").strip() or default
        if not (value.isascii() and value.isdecimal() and len(value) < 9 and least <= int(value) <= most):
            raise InvalidInput(f"{name} is a whole number from {least} to {most}.")
        return int(value)

    key = secrets.get("private_key", "").replace("\r\n", "\n").strip() + "\n"
    if not _KEY.fullmatch(key):
        raise InvalidInput("private_key is a whole private key of OpenSSH, with its first and last line.")
    try:
        price = parse_money(settings.get("price_per_hour", ""))
    except ValueError:
        price = Microcents(-1)
    if price < 0:
        raise InvalidInput("price_per_hour is an amount of money, such as 0.85.")
    host_key = " ".join(settings.get("host_key", "").split()[:2])
    if not _HOST_KEY.fullmatch(host_key):
        raise InvalidInput("host_key is the machine's public key, such as ssh-ed25519 AAAA...")
    gpu, gpus = matched("gpu", _GPU, "", "a model class such as l40s"), number("gpus", "0", 0, 64)
    if bool(gpu) != bool(gpus):
        raise InvalidInput("gpu and gpus are given together, or neither.")
    return SshSettings(
        address=matched("address", _ADDRESS, "", "the machine's name or address"),
        port=number("port", "22", 1, 65_535),
        user=matched("user", _USER, "root", "the name of a user"),
        host_key=host_key,
        gpu=gpu or "cpu",
        gpus=gpus,
        cpus=number("cpus", "1", 1, 4_096),
        memory_bytes=Bytes(number("memory_gib", "1", 1, 1_000_000) * GIB),
        region=matched("region", _WORD, "here", "a short name of the place"),
        country=matched("country", _COUNTRY, "", "a country's two letters"),
        price_per_hour=price,
        currency=matched("currency", _CURRENCY, "EUR", "a currency's three letters"),
        private_key=key,
    )


class SshBox:
    """One machine, and the purchase that has it."""

    kind = "ssh"
    list_lag_ns = SECOND

    def __init__(self, settings: SshSettings, clock: Clock, *, call_s: float = CALL_S) -> None:
        """call_s: so long a call may take."""
        self._settings, self._clock, self._call_s = settings, clock, call_s
        self._key, self._known = -1, -1

    async def offers(self, wanted: Wanted) -> Sequence[MachineOffer]:
        """The machine, whether it is free or not: that says buying."""
        return in_order(wanted, [self._offer()])

    async def provision(self, order: Order) -> Machine:
        """Take the machine, and start the first script there."""
        if self._settings.price_per_hour > order.dearest_per_hour:
            raise Refused(RefusedFor.PRICE, f"It costs {money_text(self._settings.price_per_hour)} an hour.")
        if len(order.user_data.encode()) > USER_DATA_MAX or "\nWINDROW-USER-DATA\n" in order.user_data:
            raise Refused(RefusedFor.LIMIT, f"The first script may have {USER_DATA_MAX} bytes.")
        tags = {"market": order.market_id, "purchase": order.purchase_id, "epoch": str(order.epoch)}
        if not all(map(_WORD.fullmatch, tags.values())):
            raise Refused(RefusedFor.LIMIT, "A purchase is named by letters, digits and _.:- alone.")
        text = PROVISION.replace("@TAGS@", "\n".join(f"{name}={value}" for name, value in tags.items()))
        said = await self._run(
            f"P={order.purchase_id}\n" + text.replace("@USER_DATA@", order.user_data), is_buying=True
        )
        return self._machines(said)[0]

    async def describe(self, market_id: str) -> Sequence[Machine]:
        """The machine, if this market has it, and what it was for this market in the last week."""
        return [one for one in self._machines(await self._run(DESCRIBE)) if one.market_id == market_id]

    async def terminate(self, machine_id: str) -> None:
        """Start taking away what the purchase brought."""
        if (purchase := self._purchase_of(machine_id)) is not None:
            await self._run(f"P={purchase}\n{TERMINATE}")

    async def leftovers(self, market_id: str) -> Sequence[Leftover]:
        """None: the end takes all away, and says that it has ended only then."""
        return []

    async def remove(self, leftover: Leftover) -> None:
        """There is nothing to remove."""

    async def console(self, machine_id: str) -> str:
        """The last 64 KiB that the first script wrote."""
        if (purchase := self._purchase_of(machine_id)) is None:
            return ""
        return await self._run(f"P={purchase}\n" + CONSOLE.replace("@BYTES@", str(CONSOLE_BYTES)))

    async def check(self) -> Sequence[Finding]:
        """Log in, and look at what the agent needs."""
        try:
            said = await self._run(CHECK)
        except (Refused, Doubtful) as no:
            way_out = "Let the public half of private_key in, for root or a user whom sudo asks for no password."
            return [Finding("credentials", False, str(no), way_out)]
        found = [line.partition("=")[::2] for line in said.splitlines()]
        facts, missing = dict(found), " ".join(value for name, value in found if name == "missing")
        off_s = self._clock.wall_ns() // SECOND - _number(facts.get("now", ""))
        held = facts.get("held", "")
        return [
            Finding(
                "credentials", True, f"{self._settings.user} is root on {facts.get('system', 'an unknown system')}."
            ),
            Finding(
                "clock",
                abs(off_s) <= CLOCK_OFF_S_MAX,
                f"The machine's clock is {off_s} s behind this one.",
                "" if abs(off_s) <= CLOCK_OFF_S_MAX else "Set both clocks, best by NTP.",
            ),
            Finding(
                "image",
                not missing,
                f"It lacks {missing}." if missing else "It has what the agent needs.",
                f"Install {missing} there." if missing else "",
            ),
            Finding("quota", True, f"Market {held} has it now." if held else "It is free."),
        ]

    async def close(self) -> None:
        """Forget the key."""
        for handle in {self._key, self._known} - {-1}:
            os.close(handle)
        self._key = self._known = -1

    def _offer(self) -> MachineOffer:
        known = self._settings
        return MachineOffer(
            offer_id=f"{known.address}:{known.port}",
            kind=Kind.ON_DEMAND,
            gpu=known.gpu,
            gpu_count=known.gpus,
            cpus=known.cpus,
            memory_bytes=known.memory_bytes,
            region=known.region,
            country=known.country,
            price_per_hour=known.price_per_hour,
            currency=known.currency,
            priced_on=datetime.fromtimestamp(self._clock.wall_ns() // SECOND, UTC).date(),
            billing=Billing(1, 1),
        )

    def _purchase_of(self, machine_id: str) -> str | None:
        purchase, _, address = machine_id.partition("@")
        return purchase if _WORD.fullmatch(purchase) and address == self._settings.address else None

    def _machines(self, said: str) -> list[Machine]:
        """The machines that a script showed. Raises Doubtful where it was cut."""
        blocks = said.split("\n.\n")
        if blocks.pop():
            raise Doubtful("The machine's answer was cut.")
        return [self._machine(dict(line.partition("=")[::2] for line in block.splitlines())) for block in blocks]

    def _machine(self, facts: Mapping[str, str]) -> Machine:
        if "ended" in facts:
            state = MachineState.TERMINATED
        elif "ending" in facts:
            state = MachineState.STOPPING
        else:
            state = MachineState.RUNNING if "started" in facts else MachineState.PENDING
        return Machine(
            machine_id=f"{facts.get('purchase', '')}@{self._settings.address}",
            state=state,
            said=f"{state} by its own record",
            market_id=facts.get("market", ""),
            purchase_id=PurchaseId(facts.get("purchase", "")),
            epoch=_number(facts.get("epoch", "")),
            offer_id=self._offer().offer_id,
            launched_at_ns=_number(facts["started"]) * SECOND if "started" in facts else None,
            ended_at_ns=_number(facts["ended"]) * SECOND if "ended" in facts else None,
        )

    # ----- how -----

    async def _run(self, script: str, *, is_buying: bool = False) -> str:
        """Run a script as root there; it goes by standard input, so that no list of processes shows it. Raises Refused
        or Doubtful. is_buying: where the machine cannot be reached at all, it is not to be had."""
        shell = "sh -s" if self._settings.user == "root" else "sudo -n sh -s"
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command(shell),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
        except FileNotFoundError:
            raise Refused(RefusedFor.LIMIT, "The Master's machine lacks the program ssh (OpenSSH's client).") from None
        try:
            async with asyncio.timeout(self._call_s):
                out, err = await _answer(process, (HEAD + script).encode())
        except TimeoutError:
            raise Doubtful(f"{self._settings.address} did not answer in {self._call_s:g} s.") from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode:
            raise self._failed(process.returncode, err.decode(errors="replace"), is_buying)
        return out.decode(errors="replace")

    def _failed(self, status: int, said: str, is_buying: bool) -> Exception:
        words = " ".join(said.split())[-SAID_MAX:]
        if status == HELD:
            return Refused(RefusedFor.CAPACITY, "Another purchase has this machine.")
        if status == NOT_ROOT or "sudo:" in said:
            return Refused(RefusedFor.AUTH, f"{self._settings.user} may not become root there: {words}")
        if status == SSH_FAILED and ("Permission denied" in said or "Load key" in said):
            return Refused(RefusedFor.AUTH, "It does not let this key in.")
        if status == SSH_FAILED and "Host key verification failed" in said:
            return Refused(RefusedFor.AUTH, "Its key is not host_key: another machine answers, or it was set up anew.")
        if is_buying and status == SSH_FAILED and said.startswith(("ssh: connect to host", "ssh: Could not resolve")):
            return Refused(RefusedFor.CAPACITY, f"It cannot be reached: {words}")
        return Doubtful(f"{self._settings.address} gave no answer: {words}")

    def _command(self, shell: str) -> list[str]:
        if self._key < 0:
            self._key = _in_memory("key", self._settings.private_key)
            self._known = _in_memory("known", f"{BOX} {self._settings.host_key}\n")
        own = f"/proc/{os.getpid()}/fd"
        options = {
            "BatchMode": "yes",
            "ConnectTimeout": CONNECT_S,
            "GlobalKnownHostsFile": "/dev/null",
            "HostKeyAlias": BOX,
            "IdentitiesOnly": "yes",
            "IdentityAgent": "none",
            "IdentityFile": f"{own}/{self._key}",
            "LogLevel": "ERROR",
            "ServerAliveInterval": 5,
            "StrictHostKeyChecking": "yes",
            "UserKnownHostsFile": f"{own}/{self._known}",
        }
        known = self._settings
        flags = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
        return ["ssh", "-F", "/dev/null", "-T", *flags, "-p", str(known.port), "-l", known.user, known.address, shell]


async def _answer(process: asyncio.subprocess.Process, script: bytes) -> tuple[bytes, bytes]:
    """Both outputs of a script. Raises Doubtful where one is longer than any machine has to say."""
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None, "all are pipes"

    async def read(stream: asyncio.StreamReader) -> bytes:
        said = bytearray()
        while piece := await stream.read(OUTPUT_MAX):
            said += piece if len(said) <= OUTPUT_MAX else b""
            if len(said) > OUTPUT_MAX and process.returncode is None:  # and read the rest, or its end is not seen
                with suppress(ProcessLookupError):
                    process.kill()
        if len(said) > OUTPUT_MAX:
            raise Doubtful(f"The machine says more than {OUTPUT_MAX} bytes.")
        return bytes(said)

    async def write(stream: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):  # it has ended, and its status says why
            stream.write(script)
            await stream.drain()
        stream.close()

    out, err, _ = await asyncio.gather(read(process.stdout), read(process.stderr), write(process.stdin))
    await process.wait()
    return out, err


def _in_memory(name: str, text: str) -> int:
    """A file that is on no disk; only this process, and those of its user, can read it."""
    handle = os.memfd_create(name)
    os.fchmod(handle, 0o600)
    os.write(handle, text.encode())
    return handle


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else 0
