"""The renter's side of Windrow: a Python client and the `windrow` command, over HTTP only."""

from windrow.client import Client
from windrow.config import Config
from windrow.errors import ApiProblem, MasterUnreachable, NoMaster, WaitTimedOut, WindrowClientError

__all__ = ["ApiProblem", "Client", "Config", "MasterUnreachable", "NoMaster", "WaitTimedOut", "WindrowClientError"]
__version__ = "0.1.0"
