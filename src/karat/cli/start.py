"""What `karat` prints without a command: what to do next, and the list of commands."""

from __future__ import annotations

import click

_FIRST_STEPS = (
    ("demo", "karat demo", "see a comparison of retrievers (offline, under a minute)"),
    ("init", "karat init", "start a project with your own questions"),
    ("eval", "karat eval GOLD RUN", "score what your retriever returned"),
)


_IN_A_PROJECT = (
    ("run", "karat run", "run the retriever on all queries"),
    ("eval", "karat eval", "score the runs"),
    ("gate", "karat gate", "check a run against the thresholds"),
)


def start_page(app: click.Group, settings_file: str | None = None) -> str:
    """Return the first steps and the commands; in a folder with settings, those of the project."""
    title, steps = "First steps", _FIRST_STEPS
    if settings_file is not None:
        title, steps = f"In this project ({settings_file})", _IN_A_PROJECT
    with click.Context(app, info_name="karat", **app.context_settings) as context:
        formatter = context.make_formatter()
        formatter.write(f"{app.help}\n")
        with formatter.section(title):
            formatter.write_dl([(step, text) for name, step, text in steps if name in app.commands])
        app.format_commands(context, formatter)
    formatter.write("\nkarat COMMAND --help shows the options of a command.")
    return formatter.getvalue()
