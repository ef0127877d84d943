"""What `karat` prints without a command: what to do next, and the list of commands."""

from __future__ import annotations

import click

_FIRST_STEPS = (
    ("demo", "karat demo", "see a comparison of retrievers (offline, under a minute)"),
    ("init", "karat init", "start a project with your own questions"),
    ("eval", "karat eval GOLD RUN", "score what your retriever returned"),
)


def start_page(app: click.Group) -> str:
    """Return the first steps and the commands."""
    with click.Context(app, info_name="karat", **app.context_settings) as context:
        formatter = context.make_formatter()
        formatter.write(f"{app.help}\n")
        with formatter.section("First steps"):
            formatter.write_dl(
                [(step, text) for name, step, text in _FIRST_STEPS if name in app.commands]
            )
        app.format_commands(context, formatter)
    formatter.write("\nkarat COMMAND --help shows the options of a command.")
    return formatter.getvalue()
