"""Every list of the command at four widths, with long names and whole ids; `python -m tests.support.list_pages` writes
them to tests/unit/sdk/lists.txt."""

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any, Final

import windrow.cli
from tests.support.filled import filled
from tests.support.pages import ROOT
from windrow.cli.front_text import work_of
from windrow.cli.tables import Table, table_lines
from windrow.explained import PARAGRAPHS, first_sentence

PAGE: Final = ROOT / "tests" / "unit" / "sdk" / "lists.txt"
WIDTHS: Final = (80, 100, 120, 160)
SCHEMAS: Final = {
    "accesses.ACCESSES": "AccessOut", "alerts.SHOWN": "AlertOut", "alerts.SHOWN_SILENCES": "SilenceOut",
    "alerts.SHOWN_RULES": "OwnRuleOut", "maintenance.SHOWN": "MaintenanceOut",
    "account.TOKENS": "TokenOut", "account.RECEIPTS": "ReceiptOut",
    "account.TRANSFERS": "TransferOut", "account.BALANCES": "BalanceOut", "artefacts.ARTEFACTS": "ArtefactOut",
    "artefacts.CHECKPOINTS": "CheckpointOut", "audit.ENTRIES": "AuditOut", "backends.BACKENDS": "BackendOut",
    "backends.KINDS": "BackendKindOut", "backends.OFFERS": "MachineOfferOut", "billing.SPENT": "ShareOut",
    "billing.EARNED": "EarnedOut", "billing.DAYS": "DayEarnedOut", "channels.SHOWN": "ChannelOut",
    "channels.SENT": "DeliveryOut", "clusters.CLUSTERS": "ClusterOut",
    "host_bandwidth.ROUNDS": "BandwidthRoundOut", "hosts.HOSTS": "HostOut", "hosts.GPUS": "GpuRowOut",
    "hosts.OFFERS": "OfferOut", "hosts.COMMANDS": "CommandOut", "hosts.EVENTS": "EventOut", "jobs.JOBS": "JobOut",
    "fair_shares.SHARES": "FairShareOut", "fair_shares.QUOTAS": "QuotaOut",
    "limits.SHOWN": "LimitOut", "members.MEMBERS_TABLE": "MemberOut", "members.INVITATIONS_TABLE": "InvitationOut",
    "members.PROJECTS_TABLE": "ProjectOut", "members.TRANSFERS_TABLE": "TransferOfferOut",
    "people.ACCOUNTS": "PersonOut", "prices.PRICES": "PriceOut", "providers.PROVIDERS": "ProviderOut",
    "purchases.PURCHASES": "PurchaseOut",
    "queueing.QUEUE": "QueuedOut",
    "reports.ROWS": "SourceRowOut", "reports.SCHEDULES": "ScheduleOut",
    "resources.RESOURCES": "ResourceOut", "secrets.SECRETS": "SecretOut", "service_accounts.SERVICES": "ServiceOut",
    "shares.SHARES": "ObjectShareOut", "shop.GPUS_FOR_RENT": "MachineClassOut", "templates.TEMPLATES": "TemplateOut",
    "users.USERS_TABLE": "MarketUserOut", "volumes.VOLUMES": "VolumeOut",
}  # fmt: skip
"""The schema of the items of each list; those that the command makes itself stand in `rows`."""


def tables() -> dict[str, Table]:
    """Every list of the command, as MODULE.NAME."""
    found: dict[int, tuple[str, Table]] = {}
    for module in pkgutil.iter_modules(windrow.cli.__path__):
        for name, value in vars(importlib.import_module(f"windrow.cli.{module.name}")).items():
            if isinstance(value, Table):
                found.setdefault(id(value), (f"{module.name}.{name}", value))
    return dict(found.values())


def rows(name: str) -> list[dict[str, Any]]:
    """Two items of a list: with all that there can be, and with as little."""
    if name == "explain.CODES":
        return [{"code": code, "text": first_sentence(code)} for code in PARAGRAPHS]
    if name == "status.WORK":
        both = (True, False)
        clusters = [filled("ClusterOut", is_full=is_full) for is_full in both]
        return work_of(clusters, [filled("JobOut", is_full=is_full) for is_full in both])
    return [filled(SCHEMAS[name], is_full=True), filled(SCHEMAS[name], is_full=False)]


def lines(name: str, table: Table, width: int) -> list[str]:
    """A list on a screen."""
    return table_lines(table.columns, rows(name), width)


def pages() -> Iterator[str]:
    """All of them, a block for each width."""
    for name, table in sorted(tables().items()):
        for width in WIDTHS:
            yield "\n".join((f"--- {name}, {width} columns", *lines(name, table, width), ""))


if __name__ == "__main__":
    PAGE.write_text("\n".join(pages()), encoding="utf-8")
