"""The kinds of backends: what an operator says of each, how its machines end, and how far it has been tried."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from windrow_master.hybrid.backends import ec2, ssh
from windrow_master.hybrid.backends.port import Backend
from windrow_master.hybrid.runs import modal
from windrow_master.prices.book import PriceBook
from windrow_proto.errors import InvalidInput, NotFound
from windrow_proto.ports import Clock

VALUE_MAX: Final = 16_384
"""Characters of one setting or secret: a private key of 16,384 bits has 12,000."""

Strings = Mapping[str, str]


class Level(StrEnum):
    """How far an adapter has been tried, the furthest first."""

    LIVE = "live"
    EMULATOR = "emulator"
    PROTOCOL = "protocol"
    SPEC = "spec"
    FIXTURES = "fixtures"
    NONE = "none"

    @property
    def text(self) -> str:
        """The same in a sentence."""
        return LEVELS[self]


LEVELS: Final = {
    Level.LIVE: "The adapter was run against the real thing.",
    Level.EMULATOR: "The provider's own client was run against an independent emulator, and never with an account.",
    Level.PROTOCOL: "The provider's own client was run against a stub of ours, made from its published interface.",
    Level.SPEC: "Requests and answers were checked against the provider's published description.",
    Level.FIXTURES: "Answers that the provider or a library ships were read.",
    Level.NONE: "Nothing was run.",
}


class EndsBy(StrEnum):
    """What ends a machine when its Master is gone."""

    POWER_OFF = "power-off"
    """The machine switches itself off, which ends its bill."""
    UNINSTALL = "uninstall"
    """The machine takes the agent away and goes on."""
    SWEEP = "sweep"
    """A switched-off machine is still paid for: only a sweep ends it."""
    TIME = "time"
    """The provider ends it at its time."""


@dataclass(frozen=True, slots=True)
class Field:
    """One setting or secret. text: what to give, for the CLI and forms. default: where nothing is given."""

    name: str
    text: str
    default: str = ""
    is_required: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class KindOfBackend:
    """extra: of the Master's package, which its library comes with; empty: none. currency: of its prices; empty: a
    setting says. check: raises InvalidInput for settings and secrets that cannot be. open: makes the adapter, which
    asks nothing yet."""

    name: str
    title: str
    extra: str
    level: Level
    currency: str
    ends_by: EndsBy
    settings: tuple[Field, ...]
    secrets: tuple[Field, ...]
    check: Callable[[Strings, Strings], object]
    open: Callable[[Strings, Strings, Clock, PriceBook], Backend]

    @property
    def level_text(self) -> str:
        """What was run, in a sentence."""
        return self.level.text

    def read(self, settings: Strings, secrets: Strings) -> None:
        """Raises InvalidInput where a field is unknown, missing, or not as it should be."""
        for given, fields, what in ((settings, self.settings, "setting"), (secrets, self.secrets, "secret")):
            known = [field.name for field in fields]
            for name, value in given.items():
                if name not in known:
                    raise InvalidInput(f"{self.name} has no {what} {name[:40]!r}; it has {', '.join(known)}.")
                if len(value) > VALUE_MAX or "\0" in value:
                    raise InvalidInput(f"{name} is too long, or has a zero byte.")
            for field in fields:
                if field.is_required and not given.get(field.name, "").strip():
                    raise InvalidInput(f"{self.name} needs the {what} {field.name}: {field.text}")
        self.check(settings, secrets)


KINDS: Final[Mapping[str, KindOfBackend]] = {
    kind.name: kind
    for kind in (
        KindOfBackend(
            name="ec2",
            title="Amazon EC2",
            extra="aws",
            level=Level.EMULATOR,
            currency="USD",
            ends_by=EndsBy.POWER_OFF,
            settings=(
                Field("region", "Region, such as eu-central-1. Another region is another backend.", is_required=True),
                Field("image", "Image of machines without GPU: ami-... or a parameter's name.", ec2.UBUNTU),
                Field("image_gpu", "Image of machines with GPU.", ec2.DEEP_LEARNING),
                Field("disk_gib", "GiB of each machine's disk, which Amazon bills besides.", "100"),
                Field("subnets", "Subnets to use, with commas. Default: the region's default network."),
                Field("endpoint", "Address of an emulator in place of Amazon's."),
            ),
            secrets=(
                Field(
                    "aws_access_key_id", "Access key id. Default: what Amazon's library finds on the Master's machine."
                ),
                Field("aws_secret_access_key", "Secret access key."),
                Field("aws_session_token", "Session token, of credentials that expire."),
            ),
            check=ec2.read_settings,
            open=lambda settings, secrets, clock, book: ec2.Ec2(ec2.read_settings(settings, secrets), clock, book),
        ),
        KindOfBackend(
            name="ssh",
            title="A machine reached by SSH",
            extra="",
            level=Level.LIVE,
            currency="",
            ends_by=EndsBy.UNINSTALL,
            settings=(
                Field("address", "Name or address of the machine.", is_required=True),
                Field("port", "Port of its SSH server.", "22"),
                Field("user", "User: root, or one whom sudo asks for no password.", "root"),
                Field("host_key", "Its public key: ssh-keyscan -t ed25519 ADDRESS, compared there.", is_required=True),
                Field("price_per_hour", "Cost of an hour to you, such as 0.85.", is_required=True),
                Field("currency", "Currency of that cost, three letters.", "EUR"),
                Field("gpu", "Model class of its GPUs, such as l40s. Default: none."),
                Field("gpus", "Number of its GPUs.", "0"),
                Field("cpus", "Number of its processors.", "1"),
                Field("memory_gib", "GiB of its memory.", "1"),
                Field("region", "Short name of its place.", "here"),
                Field("country", "Its country, two letters."),
            ),
            secrets=(Field("private_key", "Private key of OpenSSH, without a passphrase.", is_required=True),),
            check=ssh.read_settings,
            open=lambda settings, secrets, clock, _book: ssh.SshBox(ssh.read_settings(settings, secrets), clock),
        ),
        KindOfBackend(
            name="modal",
            title="Modal, which runs code itself",
            extra="modal",
            level=Level.PROTOCOL,
            currency="USD",
            ends_by=EndsBy.TIME,
            settings=(
                Field("environment", "Environment of the workspace. Default: its own default."),
                Field("image", "Image of jobs that name none. Python is added to each.", modal.DEFAULT_IMAGE),
            ),
            secrets=(
                Field("token_id", "Token id, ak-... Default: what Modal's library finds on the Master's machine."),
                Field("token_secret", "Token secret, as-..."),
            ),
            check=modal.read_settings,
            open=lambda settings, secrets, clock, book: modal.Modal(
                modal.read_settings(settings, secrets), clock, book
            ),
        ),
    )
}
"""The kinds by their names. A test fails where a level is higher than what ran (tests/contract/test_backends.py)."""


def kind_of(name: str) -> KindOfBackend:
    """The kind of this name. Raises NotFound."""
    if name not in KINDS:
        raise NotFound(f"There is no kind of backend {name[:40]!r}; there are {', '.join(KINDS)}.")
    return KINDS[name]
