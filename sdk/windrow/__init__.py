"""The renter's side of Windrow: functions on clusters, a Python client and the `windrow` command, over HTTP only.

Names are imported when they are used: on a host, where calls run and none of our libraries is, scripts import this.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from windrow.client import Client
    from windrow.config import Config
    from windrow.errors import ApiProblem, MasterUnreachable, NoMaster, WaitTimedOut, WindrowClientError
    from windrow.jobs import Job, JobStatus, Platform
    from windrow.programs import MLPlatform, Requirements
    from windrow.remote.cluster import Cluster, Env, cluster, env
    from windrow.remote.function import Function, Run, attach, function

__all__ = [
    "ApiProblem",
    "Client",
    "Cluster",
    "Config",
    "Env",
    "Function",
    "Job",
    "JobStatus",
    "MLPlatform",
    "MasterUnreachable",
    "NoMaster",
    "Platform",
    "Requirements",
    "Run",
    "WaitTimedOut",
    "WindrowClientError",
    "attach",
    "cluster",
    "env",
    "function",
]  # fmt: skip
__version__ = "0.1.0"

_PLACES = {
    "windrow.client": ("Client",),
    "windrow.config": ("Config",),
    "windrow.errors": ("ApiProblem", "MasterUnreachable", "NoMaster", "WaitTimedOut", "WindrowClientError"),
    "windrow.jobs": ("Job", "JobStatus", "Platform"),
    "windrow.programs": ("MLPlatform", "Requirements"),
    "windrow.remote.cluster": ("Cluster", "Env", "cluster", "env"),
    "windrow.remote.function": ("Function", "Run", "attach", "function"),
}


def __getattr__(name: str) -> Any:
    for module, names in _PLACES.items():
        if name in names:
            found = getattr(import_module(module), name)
            globals()[name] = found
            return found
    raise AttributeError(f"module 'windrow' has no attribute {name!r}")
