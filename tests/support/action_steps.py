"""Runs the shell steps of action.yml as GitHub does; steps with `uses:` are simulated."""

import os
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from support.paths import ROOT

ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
_EXPRESSION = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)
_PATH = re.compile(r"'[^']*'|[a-z_][\w-]*(?:\.[\w-]+)+")


@dataclass
class Job:
    """One job that uses the action: contexts of expressions, environment, and what happened."""

    folder: Path
    inputs: dict
    github: dict
    environment: dict
    uses: dict = field(default_factory=dict)
    """What a step with `uses:` does: by the name of the step, a function that gets `with`."""
    steps: dict = field(default_factory=dict)
    ran: list = field(default_factory=list)
    output: str = ""
    code: int = 0

    @property
    def temp(self):
        return self.folder / "temp"

    @property
    def summary(self):
        return (self.folder / "summary.md").read_text(encoding="utf-8")

    def run(self):
        """Run all steps until one fails."""
        self.temp.mkdir()
        for name in ("summary.md", "event.json"):
            (self.folder / name).touch()
        defaults = {name: declared["default"] for name, declared in ACTION["inputs"].items()}
        assert not set(self.inputs) - set(defaults)
        self.inputs = {
            name: str(self.text(value)) for name, value in (defaults | self.inputs).items()
        }
        for step in ACTION["runs"]["steps"]:
            if "if" in step and not self.value(step["if"].removeprefix("${{").removesuffix("}}")):
                continue
            self.ran.append(step["name"])
            outputs = self.use(step) if "uses" in step else self.shell(step)
            self.steps[step.get("id", step["name"])] = {"outputs": outputs}
            if self.code:
                break
        return self

    def use(self, step):
        options = {name: self.text(value) for name, value in step["with"].items()}
        return self.uses.get(step["name"], lambda options: {})(options) or {}

    def shell(self, step):
        assert step["shell"] == "bash"
        written = self.folder / "output"
        written.write_text("")
        directory = self.text(step.get("working-directory", "."))
        environment = {name: self.text(value) for name, value in step.get("env", {}).items()}
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=self.folder / directory,
            env={**os.environ, **self.environment, "GITHUB_OUTPUT": str(written), **environment},
            capture_output=True,
            text=True,
        )
        self.output += done.stdout + done.stderr
        self.code = done.returncode
        return dict(line.split("=", 1) for line in written.read_text().splitlines())

    def text(self, text):
        """Return a text with the values of its expressions."""
        if not isinstance(text, str):
            return text
        return _EXPRESSION.sub(lambda found: str(self.value(found[1])), text)

    def value(self, expression):
        """Return the value of an expression of names, texts, ==, !=, && and ||."""
        contexts = {"inputs": self.inputs, "github": self.github, "steps": self.steps}
        contexts["runner"] = {"temp": str(self.temp)}

        def look_up(found):
            if found[0].startswith("'"):
                return repr(found[0][1:-1])
            value = contexts
            for name in found[0].split("."):
                value = value.get(name, {})
            return repr(value or "")

        python = _PATH.sub(look_up, expression).replace("&&", " and ").replace("||", " or ")
        return eval(" ".join(python.split()), {"__builtins__": {}})
