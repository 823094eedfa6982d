"""A paragraph for each condition of hosts, GPUs, relays and the Master; `make conditions` writes it. Pure."""

from typing import Final

CONDITIONS: Final[dict[str, str]] = {
    "agent.disk_full": (
        "The disk of this host is full; it takes no new work until there is room. Free space on the disk of the"
        " agent's data directory: `df -h` and `docker system df` show what takes it. The agent looks again "
        "every 5 s."
    ),
    "agent.storage_failed": (
        "The agent of this host could not write to its data directory. Look at `dmesg` and `df -h` for the disk"
        " of the agent's data directory, repair it, then restart the agent."
    ),
    "agent.bug_met": (
        "This host's agent has met a bug of its own within a day. The bug ended only what met it. Look in the "
        "agent's log for the last event that ends with `_crashed`, and report its traceback."
    ),
    "clock.skew": (
        "The host's clock differs from the Master's by more than 5 s. Set up NTP on the host: `timedatectl set-"
        "ntp true`. `timedatectl` says whether the clock is in step."
    ),
    "docker.lost": (
        "The container daemon of this host does not answer any more, so that it runs no containers. On the "
        "host: `sudo windrow-agent doctor` says why. Start the daemon (`sudo systemctl start docker`), or start"
        " the agent with `--runtimes process` if it is to run no containers. The agent looks again every "
        "minute."
    ),
    "docker.unfenced": (
        "Containers on this host reach its network, so that they run its owner's work only. On the host: `sudo "
        "windrow-agent fence` (it needs nft). It does not reach a rootless container daemon."
    ),
    "docker.no_gpus": (
        "Containers on this host get no NVIDIA GPUs, since its container daemon knows no NVIDIA Container "
        "Toolkit. Its GPUs are on offer to its owner's processes only. On the host, install `nvidia-container-"
        "toolkit`. Then for Docker: `sudo nvidia-ctk runtime configure --runtime=docker` and `sudo systemctl "
        "restart docker`; for Podman: `sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml`. The agent "
        "looks again every minute."
    ),
    "docker.silent": (
        "Work that has ended waits for the container daemon of this host, which does not answer. A container of"
        " it may still run, so that its slots stay in use. On the host: `sudo systemctl restart docker`, for "
        "Podman `systemctl restart podman.socket`; `journalctl -u docker` says why it ended. Once it answers, "
        "the agent ends the work and frees its slots within a minute."
    ),
    "process.unconfined": (
        "Processes on this host run without a sandbox, with all rights of the agent's user: its owner started "
        "the agent with --no-bubblewrap. Start the agent without `--no-bubblewrap`, and processes run in a "
        "sandbox."
    ),
    "process.no_sandbox": (
        "No sandbox can be made on this host, so that it runs no processes, only containers. Run `windrow-agent"
        " doctor` on the host as the agent's user: it says what is missing."
    ),
    "process.no_network": (
        "Processes on this host reach no network but a cluster's own. Run `windrow-agent doctor` on the host as"
        " the agent's user: it says what is missing."
    ),
    "host.sweep_stalled": (
        "Reading the host's own figures hangs, mostly on a dead network disk. Look for a network disk that does"
        " not answer (`df` hangs on it), and unmount it: `umount -l FOLDER`."
    ),
    "gpu.none": (
        "The host has no GPU that its agent can see; it is offered by its processors. No GPU in this machine: "
        "nothing to do. Otherwise check that `lspci` lists it, and install its driver."
    ),
    "gpu.events_unsupported": (
        "The driver reports no faults by itself; they are found late or not at all. Install a newer driver, if "
        "there is one for the card."
    ),
    "gpu.no_driver": (
        "There is a GPU, but no driver that answers. Install the driver, or load it: `sudo modprobe nvidia`. "
        "The agent looks again every 30 s."
    ),
    "gpu.no_permission": (
        "The driver refuses the agent's user. Let the agent's user open `/dev/nvidiactl` and `/dev/nvidia*`; "
        "`ls -l /dev/nvidia*` shows who may."
    ),
    "gpu.driver_mismatch": (
        "The driver's library and its kernel module differ in version, as after an upgrade. Reboot the host, or"
        " reload the module. The agent then restarts itself."
    ),
    "gpu.unavailable": (
        "The GPU driver answers with an error. Run `nvidia-smi` and `dmesg` on the host: they say more. The "
        "agent tries again every 30 s."
    ),
    "gpu.initialising": (
        "The GPU driver is starting. Wait. Where each start takes long, run nvidia-persistenced on the host: it"
        " keeps the driver loaded."
    ),
    "gpu.sweep_stalled": (
        "The GPU driver does not answer in time, so the state of the GPUs is not known. Wait a minute. If the "
        "condition stays, look at `dmesg` for XIDs, and reboot the host."
    ),
    "gpu.lost": (
        "This GPU fell off its bus; the others go on. Reboot the host. If it happens again, reseat or replace the card."
    ),
    "gpu.remap_failed": (
        "Memory of this GPU could not be repaired. Replace the card. `nvidia-smi -q -d ROW_REMAPPER` shows what"
        " failed, for its maker."
    ),
    "gpu.host_fault": (
        "The driver reported a fault of the hardware, which no program causes; the GPU's events have its XID. "
        "Reset the GPU (`sudo nvidia-smi -r -i INDEX`) or reboot the host."
    ),
    "gpu.remap_pending": (
        "Memory of this GPU waits to be repaired. Drain the host (`windrow host drain HOST`), then reset the "
        "GPU: `sudo nvidia-smi -r -i INDEX`."
    ),
    "gpu.hot": (
        "This GPU is within 10 degrees of slowing itself down. Look at its cooling: fans, dust, and the air "
        "that comes in."
    ),
    "gpu.throttled": (
        "This GPU slows itself down by heat or by its power supply. `nvidia-smi -q -d PERFORMANCE` says which "
        "of them. Look at its cooling, its power cables and the supply."
    ),
    "gpu.kernel_differs": (
        "The kernel names another card than the driver's library does; this GPU is not offered. Install the "
        "library that came with the driver, then restart the agent."
    ),
    "gpu.not_served": (
        "This card is on the bus, but no driver serves it that the agent reads; it is shown and not offered. "
        "Load its driver (`sudo modprobe amdgpu`, `sudo modprobe xe`), or give the card back to the host if a "
        "virtual machine has it."
    ),
    "gpu.mig_changed": (
        "The MIG mode of this GPU is not the one it was listed in, or is about to change. Set the mode back "
        "(`sudo nvidia-smi -i INDEX -mig 0`, or `1`), or restart the agent to list the GPU anew."
    ),
    "gpu.foreign_use": (
        "Something other than rented work uses this GPU; it is not offered meanwhile. `nvidia-smi` on the host "
        "lists the programs on the GPU: end them. It is offered again half a minute later."
    ),
    "gpu.stripped": (
        "The container that rents this GPU cannot open it any more. What it has open goes on. Start the "
        "container anew. Give containers their GPUs by CDI (`nvidia-ctk cdi generate`): `systemctl daemon-"
        "reload` then takes none away."
    ),
    "gpu.duplicate_uuid": (
        "Two GPUs of this host claim one id; the second is left out. `nvidia-smi -L` lists the ids. Reboot the "
        "host; if the condition stays, ask the maker of the card."
    ),
    "challenge.running": "This GPU is being challenged; it is back in a moment. Wait.",
    "challenge.failed": (
        "This GPU failed its challenge. It is not offered until it passes one. The condition says how it "
        "failed. Look at `dmesg` on the host, then run `windrow host verify HOST`."
    ),
    "challenge.apart": (
        "GPUs of one class were challenged in the same second and worked one after another, as one card that "
        "answers for several does. Run `windrow host verify HOST` while nothing else uses the host. If the "
        "condition stays, list each card once."
    ),
    "gpu.listed_elsewhere": (
        "A GPU with this id is in use on another host; it is not offered here. If the card has moved, wait "
        "until the lease on the other host ends. If not, quarantine the host that lies."
    ),
    "claim.uuid_shared": (
        "Another live host claimed a card of this UUID before. The condition names both hosts. If the card has "
        "moved, the condition ends by itself once the other host is without it. If it has not, quarantine the "
        "host that lies."
    ),
    "claim.serial_shared": (
        "Another live host claimed a card of this serial number before. The condition names both hosts. If the "
        "card has moved, the condition ends by itself once the other host is without it. If it has not, "
        "quarantine the host that lies."
    ),
    "disputed.uuid": (
        "Another live host claims a card of this UUID since later; it stays on offer here. The condition names "
        "both hosts. If the card has moved, the condition ends by itself once the other host is without it. If "
        "it has not, quarantine the host that lies."
    ),
    "disputed.serial": (
        "Another live host claims a card of this serial number since later; it stays on offer here. The "
        "condition names both hosts. If the card has moved, the condition ends by itself once the other host is"
        " without it. If it has not, quarantine the host that lies."
    ),
    "claim.vendor": (
        "The PCI id is another maker's. Compare both figures in the condition with `nvidia-smi -q` on the host,"
        " and install the maker's own driver. The GPU is offered again with the next inventory that agrees. If "
        "an honest card is named, report it with that output."
    ),
    "claim.name": (
        "The name is not that of the model whose PCI id it has. Compare both figures in the condition with "
        "`nvidia-smi -q` on the host, and install the maker's own driver. The GPU is offered again with the "
        "next inventory that agrees. If an honest card is named, report it with that output."
    ),
    "claim.memory": (
        "It has more or less memory than the model's driver reports. Compare both figures in the condition with"
        " `nvidia-smi -q` on the host, and install the maker's own driver. The GPU is offered again with the "
        "next inventory that agrees. If an honest card is named, report it with that output."
    ),
    "claim.memory_grain": (
        "Its memory is a total that no driver counts to. Compare both figures in the condition with `nvidia-smi"
        " -q` on the host, and install the maker's own driver. The GPU is offered again with the next inventory"
        " that agrees. If an honest card is named, report it with that output."
    ),
    "claim.capability": (
        "It has another compute capability than the model. Compare both figures in the condition with `nvidia-"
        "smi -q` on the host, and install the maker's own driver. The GPU is offered again with the next "
        "inventory that agrees. If an honest card is named, report it with that output."
    ),
    "claim.power": (
        "Its power limit is above the highest one allowed. Compare both figures in the condition with `nvidia-"
        "smi -q` on the host, and install the maker's own driver. The GPU is offered again with the next "
        "inventory that agrees. If an honest card is named, report it with that output."
    ),
    "claim.power_range": (
        "The model is not built for its highest power limit. Compare both figures in the condition with "
        "`nvidia-smi -q` on the host, and install the maker's own driver. The GPU is offered again with the "
        "next inventory that agrees. If an honest card is named, report it with that output."
    ),
    "claim.link": (
        "Its PCIe link does not exist. Compare both figures in the condition with `nvidia-smi -q` on the host, "
        "and install the maker's own driver. The GPU is offered again with the next inventory that agrees. If "
        "an honest card is named, report it with that output."
    ),
    "claim.clocks": (
        "It has a clock that no card reaches, or that all exceed. Compare both figures in the condition with "
        "`nvidia-smi -q` on the host, and install the maker's own driver. The GPU is offered again with the "
        "next inventory that agrees. If an honest card is named, report it with that output."
    ),
    "claim.bus": (
        "Its memory bus has a width that does not exist. Compare both figures in the condition with `nvidia-smi"
        " -q` on the host, and install the maker's own driver. The GPU is offered again with the next inventory"
        " that agrees. If an honest card is named, report it with that output."
    ),
    "claim.bandwidth": (
        "Its memory clock and width do not give the model's bandwidth. Compare both figures in the condition "
        "with `nvidia-smi -q` on the host, and install the maker's own driver. The GPU is offered again with "
        "the next inventory that agrees. If an honest card is named, report it with that output."
    ),
    "claim.cores": (
        "Its cores are no whole number of multiprocessors. Compare both figures in the condition with `nvidia-"
        "smi -q` on the host, and install the maker's own driver. The GPU is offered again with the next "
        "inventory that agrees. If an honest card is named, report it with that output."
    ),
    "claim.mig": (
        "MIG is on, and the model has none. Compare both figures in the condition with `nvidia-smi -q` on the "
        "host, and install the maker's own driver. The GPU is offered again with the next inventory that "
        "agrees. If an honest card is named, report it with that output."
    ),
    "claim.ecc": (
        "ECC is on, and the model has none. Compare both figures in the condition with `nvidia-smi -q` on the "
        "host, and install the maker's own driver. The GPU is offered again with the next inventory that "
        "agrees. If an honest card is named, report it with that output."
    ),
    "claim.uuid": (
        "Its UUID is not of NVML's form. Compare both figures in the condition with `nvidia-smi -q` on the "
        "host, and install the maker's own driver. The GPU is offered again with the next inventory that "
        "agrees. If an honest card is named, report it with that output."
    ),
    "claim.uuid_twice": (
        "Two cards of the host have one UUID. Compare both figures in the condition with `nvidia-smi -q` on the"
        " host, and install the maker's own driver. The GPU is offered again with the next inventory that "
        "agrees. If an honest card is named, report it with that output."
    ),
    "claim.serial_twice": (
        "Two cards of the host have one serial number. Compare both figures in the condition with `nvidia-smi "
        "-q` on the host, and install the maker's own driver. The GPU is offered again with the next inventory "
        "that agrees. If an honest card is named, report it with that output."
    ),
    "claim.pci_address": (
        "Its PCI address is none. Compare both figures in the condition with `nvidia-smi -q` on the host, and "
        "install the maker's own driver. The GPU is offered again with the next inventory that agrees. If an "
        "honest card is named, report it with that output."
    ),
    "claim.pci_address_twice": (
        "Two cards of the host have one PCI address. Compare both figures in the condition with `nvidia-smi -q`"
        " on the host, and install the maker's own driver. The GPU is offered again with the next inventory "
        "that agrees. If an honest card is named, report it with that output."
    ),
    "claim.index_twice": (
        "Two cards of a maker have one index. Compare both figures in the condition with `nvidia-smi -q` on the"
        " host, and install the maker's own driver. The GPU is offered again with the next inventory that "
        "agrees. If an honest card is named, report it with that output."
    ),
    "claim.minor_twice": (
        "Two cards of a maker have one device file. Compare both figures in the condition with `nvidia-smi -q` "
        "on the host, and install the maker's own driver. The GPU is offered again with the next inventory that"
        " agrees. If an honest card is named, report it with that output."
    ),
    "claim.driver": (
        "There are NVIDIA cards, and no driver, or one of no known form. Compare both figures in the condition "
        "with `nvidia-smi -q` on the host, and install the maker's own driver. The GPU is offered again with "
        "the next inventory that agrees. If an honest card is named, report it with that output."
    ),
    "claim.memory_unlike": (
        "Boards that must be alike differ in memory. Compare both figures in the condition with `nvidia-smi -q`"
        " on the host, and install the maker's own driver. The GPU is offered again with the next inventory "
        "that agrees. If an honest card is named, report it with that output."
    ),
    "claim.power_unlike": (
        "Boards that must be alike differ in their highest power limit. Compare both figures in the condition "
        "with `nvidia-smi -q` on the host, and install the maker's own driver. The GPU is offered again with "
        "the next inventory that agrees. If an honest card is named, report it with that output."
    ),
    "master.disk_full": (
        "A disk of the Master is full: nothing new starts, and samples stay with the agents. `df -h` and `du "
        "-xsh` show what takes the space: move backups and logs away, or enlarge the disk."
    ),
    "master.log_failed": (
        "Samples are not stored since a write of the telemetry log failed. The agents keep theirs and send them"
        " again. Look at the disk of the Master's data directory (`dmesg`, `df -h`). Each write tries a new "
        "segment."
    ),
    "master.clock_jumped": (
        "The clock of the Master's machine has jumped. The Master's own goes on as before, so that nothing "
        "expires or is charged by the jump. Correct the machine's clock (`timedatectl`). If it is the right "
        "one, restart the Master."
    ),
    "master.later_seen": (
        "Hosts say that they obey a later Master of this market. They are refused here. If another Master was "
        "started on a copy of this one's data, stop this Master. If there is no other, quarantine the hosts "
        "that the message names: they lie, or they have the state of another market."
    ),
    "master.certificate": (
        "The TLS certificate that an operator gave for browsers is about to expire, or a renewed one is not "
        "taken. Put a valid certificate and its key into the files that WINDROW_TLS_CERT_FILE and "
        "WINDROW_TLS_KEY_FILE name. They are read again every ten seconds."
    ),
    "master.log_lag": (
        "The newest samples in the history are minutes old: charts and reports of now wait for them. Look at "
        "the load and the disk of the Master's machine, and at the metrics store, if there is one."
    ),
    "master.backup_old": (
        "The last backup of the market was made more than two days ago, or none is known. Make one: `windrow-"
        "master backup FILE`, or repair the timer that does."
    ),
    "master.standby_gone": (
        "Another Master waited to take over, and none does any more: if this one ends, nobody leads. Start the "
        "other Master again on the same database. If there is to be none any more, restart this one."
    ),
    "master.bug_met": (
        "The Master has met a bug of its own within a day. The bug ended only what met it. Look in the Master's"
        " log for the last event that ends with `_crashed`, and report its traceback."
    ),
    "master.item_given_up": (
        "The Master met a bug several times in a row with the same job, machine or host, and has given it up or"
        " passes over it. Look in the Master's log for the last event that ends with `_crashed`, and report its"
        " traceback."
    ),
    "master.row_unreadable": (
        "Rows of the database cannot be read and are passed over. Everything else goes on. Run `windrow-master "
        "check`: it looks through the database. A backup may have the rows."
    ),
    "master.provider_away": (
        "An identity provider does not answer as it should. Nobody new signs in by it; who is signed in stays "
        "so. Run `windrow identity-provider test NAME`: it says what is wrong. People can sign in another way "
        "meanwhile."
    ),
    "master.mail_failed": (
        "Mail was not delivered: invitations, links to new passwords. It is tried again for two days. Look at "
        "WINDROW_SMTP_URL and at the mail server. Until it works, start the Master without it: links are then "
        "shown, to be given by hand."
    ),
    "master.channel_failed": (
        "A channel of the operators did not take a message, and the message was given up. Run `windrow delivery"
        " ls --state given_up`, repair the receiver or the channel, `windrow channel test NAME`, then `windrow "
        "delivery again ID`."
    ),
    "audit.broken": (
        "The audit log is not intact. Find out who wrote it. Then take the log as it is with `windrow audit "
        "reanchor --reason WHY`, or bring a backup back with `windrow-master restore`."
    ),
    "bus_alone": (
        "The bus reaches one process of the Master only: live pages of the others are up to a second late, and "
        "each counts limits alone. Look after the Redis server that WINDROW_REDIS_URL names."
    ),
    "access.bug_met": (
        "Relays have met a bug of their own. The bug ended only what met it. Look in that relay's log for the "
        "last event that ends with `_crashed`, and report its traceback."
    ),
}
