"""Prints how the code base is built, in figures: `python -m tests.architecture.figures`, or `make architecture`."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import grimp

from tests.architecture import rules
from tests.architecture.tree import MEMBERS, ROOT, members


def lone_files(root: Path) -> list[str]:
    """Folders of code that hold one module and nothing below: the module could stand one floor up. Migrations may not:
    more are added beside them."""
    held: Counter[str] = Counter()
    folders = set[str]()
    for module in members(root):
        where = Path(module.where)
        folders.update(str(one) for one in where.parents if len(one.parts) > 2 and one.name != "migrations")
        held[str(where.parent)] += where.name != "__init__.py"
    inner = {str(Path(folder).parent) for folder in folders}
    return sorted(folder for folder in folders if held[folder] == 1 and folder not in inner)


def circles(package: str) -> list[tuple[str, ...]]:
    """Groups of direct children of a package that import one another, as tuples of their names."""
    graph = grimp.build_graph(package)
    left = {child: set[str]() for child in graph.find_children(package)}
    for child in left:
        for module in {child, *graph.find_descendants(child)}:
            for imported in graph.find_modules_directly_imported_by(module):
                left[child] |= {other for other in left if imported == other or imported.startswith(f"{other}.")}
        left[child].discard(child)
    while ends := {one for one in left if not left[one] or not any(one in others for others in left.values())}:
        left = {one: others - ends for one, others in left.items() if one not in ends}
    return [tuple(sorted(one.rpartition(".")[2] for one in left))] if left else []


def figures(root: Path) -> Iterator[tuple[str, str]]:
    """Each as what is counted, and the figure."""
    lines: Counter[str] = Counter()
    for module in members(root):
        lines[module.where.split("/")[0]] += module.lines
    yield "product lines of Python", f"{sum(lines.values()):,} ({', '.join(f'{m} {lines[m]:,}' for m in MEMBERS)})"
    for package in rules.FLOORS_OF:
        upward = Counter(f"{here} -> {there}" for here, there, _ in rules.upward(root, package))
        pairs = ", ".join(f"{pair} {count}" for pair, count in upward.most_common())
        said = f"{sum(upward.values())} in {len(upward)} pairs" + (f": {pairs}" if upward else "")
        yield f"imports that run up the floors of {package}", said
        found = circles(package)
        yield f"circles of packages in {package}", f"{len(found)}" + "".join(f": {', '.join(one)}" for one in found)
    foreign = Counter(f"{here} -> {there}" for here, there, _ in rules.foreign(root))
    uses = ", ".join(f"{pair} {count}" for pair, count in foreign.most_common())
    yield "uses of another package's repository", f"{sum(foreign.values())}" + (f": {uses}" if uses else "")
    lone = lone_files(root)
    yield "folders with a lone file", f"{len(lone)}" + (f": {', '.join(lone)}" if lone else "")
    yield "assignments after construction in the wiring", str(len(rules.late_assignments(root)))


if __name__ == "__main__":
    for name, value in figures(ROOT):
        print(f"{name}: {value}")
