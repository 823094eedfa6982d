"""Reads from the text of a Python program which hardware it needs. The program is never run. Pure.

Each fact has the line it was read in and how far it can be trusted: `high` where the program says it, `low` where it is
guessed from a name.
"""

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

CODE_MAX: Final = 1 << 20
"""Bytes of a program that is read."""
FACTS_MAX: Final = 100

HIGH, LOW = "high", "low"

FRAMEWORKS: Final = {
    "torch": "pytorch",
    "pytorch_lightning": "pytorch",
    "lightning": "pytorch",
    "tensorflow": "tensorflow",
    "keras": "tensorflow",
    "jax": "jax",
    "flax": "jax",
    "sklearn": "sklearn",
    "xgboost": "xgboost",
    "lightgbm": "lightgbm",
    "onnxruntime": "onnx",
    "mxnet": "mxnet",
}
"""Top-level package -> the name by which a resource supports it."""
DISTRIBUTED: Final = frozenset(
    {
        *("torch.distributed", "deepspeed", "horovod", "ray.train", "tensorflow.distribute", "mpi4py"),
        *("DistributedDataParallel", "FullyShardedDataParallel", "fully_shard", "MirroredStrategy"),
    }
)
CHECKPOINTS: Final = frozenset({"torch.save", "save_checkpoint", "save_pretrained", "ModelCheckpoint", "save_weights"})
PRECISIONS: Final = {
    "bfloat16": "bf16",
    "float16": "fp16",
    "half": "fp16",
    "autocast": "mixed",
    "GradScaler": "mixed",
    "load_in_4bit": "int4",
    "load_in_8bit": "int8",
}
LIGHT_TUNING: Final = frozenset({"peft", "LoraConfig", "get_peft_model"})

