"""Rules of imports, purity and adapters of libraries; each rule is shown to catch a breach."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.architecture import rules
from tests.architecture.tree import ROOT

Rule = Callable[[Path], list[str]]

RULES: list[Rule] = [
    rules.adapters,
    rules.environment_readers,
    rules.impurities,
    rules.lost_promises,
    rules.upward_imports,
    rules.foreign_repositories,
    rules.late_assignments,
    rules.relative_imports,
    rules.grouped_raises,
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_tree_keeps(rule: Rule) -> None:
    assert rule(ROOT) == []


def pure(code: str) -> str:
    """A module that promises to be."""
    return f'"""Planted. Pure."""\n{code}'


BREACHES = [
    (rules.adapters, "agent/windrow_agent/app/service.py", "import pynvml"),
    (rules.adapters, "agent/windrow_agent/core/sampling.py", "def read():\n    from psutil import cpu_percent"),
    (rules.adapters, "master/windrow_master/fleet/service.py", "import sqlalchemy.orm"),
    (rules.adapters, "master/windrow_master/telemetry/service.py", "import duckdb"),
    (rules.adapters, "sdk/windrow/cli/main.py", "import httpx2"),
    (rules.environment_readers, "agent/windrow_agent/app/service.py", "import os\nHOME = os.environ['HOME']"),
    (rules.environment_readers, "sdk/windrow/cli/main.py", "from os import environ"),
    (rules.environment_readers, "access/windrow_access/main.py", "import os\nos.getenv('PORT')"),
    (rules.impurities, "proto/windrow_proto/session.py", pure("import time")),
    (rules.impurities, "agent/windrow_agent/core/lease.py", pure("from asyncio import sleep")),
    (rules.impurities, "master/windrow_master/market/prices.py", pure("import structlog")),
    (
        rules.impurities,
        "master/windrow_master/fleet/tiers.py",
        pure("from datetime import datetime\nNOW = datetime.now()"),
    ),
    (rules.impurities, "master/windrow_master/clusters/states.py", pure("import uuid\nID = uuid.uuid4()")),
    (rules.impurities, "master/windrow_master/placement/plan.py", pure("TEXT = open('hosts').read()")),
    (rules.lost_promises, "master/windrow_master/market/ledger.py", "FEE = 1"),
    (rules.lost_promises, "agent/windrow_agent/core/lease.py", "TURN = 1"),
    (
        rules.upward_imports,
        "master/windrow_master/market/service.py",
        "from windrow_master.clusters.model import Cluster",
    ),
    (rules.upward_imports, "master/windrow_master/fleet/service.py", "import windrow_master.api.app"),
    (rules.upward_imports, "master/windrow_master/fleet/service.py", "from windrow_master.market import prices"),
    (rules.upward_imports, "master/windrow_master/identity/service.py", "from windrow_master.fleet import model"),
    (rules.upward_imports, "master/windrow_master/thoughts/service.py", "NEW = True"),
    (rules.upward_imports, "agent/windrow_agent/link/outbox.py", "from windrow_agent.workloads import manager"),
    (
        rules.foreign_repositories,
        "master/windrow_master/verification/scheduler.py",
        "from windrow_master.fleet.verification_repository import VerificationRepository\nuow[VerificationRepository]",
    ),
    (rules.late_assignments, "master/windrow_master/app/main.py", "fleet.ports.on_ban = print"),
    (rules.relative_imports, "agent/windrow_agent/app/service.py", "from . import host"),
    (
        rules.grouped_raises,
        "sdk/windrow/line.py",
        "try:\n    pass\nexcept* OSError as many:\n    raise ValueError from many",
    ),
]


@pytest.mark.parametrize(("rule", "where", "code"), BREACHES, ids=lambda value: getattr(value, "__name__", None))
def test_a_planted_breach_is_caught(rule: Rule, where: str, code: str, tmp_path: Path) -> None:
    plant(tmp_path, where, code)
    (breach,) = rule(tmp_path)
    assert breach.startswith(where)


PERMITTED = [
    (rules.adapters, "agent/windrow_agent/gpu/nvml.py", "import pynvml"),
    (rules.adapters, "master/windrow_master/fleet/tables.py", "from sqlalchemy import Table"),
    (rules.environment_readers, "agent/windrow_agent/app/config.py", "import os\nHOME = os.environ['HOME']"),
    (rules.impurities, "agent/windrow_agent/app/service.py", "import asyncio"),
    (rules.impurities, "master/windrow_master/fleet/service.py", "import asyncio"),
    (rules.impurities, "master/windrow_master/fleet/tiers.py", pure("from datetime import timedelta")),
    (rules.upward_imports, "master/windrow_master/market/service.py", "from windrow_master.fleet.tiers import tier"),
    (rules.upward_imports, "master/windrow_master/fleet/service.py", "from windrow_master.store.unit import Store"),
    (rules.upward_imports, "master/windrow_master/api/app.py", "from windrow_master import __version__"),
    (rules.upward_imports, "agent/windrow_agent/link/tunnels.py", "from windrow_agent.runtimes.port import Runtime"),
    (
        rules.foreign_repositories,
        "master/windrow_master/fleet/challenges.py",
        "from windrow_master.fleet.verification_repository import VerificationRepository\nuow[VerificationRepository]",
    ),
    (rules.late_assignments, "master/windrow_master/app/clock.py", "def set(self):\n    self.now = 1"),
    (
        rules.grouped_raises,
        "sdk/windrow/line.py",
        "try:\n    pass\nexcept OSError as one:\n    raise ValueError from one",
    ),
]


@pytest.mark.parametrize(("rule", "where", "code"), PERMITTED, ids=lambda value: getattr(value, "__name__", None))
def test_what_is_permitted_is_left_alone(rule: Rule, where: str, code: str, tmp_path: Path) -> None:
    plant(tmp_path, where, code)
    assert rule(tmp_path) == []


@pytest.mark.parametrize("package", rules.FLOORS_OF)
def test_the_list_of_imports_to_turn_around_names_only_such_as_are_there(package: str) -> None:
    assert {(here, there) for here, there, _ in rules.upward(ROOT, package)} == rules.FLOORS_OF[package][1]


def plant(root: Path, where: str, code: str) -> None:
    """Write one module into an empty tree."""
    (root / where).parent.mkdir(parents=True)
    text = code if code.startswith('"""') else f'"""Planted."""\n{code}'
    (root / where).write_text(f"{text}\n", encoding="utf-8")
