"""The one table of conditions: all that can be wrong with a host, a GPU, the Master or an Access, and what to do. Pure.

A condition holds as long as its cause. Agents send codes only, `gpu.lost:GPU-1` where one is about a GPU or a slice.
Agents and Masters of different versions meet: a code without a row here is kept and shown, and changes nothing else.
"""

from collections.abc import Mapping
from enum import StrEnum
from functools import partial
from typing import Final, Self

PAGE: Final = "docs/conditions.md"
"""The runbook, written from this table."""


class Scope(StrEnum):
    """The thing that a condition is about: its effect falls on that."""

    HOST = "host"
    GPUS = "gpus"
    GPU = "gpu"
    MASTER = "master"
    ACCESS = "access"


class Effect(StrEnum):
    """How a condition changes what may be rented. WITHHOLD: nothing new starts while it lasts, and what runs goes on.
    DEGRADE: the same, and the GPU's health counts as degraded. FAULT: the lease ends, and the GPU is offered again only
    when it was verified."""

    NONE = "none"
    WITHHOLD = "withhold"
    DEGRADE = "degrade"
    FAULT = "fault"


class Severity(StrEnum):
    """How soon a person has to look. PAGE: at once. TICKET: within days. INFO: never, it only explains."""

    INFO = "info"
    TICKET = "ticket"
    PAGE = "page"


UNKNOWN_REMEDY: Final = (
    "This Master does not know the condition: the host's agent is of another version. Install one version on both."
)
_ASK_DOCTOR: Final = "Run `windrow-agent doctor` on the host as the agent's user: it says what is missing."
_BUG: Final = "Look in {whose} log for the last event that ends with `_crashed`, and report its traceback."
_FIGURES: Final = (
    "Compare both figures in the condition with `nvidia-smi -q` on the host, and install the maker's own driver. The "
    "GPU is offered again with the next inventory that agrees. If an honest card is named, report it with that output."
)
_RIVALS: Final = (
    "The condition names both hosts. If the card has moved, the condition ends by itself once the other host is "
    "without it. If it has not, quarantine the host that lies."
)

Row = tuple[str, str, Scope, Effect, Severity, str, str, str]


def _row(
    scope: Scope, code: str, heading: str, effect: Effect, severity: Severity, words: str, remedy: str, note: str = ""
) -> Row:
    return code, heading, scope, effect, severity, words, remedy, note


def _claim(code: str, heading: str, words: str, remedy: str = _FIGURES, scope: Scope = Scope.GPU) -> Row:
    return _row(scope, code, heading, Effect.WITHHOLD, Severity.TICKET, words, remedy)


_host = partial(_row, Scope.HOST)
_gpus = partial(_row, Scope.GPUS)
_gpu = partial(_row, Scope.GPU)
_master = partial(_row, Scope.MASTER)
_access = partial(_row, Scope.ACCESS)