BYTES_PER_PARAMETER: Final = {"train": 16, "tune": 2.5, "run": 2.4}
"""GPU memory per parameter of a model. train: weights, gradients and Adam's state in mixed precision (Rajbhandari et
al., ZeRO, 2020, section 3); tune: 16-bit weights with small adapters; run: 16-bit weights and a fifth for the rest.
Activations come on top."""
_SIZE: Final = re.compile(r"(?<![\w.])(\d{1,4}(?:\.\d{1,3})?)\s?[-_]?([bm])(?:illion)?(?![a-z0-9])", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing that was read. line: from 1."""

    name: str
    value: str
    line: int
    confidence: str


@dataclass(frozen=True, slots=True)
class Analysis:
    """The facts found. reason: why the program could not be read; empty if it could."""

    facts: tuple[Fact, ...] = ()
    reason: str = ""

    def value(self, name: str) -> str | None:
        """The first value of a fact, or None."""
        return next((fact.value for fact in self.facts if fact.name == name), None)

    @property
    def gpu_memory_gib(self) -> float | None:
        """A guess of the GPU memory that the largest model named needs; None where none is named."""
        sizes = [float(fact.value) for fact in self.facts if fact.name == "parameters"]
        if not sizes:
            return None
        way = "tune" if self.value("light_tuning") else "train" if self.value("trains") else "run"
        return max(sizes) * BYTES_PER_PARAMETER[way] / (1 << 30)


def analyse(code: str) -> Analysis:
    """The facts that a program states. Never raises: a program that cannot be read gives the reason instead."""
    if len(code) > CODE_MAX or len(code.encode("utf-8", "replace")) > CODE_MAX:
        return Analysis(reason=f"The program has more than {CODE_MAX >> 20} MiB: from your requirements only.")
    try:
        tree = ast.parse(code.removeprefix("\ufeff"))
    except SyntaxError as wrong:
        place = f" (line {wrong.lineno})" if wrong.lineno else ""
        return Analysis(reason=f"The program is no Python that can be read{place}: from your requirements only.")
    except (ValueError, RecursionError, MemoryError):
        return Analysis(reason="The program is no Python that can be read: from your requirements only.")
    found: dict[tuple[str, str], Fact] = {}
    for fact in _facts(tree):
        known = found.get((fact.name, fact.value))
        if known is None or fact.line < known.line:
            found[fact.name, fact.value] = fact
    in_order = sorted(found.values(), key=lambda fact: (fact.line, fact.name, fact.value))
    return Analysis(tuple(in_order[:FACTS_MAX]))


def _facts(tree: ast.AST) -> Iterator[Fact]:
    for node in ast.walk(tree):
        read = _READERS.get(type(node))
        if read is not None:
            yield from read(node)


def _import(node: ast.Import) -> Iterator[Fact]:
    for one in node.names:
        yield from _module(one.name, node.lineno)


def _import_from(node: ast.ImportFrom) -> Iterator[Fact]:
    if node.module and not node.level:
        yield from _module(node.module, node.lineno)
        for one in node.names:
            yield from _name(one.name, node.lineno)
            yield from _name(f"{node.module}.{one.name}", node.lineno)


def _module(name: str, line: int) -> Iterator[Fact]:
    if framework := FRAMEWORKS.get(name.partition(".")[0]):
        yield Fact("framework", framework, line, HIGH)
    yield from _name(name, line)


def _name(name: str, line: int) -> Iterator[Fact]:
    if name in DISTRIBUTED or any(name.startswith(one + ".") for one in DISTRIBUTED):
        yield Fact("distributed", name, line, HIGH)
    if name in LIGHT_TUNING:
        yield Fact("light_tuning", name, line, HIGH)


def _call(node: ast.Call) -> Iterator[Fact]:
    whole = _dotted(node.func)
    last = whole.rpartition(".")[2]
    line = node.lineno
    yield from _name(last, line)
    if whole in CHECKPOINTS or last in CHECKPOINTS:
        yield Fact("checkpoints", last, line, HIGH if whole in CHECKPOINTS else LOW)
    if last in PRECISIONS:
        yield Fact("precision", PRECISIONS[last], line, HIGH)
    if last in ("backward", "fit", "train_on_batch"):
        yield Fact("trains", last, line, HIGH if last == "backward" else LOW)
    if last == "cuda" or (last == "to" and any(_text(one).startswith("cuda") for one in node.args)):
        yield Fact("gpu", "cuda", line, HIGH)
    if last in ("load_dataset", "ImageFolder") and node.args and (name := _text(node.args[0])):
        yield Fact("dataset", name[:200], line, HIGH)
    if last in ("from_pretrained", "pipeline"):
        for text in map(_text, (*node.args, *(one.value for one in node.keywords))):
            if text:
                yield Fact("model", text[:200], line, HIGH)
                yield from _size(text, line)


def _keyword(node: ast.keyword) -> Iterator[Fact]:
    line = node.value.lineno
    if node.arg in PRECISIONS and isinstance(node.value, ast.Constant) and node.value.value is True:
        yield Fact("precision", PRECISIONS[node.arg], line, HIGH)
    if node.arg in ("batch_size", "per_device_train_batch_size"):
        yield from _number("batch_size", node.value, HIGH)
    if node.arg in ("epochs", "num_epochs", "num_train_epochs", "max_epochs"):
        yield from _number("epochs", node.value, HIGH)


def _assign(node: ast.Assign) -> Iterator[Fact]:
    for target in node.targets:
        name = target.id.lower() if isinstance(target, ast.Name) else ""
        if name in ("batch_size", "epochs", "num_epochs", "max_iters", "max_steps"):
            yield from _number(name, node.value, LOW)


def _attribute(node: ast.Attribute) -> Iterator[Fact]:
    if node.attr in ("bfloat16", "float16"):
        yield Fact("precision", PRECISIONS[node.attr], node.lineno, HIGH)


def _constant(node: ast.Constant) -> Iterator[Fact]:
    if node.value == "CKPT_DIR":
        yield Fact("checkpoints", "CKPT_DIR", node.lineno, HIGH)


def _number(name: str, value: ast.expr, confidence: str) -> Iterator[Fact]:
    if isinstance(value, ast.Constant) and type(value.value) is int and 0 < value.value <= 10**12:
        yield Fact(name, str(value.value), value.lineno, confidence)


def _size(text: str, line: int) -> Iterator[Fact]:
    """The parameters that a model's name tells: `Llama-3-8B` has 8e9."""
    for number, unit in _SIZE.findall(text.rpartition("/")[2].replace("-", " ").replace("_", " ")):
        count = float(number) * (1e9 if unit in "bB" else 1e6)
        if 1e6 <= count <= 1e13:
            yield Fact("parameters", f"{count:.0f}", line, LOW)


def _dotted(node: ast.expr) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute) and len(parts) < 8:
        parts.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name):
        parts.append(node.id)
    return ".".join(reversed(parts))


def _text(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


_READERS: Final[dict[type, Callable[..., Iterator[Fact]]]] = {
    ast.Import: _import,
    ast.ImportFrom: _import_from,
    ast.Call: _call,
    ast.keyword: _keyword,
    ast.Assign: _assign,
    ast.Attribute: _attribute,
    ast.Constant: _constant,
}
