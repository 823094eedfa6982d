"""Looks at this user's shell and files, and writes the link to `windrow` and the configuration that were decided on."""

import contextlib
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from windrow_up import user_setup
from windrow_up.user_setup import Done, Place, Surroundings

ASKED: Final = "link.asked"
"""An empty file in the data directory: the user has answered, and is not asked again."""


def user_config() -> Path:
    """The file in which the command line looks for a market when no folder names one (`windrow.config.user_file`)."""
    base = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(base) / "windrow" / "config.json"


def surroundings(data_dir: Path, *, is_default: bool, is_once: bool) -> Surroundings:
    """Read what the decisions need; writes nothing."""
    command = Path(sys.executable).absolute().parent / "windrow"
    link = Path.home() / ".local" / "bin" / "windrow"
    found, config = shutil.which("windrow"), user_config()
    is_same = found is not None and os.path.realpath(found) == os.path.realpath(command)
    on_path = os.environ.get("PATH", "").split(os.pathsep)
    return Surroundings(
        command=str(command),
        found=str(command) if is_same else found or "",
        link=str(link),
        link_place=_place(link, command),
        is_link_folder_on_path=str(link.parent) in on_path,
        config=str(config),
        config_place=_place(config, data_dir / "cli.json"),
        data_dir=str(data_dir),
        is_default_data_dir=is_default,
        is_terminal=sys.stdin.isatty() and sys.stdout.isatty(),
        was_asked=(data_dir / ASKED).exists(),
        is_once=is_once,
    )


def set_up(at: Surroundings, ask: Callable[[str], bool], say: Callable[[str], None]) -> str:
    """Offer the link, write the configuration; returns how `windrow` is written so that it works in every folder.

    What cannot be written stops nothing: the market runs without it."""
    is_new_link = False
    if user_setup.offers_link(at):
        is_wanted = ask(user_setup.QUESTION.format(folder=Path(at.link).parent))
        with contextlib.suppress(OSError):
            (Path(at.data_dir) / ASKED).touch(mode=0o600)
        is_new_link = is_wanted and _link(Path(at.link), Path(at.command), say)
    # A link and no copy: the Master renews the address and the token in its file at every start.
    is_new_config = user_setup.writes_config(at) and _link(Path(at.config), Path(at.data_dir) / "cli.json", say)
    done = Done(is_new_link or at.link_place is Place.OURS, is_new_config or at.config_place is Place.OURS)
    for line in user_setup.lines(at, done, is_new_link, is_new_config):
        say(line)
    return user_setup.command_prefix(at, done)


def _place(path: Path, target: Path) -> Place:
    if not os.path.lexists(path):
        return Place.FREE
    if path.is_symlink() and os.path.abspath(path.parent / path.readlink()) == str(target):
        return Place.OURS
    return Place.DANGLING if path.is_symlink() and not path.exists() else Place.FOREIGN


def _link(path: Path, target: Path, say: Callable[[str], None]) -> bool:
    """Make the link; a file that has come meanwhile stays, and a link that leads nowhere is replaced."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if path.is_symlink() and not path.exists():
            path.unlink()
        path.symlink_to(target)
    except OSError as error:
        say(f"Note     {path} could not be written: {error.strerror or error}")
        return False
    return True