class ConditionCode(StrEnum):
    """Every condition by its code, which is stable: operators' alerts hang on it.

    heading: a name of a few words, for lists and events; words: what is so, for whoever sees the host or the Master;
    remedy: what to run and where to look, for its owner; note: what placement says of a host to whoever asks for
    work that the condition is about.
    """

    heading: str
    scope: Scope
    effect: Effect
    severity: Severity
    words: str
    remedy: str
    note: str

    def __new__(
        cls,
        code: str,
        heading: str,
        scope: Scope,
        effect: Effect,
        severity: Severity,
        words: str,
        remedy: str,
        note: str,
    ) -> Self:
        """One row as a text, its code."""
        self = str.__new__(cls, code)
        self._value_ = code
        self.scope, self.effect, self.severity = scope, effect, severity
        self.heading = heading
        self.words, self.remedy, self.note = words, remedy, note
        return self

    @property
    def runbook(self) -> str:
        """The place in the runbook, as a link that GitHub and browsers follow."""
        return f"{PAGE}#{self.replace('.', '')}"

    # --- a host ------------------------------------------------------------------------------------------------------

    AGENT_DISK_FULL = _host(
        "agent.disk_full",
        "Disk full",
        Effect.WITHHOLD,
        Severity.TICKET,
        "The disk of this host is full; it takes no new work until there is room.",
        "Free space on the disk of the agent's data directory: `df -h` and `docker system df` show what takes it. The "
        "agent looks again every 5 s.",
    )
    AGENT_STORAGE_FAILED = _host(
        "agent.storage_failed",
        "Agent cannot write to its disk",
        Effect.NONE,
        Severity.TICKET,
        "The agent of this host could not write to its data directory.",
        "Look at `dmesg` and `df -h` for the disk of the agent's data directory, repair it, then restart the agent.",
    )
    AGENT_BUG_MET = _host(
        "agent.bug_met",
        "Bug in the agent",
        Effect.NONE,
        Severity.TICKET,
        "This host's agent has met a bug of its own within a day. The bug ended only what met it.",
        _BUG.format(whose="the agent's"),
    )
    CLOCK_SKEW = _host(
        "clock.skew",
        "Clock is wrong",
        Effect.NONE,
        Severity.TICKET,
        "The host's clock differs from the Master's by more than 5 s.",
        "Set up NTP on the host: `timedatectl set-ntp true`. `timedatectl` says whether the clock is in step.",
    )
    DOCKER_LOST = _host(
        "docker.lost",
        "Container daemon does not answer",
        Effect.NONE,
        Severity.PAGE,
        "The container daemon of this host does not answer any more, so that it runs no containers.",
        "On the host: `sudo windrow-agent doctor` says why. Start the daemon (`sudo systemctl start docker`), or start "
        "the agent with `--runtimes process` if it is to run no containers. The agent looks again every minute.",
    )
    DOCKER_UNFENCED = _host(
        "docker.unfenced",
        "Containers reach the host's network",
        Effect.NONE,
        Severity.TICKET,
        "Containers on this host reach its network, so that they run its owner's work only.",
        "On the host: `sudo windrow-agent fence` (it needs nft). It does not reach a rootless container daemon.",
    )
    DOCKER_NO_GPUS = _host(
        "docker.no_gpus",
        "Containers get no GPUs",
        Effect.NONE,
        Severity.TICKET,
        "Containers on this host get no NVIDIA GPUs, since its container daemon knows no NVIDIA Container Toolkit. Its "
        "GPUs are on offer to its owner's processes only.",
        "On the host, install `nvidia-container-toolkit`. Then for Docker: `sudo nvidia-ctk runtime configure "
        "--runtime=docker` and `sudo systemctl restart docker`; for Podman: `sudo nvidia-ctk cdi generate "
        "--output=/etc/cdi/nvidia.yaml`. The agent looks again every minute.",
    )
    DOCKER_SILENT = _host(
        "docker.silent",
        "Ended work waits for the container daemon",
        Effect.NONE,
        Severity.TICKET,
        "Work that has ended waits for the container daemon of this host, which does not answer. A container of it may "
        "still run, so that its slots stay in use.",
        "On the host: `sudo systemctl restart docker`, for Podman `systemctl restart podman.socket`; `journalctl -u "
        "docker` says why it ended. Once it answers, the agent ends the work and frees its slots within a minute.",
    )
    PROCESS_UNCONFINED = _host(
        "process.unconfined",
        "Processes run without a sandbox",
        Effect.NONE,
        Severity.INFO,
        "Processes on this host run without a sandbox, with all rights of the agent's user: its owner started the "
        "agent with --no-bubblewrap.",
        "Start the agent without `--no-bubblewrap`, and processes run in a sandbox.",
        "its processes run without a sandbox, with all rights of its agent's user, as its owner chose",
    )
    PROCESS_NO_SANDBOX = _host(
        "process.no_sandbox",
        "No sandbox for processes",
        Effect.NONE,
        Severity.TICKET,
        "No sandbox can be made on this host, so that it runs no processes, only containers.",
        _ASK_DOCTOR,
        "it has no sandbox for processes: windrow-agent doctor says why",
    )
    PROCESS_NO_NETWORK = _host(
        "process.no_network",
        "Processes reach no network",
        Effect.NONE,
        Severity.TICKET,
        "Processes on this host reach no network but a cluster's own.",
        _ASK_DOCTOR,
        "its processes reach no network: windrow-agent doctor says why",
    )
    HOST_SWEEP_STALLED = _host(
        "host.sweep_stalled",
        "Host figures hang",
        Effect.NONE,
        Severity.TICKET,
        "Reading the host's own figures hangs, mostly on a dead network disk.",
        "Look for a network disk that does not answer (`df` hangs on it), and unmount it: `umount -l FOLDER`.",
    )
    GPU_NONE = _host(
        "gpu.none",
        "No GPU",
        Effect.NONE,
        Severity.INFO,
        "The host has no GPU that its agent can see; it is offered by its processors.",
        "No GPU in this machine: nothing to do. Otherwise check that `lspci` lists it, and install its driver.",
    )
    GPU_EVENTS_UNSUPPORTED = _host(
        "gpu.events_unsupported",
        "Driver reports no faults",
        Effect.NONE,
        Severity.INFO,
        "The driver reports no faults by itself; they are found late or not at all.",
        "Install a newer driver, if there is one for the card.",
    )

    # --- all GPUs of a host ------------------------------------------------------------------------------------------

    GPU_NO_DRIVER = _gpus(
        "gpu.no_driver",
        "No GPU driver",
        Effect.WITHHOLD,
        Severity.TICKET,
        "There is a GPU, but no driver that answers.",
        "Install the driver, or load it: `sudo modprobe nvidia`. The agent looks again every 30 s.",
    )
    GPU_NO_PERMISSION = _gpus(
        "gpu.no_permission",
        "Driver refuses the agent's user",
        Effect.WITHHOLD,
        Severity.TICKET,
        "The driver refuses the agent's user.",
        "Let the agent's user open `/dev/nvidiactl` and `/dev/nvidia*`; `ls -l /dev/nvidia*` shows who may.",
    )
    GPU_DRIVER_MISMATCH = _gpus(
        "gpu.driver_mismatch",
        "Driver versions differ",
        Effect.WITHHOLD,
        Severity.TICKET,
        "The driver's library and its kernel module differ in version, as after an upgrade.",
        "Reboot the host, or reload the module. The agent then restarts itself.",
    )
    GPU_UNAVAILABLE = _gpus(
        "gpu.unavailable",
        "GPU driver error",
        Effect.WITHHOLD,
        Severity.TICKET,
        "The GPU driver answers with an error.",
        "Run `nvidia-smi` and `dmesg` on the host: they say more. The agent tries again every 30 s.",
    )
    GPU_INITIALISING = _gpus(
        "gpu.initialising",
        "GPU driver is starting",
        Effect.WITHHOLD,
        Severity.INFO,
        "The GPU driver is starting.",
        "Wait. Where each start takes long, run nvidia-persistenced on the host: it keeps the driver loaded.",
    )
    GPU_SWEEP_STALLED = _gpus(
        "gpu.sweep_stalled",
        "GPU driver does not answer",
        Effect.WITHHOLD,
        Severity.TICKET,
        "The GPU driver does not answer in time, so the state of the GPUs is not known.",
        "Wait a minute. If the condition stays, look at `dmesg` for XIDs, and reboot the host.",
    )

    # --- one GPU or slice --------------------------------------------------------------------------------------------

    GPU_LOST = _gpu(
        "gpu.lost",
        "GPU lost",
        Effect.FAULT,
        Severity.TICKET,
        "This GPU fell off its bus; the others go on.",
        "Reboot the host. If it happens again, reseat or replace the card.",
    )
    GPU_REMAP_FAILED = _gpu(
        "gpu.remap_failed",
        "Memory repair failed",
        Effect.FAULT,
        Severity.TICKET,
        "Memory of this GPU could not be repaired.",
        "Replace the card. `nvidia-smi -q -d ROW_REMAPPER` shows what failed, for its maker.",
    )
    GPU_HOST_FAULT = _gpu(
        "gpu.host_fault",
        "Hardware fault",
        Effect.FAULT,
        Severity.TICKET,
        "The driver reported a fault of the hardware, which no program causes; the GPU's events have its XID.",
        "Reset the GPU (`sudo nvidia-smi -r -i INDEX`) or reboot the host.",
    )
    GPU_REMAP_PENDING = _gpu(
        "gpu.remap_pending",
        "Memory repair pending",
        Effect.DEGRADE,
        Severity.TICKET,
        "Memory of this GPU waits to be repaired.",
        "Drain the host (`windrow host drain HOST`), then reset the GPU: `sudo nvidia-smi -r -i INDEX`.",
    )
    GPU_HOT = _gpu(
        "gpu.hot",
        "Too hot",
        Effect.DEGRADE,
        Severity.TICKET,
        "This GPU is within 10 degrees of slowing itself down.",
        "Look at its cooling: fans, dust, and the air that comes in.",
    )
    GPU_THROTTLED = _gpu(
        "gpu.throttled",
        "Slowed down",
        Effect.DEGRADE,
        Severity.TICKET,
        "This GPU slows itself down by heat or by its power supply.",
        "`nvidia-smi -q -d PERFORMANCE` says which of them. Look at its cooling, its power cables and the supply.",
    )
    GPU_KERNEL_DIFFERS = _gpu(
        "gpu.kernel_differs",
        "Kernel and driver name different cards",
        Effect.WITHHOLD,
        Severity.TICKET,
        "The kernel names another card than the driver's library does; this GPU is not offered.",
        "Install the library that came with the driver, then restart the agent.",
    )
    GPU_NOT_SERVED = _gpu(
        "gpu.not_served",
        "Card without a driver",
        Effect.WITHHOLD,
        Severity.TICKET,
        "This card is on the bus, but no driver serves it that the agent reads; it is shown and not offered.",
        "Load its driver (`sudo modprobe amdgpu`, `sudo modprobe xe`), or give the card back to the host if a virtual "
        "machine has it.",
    )
    GPU_MIG_CHANGED = _gpu(
        "gpu.mig_changed",
        "MIG mode changed",
        Effect.WITHHOLD,
        Severity.TICKET,
        "The MIG mode of this GPU is not the one it was listed in, or is about to change.",
        "Set the mode back (`sudo nvidia-smi -i INDEX -mig 0`, or `1`), or restart the agent to list the GPU anew.",
    )
    GPU_FOREIGN_USE = _gpu(
        "gpu.foreign_use",
        "Used by something else",
        Effect.WITHHOLD,
        Severity.TICKET,
        "Something other than rented work uses this GPU; it is not offered meanwhile.",
        "`nvidia-smi` on the host lists the programs on the GPU: end them. It is offered again half a minute later.",
    )
    GPU_STRIPPED = _gpu(
        "gpu.stripped",
        "Container lost its GPU",
        Effect.WITHHOLD,
        Severity.TICKET,
        "The container that rents this GPU cannot open it any more. What it has open goes on.",
        "Start the container anew. Give containers their GPUs by CDI (`nvidia-ctk cdi generate`): `systemctl "
        "daemon-reload` then takes none away.",
    )
    GPU_DUPLICATE_UUID = _gpu(
        "gpu.duplicate_uuid",
        "Two GPUs with one id",
        Effect.NONE,
        Severity.TICKET,
        "Two GPUs of this host claim one id; the second is left out.",
        "`nvidia-smi -L` lists the ids. Reboot the host; if the condition stays, ask the maker of the card.",
    )

    # --- one GPU, found by the Master: challenges, and two hosts with one card ---------------------------------------

    CHALLENGE_RUNNING = _gpu(
        "challenge.running",
        "Being verified",
        Effect.WITHHOLD,
        Severity.INFO,
        "This GPU is being challenged; it is back in a moment.",
        "Wait.",
    )
    CHALLENGE_FAILED = _gpu(
        "challenge.failed",
        "Verification failed",
        Effect.WITHHOLD,
        Severity.TICKET,
        "This GPU failed its challenge. It is not offered until it passes one.",
        "The condition says how it failed. Look at `dmesg` on the host, then run `windrow host verify HOST`.",
    )
    CHALLENGE_APART = _gpu(
        "challenge.apart",
        "Cards answered one after another",
        Effect.WITHHOLD,
        Severity.TICKET,
        "GPUs of one class were challenged in the same second and worked one after another, as one card that answers "
        "for several does.",
        "Run `windrow host verify HOST` while nothing else uses the host. If the condition stays, list each card once.",
    )
    GPU_LISTED_ELSEWHERE = _gpu(
        "gpu.listed_elsewhere",
        "In use on another host",
        Effect.WITHHOLD,
        Severity.TICKET,
        "A GPU with this id is in use on another host; it is not offered here.",
        "If the card has moved, wait until the lease on the other host ends. If not, quarantine the host that lies.",
    )
    CLAIM_UUID_SHARED = _claim(
        "claim.uuid_shared",
        "UUID claimed by another host",
        "Another live host claimed a card of this UUID before.",
        _RIVALS,
    )
    CLAIM_SERIAL_SHARED = _claim(
        "claim.serial_shared",
        "Serial number claimed by another host",
        "Another live host claimed a card of this serial number before.",
        _RIVALS,
    )
    DISPUTED_UUID = _gpu(
        "disputed.uuid",
        "Another host claims this UUID",
        Effect.NONE,
        Severity.TICKET,
        "Another live host claims a card of this UUID since later; it stays on offer here.",
        _RIVALS,
    )
    DISPUTED_SERIAL = _gpu(
        "disputed.serial",
        "Another host claims this serial number",
        Effect.NONE,
        Severity.TICKET,
        "Another live host claims a card of this serial number since later; it stays on offer here.",
        _RIVALS,
    )

    # --- one GPU, found by the Master: what a host says of it cannot be true (docs/claims.md) ------------------------

    CLAIM_VENDOR = _claim("claim.vendor", "Maker does not match", "The PCI id is another maker's.")
    CLAIM_NAME = _claim("claim.name", "Name does not match", "The name is not that of the model whose PCI id it has.")
    CLAIM_MEMORY = _claim(
        "claim.memory", "Memory size does not match", "It has more or less memory than the model's driver reports."
    )
    CLAIM_MEMORY_GRAIN = _claim(
        "claim.memory_grain", "Impossible memory size", "Its memory is a total that no driver counts to."
    )
    CLAIM_CAPABILITY = _claim(
        "claim.capability", "Compute capability does not match", "It has another compute capability than the model."
    )
    CLAIM_POWER = _claim("claim.power", "Impossible power limit", "Its power limit is above the highest one allowed.")
    CLAIM_POWER_RANGE = _claim(
        "claim.power_range", "Power limit does not match", "The model is not built for its highest power limit."
    )
    CLAIM_LINK = _claim("claim.link", "Impossible PCIe link", "Its PCIe link does not exist.")
    CLAIM_CLOCKS = _claim(
        "claim.clocks", "Impossible clock", "It has a clock that no card reaches, or that all exceed."
    )
    CLAIM_BUS = _claim("claim.bus", "Impossible memory bus", "Its memory bus has a width that does not exist.")
    CLAIM_BANDWIDTH = _claim(
        "claim.bandwidth",
        "Memory bandwidth does not match",
        "Its memory clock and width do not give the model's bandwidth.",
    )
    CLAIM_CORES = _claim(
        "claim.cores", "Impossible number of cores", "Its cores are no whole number of multiprocessors."
    )
    CLAIM_MIG = _claim("claim.mig", "MIG on a model without it", "MIG is on, and the model has none.")
    CLAIM_ECC = _claim("claim.ecc", "ECC on a model without it", "ECC is on, and the model has none.")
    CLAIM_UUID = _claim("claim.uuid", "Impossible UUID", "Its UUID is not of NVML's form.")
    CLAIM_UUID_TWICE = _claim("claim.uuid_twice", "UUID used twice", "Two cards of the host have one UUID.")
    CLAIM_SERIAL_TWICE = _claim(
        "claim.serial_twice", "Serial number used twice", "Two cards of the host have one serial number."
    )
    CLAIM_PCI_ADDRESS = _claim("claim.pci_address", "Impossible PCI address", "Its PCI address is none.")
    CLAIM_PCI_ADDRESS_TWICE = _claim(
        "claim.pci_address_twice", "PCI address used twice", "Two cards of the host have one PCI address."
    )
    CLAIM_INDEX_TWICE = _claim("claim.index_twice", "Index used twice", "Two cards of a maker have one index.")
    CLAIM_MINOR_TWICE = _claim(
        "claim.minor_twice", "Device file used twice", "Two cards of a maker have one device file."
    )
    CLAIM_DRIVER = _claim(
        "claim.driver",
        "Unknown driver version",
        "There are NVIDIA cards, and no driver, or one of no known form.",
        scope=Scope.GPUS,
    )
    CLAIM_MEMORY_UNLIKE = _claim(
        "claim.memory_unlike", "Memory sizes differ on one board", "Boards that must be alike differ in memory."
    )
    CLAIM_POWER_UNLIKE = _claim(
        "claim.power_unlike",
        "Power limits differ on one board",
        "Boards that must be alike differ in their highest power limit.",
    )

    # --- the Master and its Accesses ---------------------------------------------------------------------------------

    MASTER_DISK_FULL = _master(
        "master.disk_full",
        "Server disk full",
        Effect.WITHHOLD,
        Severity.PAGE,
        "A disk of the Master is full: nothing new starts, and samples stay with the agents.",
        "`df -h` and `du -xsh` show what takes the space: move backups and logs away, or enlarge the disk.",
    )
    MASTER_LOG_FAILED = _master(
        "master.log_failed",
        "Samples are not stored",
        Effect.NONE,
        Severity.PAGE,
        "Samples are not stored since a write of the telemetry log failed. The agents keep theirs and send them again.",
        "Look at the disk of the Master's data directory (`dmesg`, `df -h`). Each write tries a new segment.",
    )
    MASTER_CLOCK_JUMPED = _master(
        "master.clock_jumped",
        "Server clock has jumped",
        Effect.NONE,
        Severity.PAGE,
        "The clock of the Master's machine has jumped. The Master's own goes on as before, so that nothing expires or "
        "is charged by the jump.",
        "Correct the machine's clock (`timedatectl`). If it is the right one, restart the Master.",
    )
    MASTER_LATER_SEEN = _master(
        "master.later_seen",
        "Hosts obey another Master",
        Effect.NONE,
        Severity.PAGE,
        "Hosts say that they obey a later Master of this market. They are refused here.",
        "If another Master was started on a copy of this one's data, stop this Master. If there is no other, "
        "quarantine the hosts that the message names: they lie, or they have the state of another market.",
    )
    MASTER_CERTIFICATE = _master(
        "master.certificate",
        "TLS certificate expires",
        Effect.NONE,
        Severity.TICKET,
        "The TLS certificate that an operator gave for browsers is about to expire, or a renewed one is not taken.",
        "Put a valid certificate and its key into the files that WINDROW_TLS_CERT_FILE and WINDROW_TLS_KEY_FILE name. "
        "They are read again every ten seconds.",
    )
    MASTER_LOG_LAG = _master(
        "master.log_lag",
        "History is behind",
        Effect.NONE,
        Severity.TICKET,
        "The newest samples in the history are minutes old: charts and reports of now wait for them.",
        "Look at the load and the disk of the Master's machine, and at the metrics store, if there is one.",
    )
    MASTER_BACKUP_OLD = _master(
        "master.backup_old",
        "Last backup is old",
        Effect.NONE,
        Severity.TICKET,
        "The last backup of the market was made more than two days ago, or none is known.",
        "Make one: `windrow-master backup FILE`, or repair the timer that does.",
    )
    MASTER_STANDBY_GONE = _master(
        "master.standby_gone",
        "Stand-by Master is missing",
        Effect.NONE,
        Severity.TICKET,
        "Another Master waited to take over, and none does any more: if this one ends, nobody leads.",
        "Start the other Master again on the same database. If there is to be none any more, restart this one.",
    )
    MASTER_BUG_MET = _master(
        "master.bug_met",
        "Bug in the Master",
        Effect.NONE,
        Severity.TICKET,
        "The Master has met a bug of its own within a day. The bug ended only what met it.",
        _BUG.format(whose="the Master's"),
    )
    MASTER_ITEM_GIVEN_UP = _master(
        "master.item_given_up",
        "Work given up after repeated bugs",
        Effect.NONE,
        Severity.TICKET,
        "The Master met a bug several times in a row with the same job, machine or host, and has given it up or passes "
        "over it.",
        _BUG.format(whose="the Master's"),
    )
    MASTER_ROW_UNREADABLE = _master(
        "master.row_unreadable",
        "Unreadable rows in the database",
        Effect.NONE,
        Severity.TICKET,
        "Rows of the database cannot be read and are passed over. Everything else goes on.",
        "Run `windrow-master check`: it looks through the database. A backup may have the rows.",
    )
    MASTER_PROVIDER_AWAY = _master(
        "master.provider_away",
        "Identity provider does not answer",
        Effect.NONE,
        Severity.TICKET,
        "An identity provider does not answer as it should. Nobody new signs in by it; who is signed in stays so.",
        "Run `windrow identity-provider test NAME`: it says what is wrong. People can sign in another way meanwhile.",
    )
    MASTER_MAIL_FAILED = _master(
        "master.mail_failed",
        "Mail is not delivered",
        Effect.NONE,
        Severity.TICKET,
        "Mail was not delivered: invitations, links to new passwords. It is tried again for two days.",
        "Look at WINDROW_SMTP_URL and at the mail server. Until it works, start the Master without it: links are then "
        "shown, to be given by hand.",
    )
    MASTER_CHANNEL_FAILED = _master(
        "master.channel_failed",
        "Alerts are not delivered",
        Effect.NONE,
        Severity.TICKET,
        "A channel of the operators did not take a message, and the message was given up.",
        "Run `windrow delivery ls --state given_up`, repair the receiver or the channel, `windrow channel test NAME`, "
        "then `windrow delivery again ID`.",
    )
    AUDIT_BROKEN = _master(
        "audit.broken",
        "Audit log is not intact",
        Effect.NONE,
        Severity.PAGE,
        "The audit log is not intact.",
        "Find out who wrote it. Then take the log as it is with `windrow audit reanchor --reason WHY`, or bring a "
        "backup back with `windrow-master restore`.",
    )
    BUS_ALONE = _master(
        "bus_alone",
        "Message bus is cut off",
        Effect.NONE,
        Severity.TICKET,
        "The bus reaches one process of the Master only: live pages of the others are up to a second late, and each "
        "counts limits alone.",
        "Look after the Redis server that WINDROW_REDIS_URL names.",
    )
    ACCESS_BUG_MET = _access(
        "access.bug_met",
        "Bug in a relay",
        Effect.NONE,
        Severity.TICKET,
        "Relays have met a bug of their own. The bug ended only what met it.",
        _BUG.format(whose="that relay's"),
    )


Stated = tuple[ConditionCode, str, int]
"""A condition of the Master or an Access: its code, what is known of it in words, since when (wall nanoseconds)."""

_BY_CODE: Final[Mapping[str, ConditionCode]] = {code.value: code for code in ConditionCode}


def split(text: str) -> tuple[str, str]:
    """The code and the subject (a GPU's id, or empty) of a condition as agents write it: `code` or `code:subject`."""
    code, _, subject = text.partition(":")
    return code, subject


def heading_of(text: str) -> str:
    """The name of a condition as agents write it, in a few words: of a code without a row, its last part's."""
    known = find(text)
    return split(text)[0].rpartition(".")[2].replace("_", " ") if known is None else known.heading


def find(text: str) -> ConditionCode | None:
    """The row of a condition as agents write it; None where its code has none here."""
    return _BY_CODE.get(split(text)[0])
