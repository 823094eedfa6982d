"""Decides how this user's shell reaches the market from any folder: by a link and a configuration. Pure."""

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

QUESTION: Final = "Link `windrow` into {folder}, so that the command works in every folder?"


class Place(Enum):
    """What stands at a path that we would write."""

    FREE = auto()
    OURS = auto()
    """A link to this command, or to the cli.json of this market."""
    DANGLING = auto()
    """A link to a file that is gone."""
    FOREIGN = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The user's shell and files before this start. command, link, config, data_dir: absolute paths. found: the path
    that the shell runs for `windrow`, without links; empty where there is none."""

    command: str
    found: str
    link: str
    link_place: Place
    is_link_folder_on_path: bool
    config: str
    config_place: Place
    data_dir: str
    is_default_data_dir: bool
    is_terminal: bool
    was_asked: bool
    is_once: bool


@dataclass(frozen=True, slots=True)
class Done:
    """What stands after the setup."""

    is_linked: bool
    is_configured: bool


def offers_link(at: Surroundings) -> bool:
    """True if the user is asked for the link: a person is there, nothing is in its way, and nobody has answered yet."""
    is_wanted = at.found != at.command and at.link_place is Place.FREE
    return is_wanted and at.is_terminal and not at.was_asked and not at.is_once


def writes_config(at: Surroundings) -> bool:
    """True if the user's configuration is to name this market: it names none, and this one is here to stay."""
    is_theirs = (at.is_default_data_dir or at.is_terminal) and not at.is_once
    return is_theirs and at.config_place in (Place.FREE, Place.DANGLING)


def command_prefix(at: Surroundings, done: Done) -> str:
    """How `windrow` is written on a command line that works in every folder."""
    if at.found == at.command or (done.is_linked and at.is_link_folder_on_path):
        name = "windrow"
    else:
        name = quoted(at.link if done.is_linked else at.command)
    folder, _, last = at.data_dir.rpartition("/")
    is_found_below = last == ".windrow" and not done.is_configured
    return f"cd {quoted(folder or '/')} && {name}" if is_found_below else name


def lines(at: Surroundings, done: Done, is_new_link: bool, is_new_config: bool) -> list[str]:
    """What the user reads of it: what was written, and what does not work from everywhere."""
    said = []
    if is_new_link:
        said.append(f"Linked   {at.link} to {at.command}")
        if not at.is_link_folder_on_path:
            folder = at.link.rpartition("/")[0]
            said.append(f'         Your PATH does not have that folder. Add it: export PATH="{folder}:$PATH"')
    if is_new_config:
        said.append(f"Wrote    {at.config}: `windrow` uses this market in every folder")
    if not done.is_configured and not at.data_dir.endswith("/.windrow") and not at.is_once:
        said.append(f"Note     `windrow` does not use this market by itself: it has no entry in {at.config}")
        if at.config_place in (Place.FREE, Place.DANGLING):
            folder, entry = at.config.rpartition("/")[0], f"{at.data_dir}/cli.json"
            said.append(f"         Make one: mkdir -p {quoted(folder)} && ln -sf {quoted(entry)} {quoted(at.config)}")
    return said


def quoted(path: str) -> str:
    """The path as one word of a shell."""
    is_plain = all(letter.isalnum() or letter in "/._-+@%:," for letter in path)
    return path if is_plain else "'" + path.replace("'", "'\"'\"'") + "'"
