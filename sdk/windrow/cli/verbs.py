"""The verbs of `windrow`, by what they are for; the module of each is loaded when it is first asked for."""

from collections.abc import Iterator, Mapping, MutableMapping
from importlib import import_module
from typing import Any, Final, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_group

from windrow.cli.examples import add_examples

RENT, PROVIDE, OPERATE, ACCOUNT = "Rent", "Provide", "Operate", "Account"


class Verb(NamedTuple):
    """panel: where the help lists it. place: MODULE:NAME of its function, or of its typer.Typer. more: modules that add
    verbs to that Typer. is_passing: words behind its arguments are those of another program. kind: of the command, a
    class of that module."""

    panel: str
    place: str
    more: tuple[str, ...] = ()
    is_passing: bool = False
    kind: str = ""


VERBS: Final[Mapping[str, Verb]] = {
    "status": Verb(RENT, "status:status"),
    "ps": Verb(RENT, "status:ps"),
    "gpus": Verb(RENT, "shop:gpus"),
    "run": Verb(RENT, "run:run", is_passing=True, kind="RunCommand"),
    "open": Verb(RENT, "opening:open_work"),
    "ssh": Verb(RENT, "forward:cluster_ssh", is_passing=True),
    "logs": Verb(RENT, "opening:logs"),
    "top": Verb(RENT, "top:top"),
    "cluster": Verb(RENT, "clusters:cluster_app", ("stopping", "forward")),
    "machine": Verb(RENT, "clusters:cluster_app", ("stopping", "forward")),
    "job": Verb(RENT, "jobs:job_app"),
    "queue": Verb(RENT, "queueing:queue_app"),
    "offer": Verb(RENT, "hosts:offer_app"),
    "price": Verb(RENT, "prices:price"),
    "route": Verb(RENT, "routes:route"),
    "template": Verb(RENT, "templates:template_app"),
    "volume": Verb(RENT, "volumes:volume_app"),
    "secret": Verb(RENT, "secrets:secret_app"),
    "artefact": Verb(RENT, "artefacts:artefact_app"),
    "checkpoint": Verb(RENT, "artefacts:checkpoint_app"),
    "usage": Verb(RENT, "billing:usage"),
    "receipt": Verb(RENT, "account:receipt_app"),
    "host": Verb(PROVIDE, "hosts:host_app", ("host_facts", "host_bandwidth")),
    "earnings": Verb(PROVIDE, "billing:earnings"),
    "gpu": Verb(PROVIDE, "hosts:gpu_app"),
    "command": Verb(PROVIDE, "hosts:command_app"),
    "event": Verb(PROVIDE, "hosts:event_app"),
    "alert": Verb(OPERATE, "alerts:alert_app"),
    "maintenance": Verb(PROVIDE, "maintenance:maintenance_app"),
    "access": Verb(OPERATE, "accesses:access_app"),
    "account": Verb(OPERATE, "people:people_app"),
    "credit": Verb(OPERATE, "people:credit_app"),
    "user": Verb(OPERATE, "users:user_app"),
    "identity-provider": Verb(OPERATE, "providers:provider_app"),
    "resource": Verb(OPERATE, "resources:resource_app"),
    "backend": Verb(OPERATE, "backends:backend_app"),
    "purchase": Verb(OPERATE, "purchases:purchase_app"),
    "audit": Verb(OPERATE, "audit:audit_app"),
    "doctor": Verb(OPERATE, "doctor:doctor"),
    "login": Verb(ACCOUNT, "account:login"),
    "logout": Verb(ACCOUNT, "account:logout"),
    "whoami": Verb(ACCOUNT, "account:whoami"),
    "invite": Verb(ACCOUNT, "members:invite"),
    "member": Verb(ACCOUNT, "members:member_app"),
    "invitation": Verb(ACCOUNT, "members:invitation_app"),
    "project": Verb(ACCOUNT, "members:project_app"),
    "service-account": Verb(ACCOUNT, "service_accounts:service_app"),
    "share": Verb(ACCOUNT, "shares:share_app"),
    "limit": Verb(ACCOUNT, "limits:limit_app"),
    "fair-share": Verb(ACCOUNT, "fair_shares:fair_share_app"),
    "quota": Verb(ACCOUNT, "fair_shares:quota_app"),
    "channel": Verb(ACCOUNT, "channels:channel_app"),
    "delivery": Verb(ACCOUNT, "channels:delivery_app"),
    "token": Verb(ACCOUNT, "account:token_app"),
    "report": Verb(ACCOUNT, "reports:report_app"),
    "ledger": Verb(ACCOUNT, "account:ledger_app"),
    "auth": Verb(ACCOUNT, "rights:auth_app"),
    "can-i": Verb(ACCOUNT, "rights:can_i"),
    "explain": Verb(ACCOUNT, "explain:explain"),
}
ALIASES: Final = {"machine": "Another name of `cluster`: one rented host is a machine."}


class VerbGroup(TyperGroup):
    """`windrow` itself."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.commands = _Commands(self.commands)


class _Commands(MutableMapping[str, Any]):
    """Commands by name: those that are made, and those of VERBS once they are asked for."""

    def __init__(self, made: Mapping[str, Any]) -> None:
        self._made = dict(made)
        for name, command in made.items():
            add_examples(command, name)

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            self._made[name] = _loaded(name, VERBS[name])
        return self._made[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._made[name] = command

    def __delitem__(self, name: str) -> None:
        del self._made[name]

    def __contains__(self, name: object) -> bool:
        return name in VERBS or name in self._made

    def __iter__(self) -> Iterator[str]:
        yield from VERBS
        yield from (name for name in self._made if name not in VERBS)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _loaded(name: str, verb: Verb) -> Any:
    """The command of a verb, with its examples."""
    module, _, of = verb.place.partition(":")
    for more in verb.more:
        import_module(f"windrow.cli.{more}")
    at = import_module(f"windrow.cli.{module}")
    found = getattr(at, of)
    command: Any
    if isinstance(found, typer.Typer):
        command = get_group(found)
        command.name = name
        command.help = ALIASES.get(name, command.help)
    else:
        alone = typer.Typer(add_completion=False)
        settings = {"allow_interspersed_args": False} if verb.is_passing else {}
        alone.command(name, cls=getattr(at, verb.kind, TyperCommand), context_settings=settings)(found)
        command = get_command(alone)
    command.rich_help_panel = verb.panel
    add_examples(command, name)
    return command
