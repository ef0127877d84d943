"""karat.toml and pyproject.toml."""

from karat.config import Config
from messages.cases import Section

SECTION = Section("config")


def config(name: str, content: str, path: str = "karat.toml", **how) -> None:
    SECTION.file(name, Config.read, path, content, **how)


config("pyproject.toml has no settings", "[project]\n", "pyproject.toml")
config("pyproject.toml has settings of others only", "[tool.x]\nkarat = 1\n", "pyproject.toml")
config("a setting is unknown", "[nothing]\n")
config("a setting is misspelled", "[gates]\n")
config("a setting in pyproject.toml is misspelled", "[tool.karat.gates]\n", "pyproject.toml")
config("a setting is not a table", "gate = 7\n")
config("settings in pyproject.toml are not a table", "[tool]\nkarat = 7\n", "pyproject.toml")
config("a file is not TOML", "[gate]\nnDCG@10 = 0.5\n", volatile="(?<=TOML: ).*")
config("a number in TOML has too many digits", f"[gate]\nRR = {'9' * 5_000}\n")
config("TOML is nested too deep", "[gate]\nRR = " + "[" * 100_000)
config("a convention is unknown", '[conventions]\nmising = "zero"\n')
config("a word of a convention is unknown", '[conventions]\nmissing = "never"\n')
