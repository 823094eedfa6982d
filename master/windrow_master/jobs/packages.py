"""Installs the Python packages of a job: runs its command in an environment that is made before it, on its host. Pure.

The environment is `.venv` in the working folder, which never counts among the files that a job changed, or in
`/workspace` where an image's WORKDIR cannot be written; the host's or the image's own packages are seen in it. uv makes
it where it is there, else venv and pip, with their caches and temporary files inside it.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from windrow_proto.errors import InvalidInput
from windrow_proto.model import ENVIRONMENT

WORD_MAX: Final = 8_000
"""Characters of one word of the command."""
SCRIPT: Final = f"""
set -e
python=$(command -v python3 || command -v python) ||
  {{ echo 'This host has no Python to install the packages with.' >&2; exit 127; }}
env=$PWD/{ENVIRONMENT}; [ -w "$PWD" ] || env=/workspace/{ENVIRONMENT}
lists=$1; shift
rm -rf "$env"; mkdir "$env"; mkdir "$env/tmp"
while [ "$lists" -gt 0 ]; do printf '%s\\n' "$1" >> "$env/packages"; shift; lists=$((lists - 1)); done
export TMPDIR="$env/tmp"
if command -v uv > /dev/null
then uv venv --quiet --allow-existing --system-site-packages --python "$python" "$env"
  uv pip install --no-cache --python "$env/bin/python" --requirement "$env/packages"
else "$python" -m venv --system-site-packages "$env"
  "$env/bin/python" -m pip install --no-cache-dir --no-input --disable-pip-version-check --progress-bar off \\
    --requirement "$env/packages"
fi
unset TMPDIR
export VIRTUAL_ENV="$env" PATH="$env/bin:$PATH"
exec "$@"
"""


def check(packages: Sequence[str]) -> None:
    """Raises InvalidInput for what is not a list of requirements (PEP 508)."""
    for one in packages:
        if not one or one.startswith("-") or not one.isprintable() or one != one.strip():
            words = f"packages must be requirements such as numpy or numpy==2.4; {one[:80]!r} is not one."
            raise InvalidInput(words, subject="packages")


def command(packages: Sequence[str], argv: tuple[str, ...]) -> tuple[str, ...]:
    """The same command, in an environment with these packages."""
    if not packages:
        return argv
    lists = tuple(_lists(packages))
    return ("sh", "-c", SCRIPT, "packages", str(len(lists)), *lists, *argv)


def _lists(packages: Sequence[str]) -> Iterator[str]:
    """The lines of a file of them, as few words as they fit into."""
    word = ""
    for one in packages:
        if word and len(word) + len(one) >= WORD_MAX:
            yield word
            word = ""
        word = f"{word}\n{one}" if word else one
    yield word
