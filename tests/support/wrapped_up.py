"""`windrow up` whose daemons of some kinds are started by other words: `python -m tests.support.wrapped_up up ...`.

The environment's WRAPPED says by which, as JSON: a module's name to the words in place of `python -m MODULE`.
"""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from windrow.cli.main import main
from windrow_up import supervisor

WRAPPED: Final = "WRAPPED"
MODULES: Final = {"master": "windrow_master", "access": "windrow_access", "agent": "windrow_agent"}
COMMAND: Final = (sys.executable, "-m", "tests.support.wrapped_up")
_ROOT: Final = Path(__file__).parents[2]


def wrapped(words: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """The environment of one in which each kind of daemon is started by these words."""
    told = json.dumps({MODULES[kind]: list(by) for kind, by in words.items()})
    return {WRAPPED: told, "PYTHONPATH": os.pathsep.join(filter(None, (str(_ROOT), os.environ.get("PYTHONPATH"))))}


if __name__ == "__main__":
    by = json.loads(os.environ[WRAPPED])
    plain = supervisor.module

    def module(name: str, *arguments: str) -> tuple[str, ...]:
        """As the supervisor's own, by the words of the environment where it has any for this one."""
        return (*by[name], *arguments) if name in by else plain(name, *arguments)

    supervisor.module = module
    main()
