"""What is read in a program, with its line and how far it can be trusted; and programs that cannot be read."""

from textwrap import dedent

import pytest

from windrow_master.hybrid.analysis import CODE_MAX, FACTS_MAX, Fact, analyse

TRAINING = dedent(
    """\
    import os, torch
    from torch.nn.parallel import DistributedDataParallel as DDP
    import torch.distributed as dist
    from datasets import load_dataset
    from transformers import AutoModelForCausalLM
    batch_size = 12
    model = AutoModelForCausalLM.from_pretrained("meta-llama/Llama-3.1-8B", torch_dtype=torch.bfloat16).cuda()
    data = load_dataset("openwebtext")
    folder = os.environ["CKPT_DIR"]
    loss = model(data); loss.backward()
    torch.save(model.state_dict(), folder)
    """
)


def test_a_training_script_says_what_it_needs() -> None:
    facts = set(analyse(TRAINING).facts)
    assert facts >= {
        Fact("framework", "pytorch", 1, "high"),
        Fact("distributed", "DistributedDataParallel", 2, "high"),
        Fact("distributed", "torch.distributed", 3, "high"),
        Fact("batch_size", "12", 6, "low"),
        Fact("gpu", "cuda", 7, "high"),
        Fact("model", "meta-llama/Llama-3.1-8B", 7, "high"),
        Fact("parameters", "8000000000", 7, "low"),
        Fact("precision", "bf16", 7, "high"),
        Fact("dataset", "openwebtext", 8, "high"),
        Fact("checkpoints", "CKPT_DIR", 9, "high"),
        Fact("trains", "backward", 10, "high"),
        Fact("checkpoints", "save", 11, "high"),
    }


@pytest.mark.parametrize(
    ("line", "name", "value"),
    [
        ("import tensorflow.keras as k", "framework", "tensorflow"),
        ("from sklearn.svm import SVC", "framework", "sklearn"),
        ("from peft import get_peft_model", "light_tuning", "get_peft_model"),
        ("f(load_in_4bit=True)", "precision", "int4"),
        ("f(per_device_train_batch_size=8)", "batch_size", "8"),
        ("f(num_train_epochs=3)", "epochs", "3"),
        ("x.to('cuda:0')", "gpu", "cuda"),
        ("pipeline('text-generation', model='gpt2-774M')", "parameters", "774000000"),
    ],
)
def test_one_line_says_one_thing(line: str, name: str, value: str) -> None:
    assert analyse(line).value(name) == value


@pytest.mark.parametrize(
    "line",
    [
        *("import numpy", "torchvision = 1", "from . import torch", "f(load_in_4bit=False)", "batch_size = -1"),
        *("batch_size = True", "f(batch_size='8')", "x.to('cpu')", "# import torch", "'import torch'"),
        *("from_pretrained(name)", "pipeline('v2b')"),
    ],
)
def test_what_is_not_said_is_not_read(line: str) -> None:
    assert [fact for fact in analyse(line).facts if fact.name not in ("model", "precision")] == []


def test_the_memory_is_guessed_by_what_is_done_with_the_model() -> None:
    model = "m.from_pretrained('x/y-7b')\n"
    run, tune = analyse(model).gpu_memory_gib, analyse("import peft\n" + model).gpu_memory_gib
    train = analyse(model + "loss.backward()").gpu_memory_gib
    assert run is not None and tune is not None and train is not None
    assert 15 < run < tune < 17 < 100 < train < 110
    assert analyse("import torch").gpu_memory_gib is None


@pytest.mark.parametrize(
    "code",
    [
        *("(" * 10**6, "{" * 10**6, "def f(:", "\0", "x = 1\0", "a\ud800", "x = " + "-" * 10**5 + "1"),
        *(".".join(["a"] * 200_000), "x = " + "1+" * 300_000 + "1", "not " * 5_000 + "1", "lambda:" * 5_000 + "1"),
        *("a" * (CODE_MAX + 1), "é" * CODE_MAX, "f'{" * 200, "print 1", "\x1b[2J"),
    ],
    ids=lambda code: ascii(code[:12]),
)
def test_a_program_that_cannot_be_read_gives_the_reason_and_no_fact(code: str) -> None:
    analysis = analyse(code)
    assert analysis.facts == ()
    assert analysis.reason.endswith(": from your requirements only.")


def test_a_program_of_many_facts_gives_the_first() -> None:
    facts = analyse("\n".join(f"f(batch_size={n})" for n in range(1, 1_000))).facts
    assert len(facts) == FACTS_MAX and facts[0].value == "1"


def test_nothing_of_a_program_is_run(capsys: pytest.CaptureFixture[str]) -> None:
    analyse("print('ran')\nimport antigravity\nraise SystemExit(3)")
    assert capsys.readouterr().out == ""
