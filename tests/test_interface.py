"""The public interface, compared with tests/golden/interface.txt, so that no feature gets lost.

Names with their signatures, flags of the command line, settings of karat.toml, properties of JSON
documents, exit codes.
`make messages` (KARAT_UPDATE=1) rewrites the file after an intended change.
"""

import inspect
import json
import re
from collections.abc import Iterator
from importlib import import_module

import karat
from karat.cli.main import app
from karat.cli.project import known_settings
from karat.report.schemas import DOCUMENTS, schema
from support.golden import check_golden
from support.paths import GOLDEN

MODULES = (
    "karat",
    "karat.chunk",
    "karat.compat.pytrec_eval",
    "karat.data",
    "karat.live.retrievers",
    "karat.measures",
    "karat.testing",
)


def test_interface_is_that_of_the_golden_file(command, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    parts = {
        "names": [line for module in MODULES for line in names_of(module)],
        "flags": list(flags()),
        "settings": sorted(setting.key for setting in known_settings()),
        "documents": [line for name in DOCUMENTS for line in properties(name, schema(name))],
        "exit codes": list(exit_codes(command)),
    }
    text = "\n".join(
        "\n".join([title, "=" * len(title), *lines, ""]) for title, lines in parts.items()
    )
    check_golden(GOLDEN / "interface.txt", text)


def names_of(module_name: str) -> Iterator[str]:
    module = import_module(module_name)
    for name in sorted(module.__all__):
        value = getattr(module, name)
        yield f"{module_name}.{name}{signature(value)}"
        if inspect.isclass(value) and value.__module__.startswith("karat") and module is karat:
            yield from (f"{module_name}.{name}.{line}" for line in members(value))


def members(kind: type) -> Iterator[str]:
    """Yield the public methods and properties that are defined in karat."""
    for name in sorted({name for base in kind.__mro__ for name in vars(base)}):
        owner = next(base for base in kind.__mro__ if name in vars(base))
        if owner.__module__.startswith("karat") and not name.startswith("_"):
            yield f"{name}{signature(getattr(kind, name))}"


def signature(value: object) -> str:
    if not callable(value) or (isinstance(value, type) and issubclass(value, tuple)):
        return ""
    try:
        shown = str(inspect.signature(value))
    except ValueError:
        return "(...)"
    return re.sub(r"<.*? at 0x[0-9a-f]+>", "...", shown)


def flags() -> Iterator[str]:
    for name, command in sorted(app.commands.items()):
        for parameter in sorted(command.params, key=lambda parameter: str(parameter.name)):
            words = [*parameter.opts, *parameter.secondary_opts]
            required = " (required)" if parameter.required else ""
            yield f"karat {name} {'/'.join(words)}{required}"


def properties(place: str, part: object) -> Iterator[str]:
    """Yield the place and type of every property of a schema, in its own order."""
    if not isinstance(part, dict):
        return
    for key, value in part.items():
        if key == "properties":
            for name, described in value.items():
                kind = (
                    described.get("$ref", described.get("type", "any"))
                    if described is not True
                    else "any"
                )
                yield f"{place}.{name}: {json.dumps(kind)}"
                yield from properties(f"{place}.{name}", described)
        elif key == "$defs":
            for name, described in value.items():
                yield from properties(f"{place}#{name}", described)
        elif isinstance(value, dict) and key in ("items", "additionalProperties"):
            yield from properties(f"{place}[]", value)
        elif key in ("anyOf", "oneOf", "allOf"):
            for described in value:
                yield from properties(place, described)


def exit_codes(command) -> Iterator[str]:
    with (
        open("gold.qrels", "w") as gold,
        open("good.run", "w") as good,
        open("bad.run", "w") as bad,
    ):
        for n in range(30):
            gold.write(f"q{n} 0 a 1\n")
            good.write(f"q{n} Q0 a 1 2.0 good\n")
            bad.write(f"q{n} Q0 b 1 2.0 bad\n")
    with open("damaged.run", "w") as file:
        file.write("q0 Q0\n")
    with open("failed.jsonl", "w") as file:
        error = {"type": "Timeout", "message": "no answer", "attempts": 1}
        for n in range(30):
            file.write(json.dumps({"query_id": f"q{n}", "results": [], "error": error}) + "\n")
    gate = ["gate", "gold.qrels", "good.run", "--require"]
    cases = {
        "an evaluation": ["eval", "gold.qrels", "good.run"],
        "a gate that passes": [*gate, "RR >= 0.5"],
        "a gate that fails": ["gate", "gold.qrels", "bad.run", "--require", "RR >= 0.5"],
        "a gate over a damaged run": [
            "gate",
            "gold.qrels",
            "damaged.run",
            "--require",
            "RR >= 0.5",
        ],
        "a gate over failed queries": [
            "gate",
            "gold.qrels",
            "failed.jsonl",
            "--require",
            "RR >= 0",
        ],
        "a validation without errors": ["validate", "gold.qrels", "--run", "good.run"],
        "an unknown measure": ["eval", "gold.qrels", "good.run", "-m", "unknown"],
        "an unknown option": ["eval", "gold.qrels", "good.run", "--unknown"],
        "a missing file": ["eval", "gold.qrels", "missing.run"],
    }
    for name, words in cases.items():
        yield f"{name}: {command(*words)[0]}"
