"""Classes to declare commands: arguments and options as values, and help pages with panels.

Options are values, so that several commands can share them. rich-click also shows panels, but it
more than doubles the time of `karat --help`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class Argument(click.Argument):
    """A positional argument with a help text: the path of one or more files.

    In a configured project, the first of `settings` that karat.toml sets is its default.
    """

    def __init__(
        self,
        name: str,
        *,
        metavar: str,
        text: str,
        settings: tuple[str, ...] = (),
        **attributes: Any,
    ) -> None:
        super().__init__([name], metavar=metavar, **attributes)
        self.text = text
        self.settings = settings
        self.is_path = True
        self.separator = None

    def make_metavar(self, ctx: click.Context) -> str:  # noqa: ARG002
        """Return the name for the usage line."""
        name = self.human_readable_name
        if not self.required:
            name = f"[{name}]"
        return f"{name}..." if self.nargs < 0 else name

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:  # noqa: ARG002
        """Return the name and the help text."""
        return self.human_readable_name, self.text

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the values that begin as typed."""
        from karat.cli.completion import completions

        values = completions(self.name, self.metavar, incomplete)
        return values or super().shell_complete(ctx, incomplete)


SETTING_PANELS = (
    "Measures",
    "Scoring",
    "Input",
    "Text matching",
    "Retriever",
    "Built-in retrievers",
    "Queries",
    "HTTP",
    "Speed and failures",
)
"""The options of these panels can be set in karat.toml, by their names as function parameters."""


class Option(click.Option):
    """An option in a panel of the help page.

    The names are flags; a name without dashes is the name of the function parameter.

    `setting` is the name of the option in karat.toml, or "" if the file cannot set it; by default,
    the panel decides. `is_path` states that the values are paths. `separator` is between the
    two parts of each value, if these are pairs; in karat.toml they are a table.
    """

    def __init__(
        self,
        *names: str,
        panel: str,
        help: str,  # noqa: A002
        setting: str | None = None,
        is_path: bool = False,
        separator: str | None = None,
        **attributes: Any,
    ) -> None:
        show_default = attributes.pop("show_default", True)
        super().__init__(
            names, help=help, show_default=show_default, show_envvar=True, **attributes
        )
        self.panel = panel
        if setting is None:
            setting = str(self.name) if panel in SETTING_PANELS else ""
        self.settings = (setting,) if setting else ()
        self.is_path = is_path
        self.separator = separator

    def get_help_extra(self, ctx: click.Context) -> Any:
        """Return the texts in brackets; Click would add parentheses around a default text."""
        extra = super().get_help_extra(ctx)
        if isinstance(self.show_default, str):
            extra["default"] = self.show_default
        return extra

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the values that begin as typed."""
        from karat.cli.completion import completions

        values = completions(self.name, self.metavar, incomplete)
        return values or super().shell_complete(ctx, incomplete)

    def words(self, value: Any) -> list[str]:
        """Return the command-line arguments for a value; an empty list for the default.

        The list is also empty if the value is a setting of the project, which applies anyway.
        """
        if is_project_setting(str(self.name)) or value is None or value is False or value == ():
            return []
        if value == self.default and not _overrides_setting(str(self.name)):
            return []
        flag = self.opts[-1]
        if value is True:
            return [flag]
        values = value if isinstance(value, tuple) else (value,)
        return [word for single in values for word in (flag, str(single))]


def is_project_setting(parameter: str) -> bool:
    """Return whether the value of a parameter of the running command is a setting of karat.toml."""
    context = click.get_current_context(silent=True)
    source = None if context is None else context.get_parameter_source(parameter)
    return source is click.core.ParameterSource.DEFAULT_MAP


def _overrides_setting(parameter: str) -> bool:
    """Return whether the command line replaces a setting of karat.toml for this parameter."""
    context = click.get_current_context(silent=True)
    return context is not None and parameter in (context.default_map or {})


class Command(click.Command):
    """A command with a help page of panels: first the arguments, then the options."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the panels in the order of their first options."""
        panels: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            title = "Arguments" if isinstance(parameter, click.Argument) else "Help"
            record = parameter.get_help_record(ctx)
            if record is not None:
                panels.setdefault(getattr(parameter, "panel", title), []).append(record)
        for title, records in panels.items():
            with formatter.section(title):
                formatter.write_dl(records)


class CommandGroup(click.Group):
    """A group of commands; their summaries are wrapped, while Click would cut them."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the first paragraph of the help text of each command."""
        with formatter.section("Commands"):
            formatter.write_dl(
                [
                    (name, (command.help or "").split("\n\n")[0].replace("\n", " "))
                    for name, command in self.commands.items()
                ]
            )


def command(
    name: str, *parameters: click.Parameter, kind: type[Command] = Command, **attributes: Any
) -> Callable[[Callable[..., None]], Command]:
    """Return a decorator that makes a command from a function with these parameters."""

    def make(function: Callable[..., None]) -> Command:
        options: dict[str, Any] = {
            "no_args_is_help": any(parameter.required for parameter in parameters),
            "context_settings": CONTEXT,
        } | attributes
        text = inspect.cleandoc(function.__doc__ or "")
        return kind(name, callback=function, params=list(parameters), help=text, **options)

    return make
