"""A package of Python that is a file beside the work, so that no index is asked."""

import zipfile
from pathlib import Path


def wheel(folder: Path, name: str = "tiny_thing") -> str:
    """A package of one function, as a file in this folder."""
    path = folder / f"{name}-1.0-py3-none-any.whl"
    info = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr(f"{name}.py", "def answer():\n    return 42\n")
        file.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        file.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{info}/RECORD", "")
    return f"./{path.name}"
