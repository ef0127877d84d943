"""Write docs/cli.md from the commands and their options.

A test checks that the page is up to date; KARAT_UPDATE=1 (`make messages`) rewrites it.
"""

from __future__ import annotations

from pathlib import Path

import click

from karat.cli.main import app

PAGE = Path(__file__).parents[1] / "docs" / "cli.md"

INTRODUCTION = """\
# Command line

`karat --help` lists all commands, and `karat COMMAND --help` the options of one. This page has the
same texts and is generated from them by `tools/build_cli_page.py`. The
[exit codes](exit_codes.md) are the same for all commands.
"""


def pages() -> dict[Path, str]:
    """Return the path and the text of the page."""
    context = click.Context(app, info_name="karat")
    parts = [INTRODUCTION, "| command | purpose |\n| --- | --- |"]
    for name, command in app.commands.items():
        purpose = _paragraphs(command.help or "")[0]
        parts[-1] += f"\n| [`karat {name}`](#karat-{name}) | {_plain(purpose)} |"
    parts[-1] += "\n"
    for name, command in app.commands.items():
        with command.make_context(name, [], parent=context, resilient_parsing=True) as inner:
            parts.append(section(inner, command))
    return {PAGE: "\n".join(parts)}


def section(context: click.Context, command: click.Command) -> str:
    """Return the usage, the help text and the options of a command."""
    usage = " ".join(command.collect_usage_pieces(context))
    parts = [f"## {context.command_path}\n", f"```text\n{context.command_path} {usage}\n```\n"]
    parts += [f"{text}\n" for text in _paragraphs(command.help or "")]
    panels: dict[str, list[tuple[str, str]]] = {}
    for parameter in command.get_params(context):
        title = "Arguments" if isinstance(parameter, click.Argument) else "Help"
        record = parameter.get_help_record(context)
        if record is not None:
            panels.setdefault(getattr(parameter, "panel", title), []).append(record)
    if command.name == "trec_eval":  # it reads the flags of the original itself
        parts.append("[In place of trec_eval](trec_eval.md) explains them.\n")
    panels.pop("Help", None)  # --help is the same everywhere
    for title, records in panels.items():
        items = "".join(f"- `{name}`  \n  {_plain(text)}\n" for name, text in records)
        parts.append(f"**{title}**\n\n{items}")
    return "\n".join(parts)


def _paragraphs(text: str) -> list[str]:
    """Return the paragraphs of a help text, each in one line."""
    return [" ".join(part.split()) for part in text.replace("\b", "").split("\n\n")]


def _plain(text: str) -> str:
    """Return a text in one line that Markdown shows as it is."""
    return " ".join(text.split()).replace("*", "\\*").replace("<", "&lt;")


if __name__ == "__main__":
    PAGE.write_text(pages()[PAGE], encoding="utf-8")
