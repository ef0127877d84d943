"""Commands of a project: karat.toml supplies the arguments and options that were not given.

A setting has the name of the option that it sets; `Argument` and `Option` declare it. The settings
of `karat run` are in the table [retriever], all others are at the top level of the file.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import click

from karat.checks import did_you_mean
from karat.cli.parameters import Argument, Command, Option, command, is_project_setting
from karat.config import SECTIONS, Config
from karat.errors import InputError, MeasureError

RETRIEVER = "retriever"
"""The table of settings for `karat run`."""
_COMMANDS: list[ProjectCommand] = []
Parameter = Argument | Option
_QUOTED = re.compile("'([^']+)'")


class Setting(NamedTuple):
    """A setting by its table ("" at the top level) and its name."""

    table: str
    name: str

    @property
    def key(self) -> str:
        """The setting as it is written in messages."""
        return f"{self.table}.{self.name}" if self.table else self.name

    def find(self, config: Config) -> Any:
        """Return the value in a file, or None."""
        table = config.settings.get(self.table, {}) if self.table else config.settings
        return table.get(self.name)


class ConfigOption(Option):
    """The option -c; when it is processed, karat.toml becomes the defaults of all others."""

    def handle_parse_result(
        self, ctx: click.Context, opts: Any, args: list[str]
    ) -> tuple[Any, list[str]]:
        """Read the file; `project_config` returns it afterwards."""
        path, args = super().handle_parse_result(ctx, opts, args)
        config = Config()
        if not ctx.resilient_parsing:
            config = Config.read(path) if isinstance(path, str) else Config.find()
            check_settings(config)
            _drop_empty(ctx.command, opts)
            _assign_files(ctx.command, opts, config)
            ctx.default_map = _defaults(ctx.command, opts, config)
            _make_importable(config)
        ctx.obj = config
        return path, args

    def words(self, value: Any) -> list[str]:  # noqa: ARG002
        """Return the option as it was given on the command line."""
        context = click.get_current_context()
        source = context.get_parameter_source(str(self.name))
        is_given = source is click.core.ParameterSource.COMMANDLINE
        return [self.opts[-1], str(context.obj.path)] if is_given else []


class ProjectCommand(Command):
    """A command whose arguments and options can be set in karat.toml."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the command line; an argument that is missing can be set in karat.toml."""
        try:
            return super().parse_args(ctx, args)
        except click.MissingParameter as error:
            raise self._missing(ctx) or error from None

    def invoke(self, ctx: click.Context) -> Any:
        """Show which settings of karat.toml are used, then run the command."""
        config: Config = ctx.obj
        used = [
            f"{self.setting(parameter, config).name}={_brief(parameter, ctx.params)}"
            for parameter in self.used_parameters()
            if ctx.params[str(parameter.name)] != ()
        ]
        if used:
            print(f"using the settings in {config.path}: {', '.join(used)}", file=sys.stderr)
        with setting_errors():
            return super().invoke(ctx)

    def project_parameters(self) -> list[Parameter]:
        """Return the arguments and options that can be set in karat.toml."""
        return [
            parameter
            for parameter in self.params
            if isinstance(parameter, (Argument, Option)) and parameter.settings
        ]

    def used_parameters(self) -> Iterator[Parameter]:
        """Yield the parameters of the running command whose values are from karat.toml."""
        for parameter in self.project_parameters():
            if is_project_setting(str(parameter.name)):
                yield parameter

    def settings(self, parameter: Parameter) -> list[Setting]:
        """Return the settings that a parameter is read from; the first one that is set counts."""
        is_of_run = self.name == "run" and isinstance(parameter, Option)
        table = RETRIEVER if is_of_run else ""
        return [Setting("" if name in SECTIONS else table, name) for name in parameter.settings]

    def setting(self, parameter: Parameter, config: Config) -> Setting:
        """Return the setting that a parameter is read from in this file."""
        settings = self.settings(parameter)
        return next((each for each in settings if each.find(config) is not None), settings[-1])

    def _missing(self, ctx: click.Context) -> InputError | None:
        """Return the error for missing arguments, or None if karat.toml cannot set them."""
        missing = [
            parameter
            for parameter in self.project_parameters()
            if parameter.required and not ctx.params.get(str(parameter.name))
        ]
        if not missing:
            return None
        config: Config = ctx.obj
        names = [_shown_name(parameter) for parameter in missing]
        keys = [self.setting(parameter, config).key for parameter in missing]
        usage = " ".join(["karat", str(self.name), *_required(self)])
        file = config.path or "karat.toml"
        hint = (
            f"write {usage} (see karat {self.name} --help), or set {' and '.join(keys)} in {file}"
        )
        if config.path is None:
            hint += "; `karat init` writes a starter project"
        runs = listed_runs(config)
        if keys == ["runs"] and len(runs) > 1:
            hint = f"{config.path} lists several runs; choose one: {', '.join(runs)}"
        noun = "argument" if len(names) == 1 else "arguments"
        return InputError(f"missing {noun}: {' and '.join(names)}", hint=hint)


CONFIG = ConfigOption(
    "-c",
    "--config",
    panel="Settings",
    metavar="FILE",
    setting="",
    is_eager=True,
    expose_value=False,
    help="Read the settings from this file instead of the nearest karat.toml.",
)


def project_config() -> Config:
    """Return the settings file of the running command; without a file, it is empty."""
    config: Config = click.get_current_context().obj
    return config


def project_command(
    name: str, *parameters: click.Parameter, **attributes: Any
) -> Callable[[Callable[..., None]], Command]:
    """Return a decorator that makes a command with defaults from karat.toml."""
    make = command(name, *parameters, kind=ProjectCommand, no_args_is_help=False, **attributes)

    def register(function: Callable[..., None]) -> Command:
        made = make(function)
        assert isinstance(made, ProjectCommand)
        _COMMANDS.append(made)
        return made

    return register


@contextmanager
def setting_errors() -> Iterator[None]:
    """Let errors about a value from karat.toml name the file and the setting."""
    try:
        yield
    except InputError as error:
        context = click.get_current_context()
        if isinstance(context.command, ProjectCommand):
            _name_setting(error, context.command, context.obj)
        raise


def _name_setting(error: InputError, command: ProjectCommand, config: Config) -> None:
    output = config.settings.get(RETRIEVER, {}).get("output")
    if error.path is not None:
        names = {str(parameter.name) for parameter in command.used_parameters()}
        is_run = output is not None and error.path == config.located(output)
        if is_run and names & {"run", "runs"} and not os.path.lexists(error.path):
            words = ["karat run", *CONFIG.words(None)]
            error.hint = f"run `{' '.join(words)}` to write it"
        return
    if error.line is not None or error.query is not None:
        return
    for parameter in command.used_parameters():
        setting = command.setting(parameter, config)
        detail = _detail(error, parameter, setting, setting.find(config))
        if detail is not None:
            error.path, error.field = config.path, f"{config.section}{setting.key}{detail}"
            return


def _detail(error: InputError, parameter: Parameter, setting: Setting, value: Any) -> str | None:
    """Return which key of a setting an error is about, or "" for all of it; None if neither.

    Fields have the name of the parameter in Python or on the command line, and those of pairs also
    what is wrong, such as "header Authorization" or "field query=question".
    """
    if setting.name == "measures" and isinstance(error, MeasureError):
        return "" if _problem_of_measures(value) == error.problem else None
    quoted = _QUOTED.findall(error.problem)
    texts = json.dumps(value, ensure_ascii=False)
    if quoted and not any(text in texts for text in quoted):
        return None  # it is about a value of the command line, such as that of --gold-format
    names = {setting.name, *(_as_name(flag) for flag in (str(parameter.name), *parameter.opts))}
    name = _as_name(error.field or "")
    if name in names or (quoted and setting.name.endswith(f"_{name}")):
        return ""
    first, _, pair = (error.field or "").partition(" ")
    is_pair = parameter.separator is not None and _as_name(first) in names
    return f".{pair.partition('=')[0]}" if is_pair else None


def _as_name(text: str) -> str:
    """Return the name of a flag or of a field in a message, as it is in karat.toml."""
    return re.sub("[ -]", "_", text.lstrip("-"))


def _problem_of_measures(names: Any) -> str | None:
    """Return what is wrong with the names of measures; None if nothing is."""
    from karat.measures import parse_all

    try:
        parse_all(names)
    except MeasureError as error:
        return error.problem
    return None


def known_settings() -> dict[Setting, Parameter]:
    """Return all settings, each with a parameter that takes it; those of lists come first."""
    known: dict[Setting, Parameter] = {}
    for each in _COMMANDS:
        for parameter in each.project_parameters():
            for setting in each.settings(parameter):
                if setting not in known or _is_list(parameter):
                    known[setting] = parameter
    return known


def check_settings(config: Config) -> None:
    """Raise an error for an unknown setting, or for a value of the wrong type."""
    known = known_settings()
    tables = {"": config.settings, RETRIEVER: config.settings.get(RETRIEVER, {})}
    for table, values in tables.items():
        for name in values:
            setting = Setting(table, name)
            if setting in known:
                _parse(known[setting], setting, config)
            elif table or name not in SECTIONS:
                raise _unknown(setting, known, config)


def _unknown(setting: Setting, known: Iterable[Setting], config: Config) -> InputError:
    names = [
        each.name for each in known if each.table == setting.table and each.name not in SECTIONS
    ]
    if not setting.table:
        names += [f"[{config.section}{name}]" for name in SECTIONS]
    elsewhere = [each for each in known if each.name == setting.name]
    hint = did_you_mean(setting.name, names)
    if hint is None and elsewhere:
        where = f"[{config.section}{elsewhere[0].table}]" if elsewhere[0].table else "the top level"
        hint = f"it belongs in {where}"
    return InputError(
        "unknown setting",
        path=config.path,
        field=config.section + setting.key,
        hint=hint or f"the settings are {', '.join(names)}",
    )


def _defaults(command: click.Command, opts: Any, config: Config) -> dict[str, Any]:
    """Return the values of a file for the parameters of a command, by their names."""
    assert isinstance(command, ProjectCommand)
    values: dict[str, Any] = {}
    for parameter in command.project_parameters():
        setting = command.setting(parameter, config)
        texts: Any
        if setting.name == "runs":
            texts = _located(parameter, listed_runs(config), config)
        elif setting.find(config) is None:
            continue
        else:
            texts = _parse(parameter, setting, config)
        if isinstance(texts, tuple) and not _is_list(parameter):
            texts = _single(setting, texts, config)
        if texts not in (None, ()):
            values[str(parameter.name)] = texts
    return _adjusted(command, opts, values)


def _adjusted(command: click.Command, opts: Any, values: dict[str, Any]) -> dict[str, Any]:
    """Return the defaults that make sense for this command line."""
    if command.name == "explain" and not opts.keys() & {"query", "gold"}:
        # Files are read only to explain the value of a query.
        return {name: value for name, value in values.items() if name not in ("gold", "run")}
    if command.name == "validate":  # it may come before the first run
        values["runs"] = tuple(path for path in values.get("runs", ()) if os.path.exists(path))
    if command.name == "compare" and (baseline := values.pop("baseline", None)) is not None:
        runs = opts.get("runs") or values.get("runs", ())
        is_pair = len(opts.get("runs", ())) > 1
        if baseline in runs:
            values["baseline"] = baseline
        elif not is_pair and "baseline" not in opts and os.path.exists(baseline):
            values |= {"baseline": baseline, "runs": (baseline, *runs)}
            if "runs" in opts:
                opts["runs"] = (baseline, *runs)
    return values


def listed_runs(config: Config) -> tuple[str, ...]:
    """Return the runs of a project as written: `runs`, or else the output of `karat run`."""
    runs = config.settings.get("runs") or config.settings.get(RETRIEVER, {}).get("output") or ()
    return (runs,) if isinstance(runs, str) else tuple(runs)


def _single(setting: Setting, values: tuple[str, ...], config: Config) -> str | None:
    """Return the only value of a list, or the run that `karat run` writes; None if unclear."""
    output = config.settings.get(RETRIEVER, {}).get("output")
    if setting.name == "runs" and output is not None and config.located(output) in values:
        return config.located(output)
    return values[0] if len(values) == 1 else None


def _is_list(parameter: Parameter) -> bool:
    return parameter.nargs < 0 or parameter.multiple


def _parse(parameter: Parameter, setting: Setting, config: Config) -> Any:
    """Return a value of a file as an option or argument takes it, or raise an error."""
    value = setting.find(config)
    if parameter.metavar == "JSON" and isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    if _is_list(parameter):
        texts = _texts(parameter, value)
        if texts is not None:
            return _located(parameter, texts, config)
        expected, example = "a list of texts", '["first", "second"]'
        if parameter.separator is not None:
            expected, example = "a table with texts", '{ name = "text" }'
        raise _wrong_type(parameter, setting, config, expected, example)
    expected, example, types = _scalar_type(parameter)
    if not isinstance(value, types) or (isinstance(value, bool) and types is not bool):
        raise _wrong_type(parameter, setting, config, expected, example)
    return _located_text(parameter, value, config) if isinstance(value, str) else value


def _scalar_type(parameter: Parameter) -> tuple[str, str, Any]:
    """Return what a file must contain for an option, in words, as an example and as types."""
    match parameter.type:
        case click.types.BoolParamType():
            return "true or false", "true", bool
        case click.types.IntParamType():
            return "a whole number", "5", int
        case click.types.FloatParamType():
            return "a number", "0.5", (int, float)
    return "a text", '"text"', str


def _wrong_type(
    parameter: Parameter, setting: Setting, config: Config, expected: str, example: str
) -> InputError:
    value = setting.find(config)
    # The values of pairs may be secret.
    shown = f"a {type(value).__name__}" if parameter.separator is not None else repr(value)
    return InputError(
        f"expected {expected}, got {shown}",
        path=config.path,
        field=config.section + setting.key,
        hint=f"write {setting.name} = {example}",
    )


def _texts(parameter: Parameter, value: Any) -> tuple[str, ...] | None:
    """Return the texts of a list or a table; None if the value is neither."""
    if isinstance(value, dict) and parameter.separator is not None:
        if not all(isinstance(each, (str, int, float)) for each in value.values()):
            return None
        texts = {
            name: each if isinstance(each, str) else json.dumps(each)
            for name, each in value.items()
        }
        return tuple(f"{name}{parameter.separator}{text}" for name, text in texts.items())
    values = [value] if isinstance(value, str) else value
    is_list = isinstance(values, list) and all(isinstance(text, str) for text in values)
    return tuple(values) if is_list else None


def _located(parameter: Parameter, texts: Iterable[str], config: Config) -> tuple[str, ...]:
    """Return paths relative to the current folder; other texts are unchanged."""
    return tuple(_located_text(parameter, text, config) for text in texts)


def _located_text(parameter: Parameter, text: str, config: Config) -> str:
    if "spec" in parameter.settings:
        kind, colon, corpus = text.partition(":")
        is_built_in = bool(colon) and kind in ("bm25", "dense", "hybrid")
        return f"{kind}:{config.located(corpus)}" if is_built_in else text
    if not parameter.is_path:
        return text
    if parameter.separator is not None and parameter.separator in text:
        name, separator, path = text.partition(parameter.separator)
        return f"{name}{separator}{config.located(path)}"
    return config.located(text)


def _drop_empty(command: click.Command, opts: dict[str, Any]) -> None:
    """Remove arguments that were not given; each version of Click stores another mark for them."""
    for parameter in command.params:
        value = opts.get(str(parameter.name))
        is_given = value != () and isinstance(value, (str, tuple))
        if isinstance(parameter, Argument) and not is_given:
            opts.pop(str(parameter.name), None)


def _assign_files(command: click.Command, opts: dict[str, Any], config: Config) -> None:
    """Take the first file as a run if the project has gold and the file is not gold."""
    names = [str(each.name) for each in command.params if isinstance(each, Argument)]
    if names not in (["gold", "runs"], ["gold", "run"]) or "gold" not in opts:
        return
    if config.settings.get("gold") is None:
        return
    first, runs_name = opts["gold"], names[1]
    others = opts.get(runs_name, ())
    if (runs_name == "run" and others) or _is_gold(first, is_only=not others):
        return
    del opts["gold"]
    opts[runs_name] = first if runs_name == "run" else (first, *others)


def _is_gold(path: str, *, is_only: bool) -> bool:
    """Return whether a file contains gold; if that is unclear, the first of several does."""
    from karat.data.data_file import DataFile
    from karat.data.formats.registry import detect
    from karat.evaluation.saved_scores import holds_scores
    from karat.files import is_pipe

    if is_pipe(path):
        return not is_only
    try:
        kind = "run" if holds_scores(path) else detect(DataFile(path)).kind(DataFile(path))
    except InputError:  # such as a missing file or a folder: reported when it is read
        kind = "gold" if os.path.isdir(path) else None
    return not is_only if kind is None else kind == "gold"


def _make_importable(config: Config) -> None:
    """Let retrievers and measures be imported from the folder of the file."""
    folder = os.path.dirname(config.path or "")
    if folder and config.settings and folder not in sys.path:
        sys.path.append(folder)


def _brief(parameter: Parameter, values: dict[str, Any]) -> str:
    """Return a value for a message, without secrets: of pairs only the names."""
    from karat.live.redaction import safe_command, safe_text, safe_url

    value = values[str(parameter.name)]
    if parameter.separator is not None:
        return ",".join(text.partition(parameter.separator)[0] for text in value)
    if parameter.metavar == "JSON":
        return "…"
    texts = [str(each) for each in (value if isinstance(value, tuple) else (value,))]
    if "spec" in parameter.settings:
        texts = [
            safe_url(word) if word.startswith(("http://", "https://")) else safe_text(word)
            for word in safe_command(texts[0].split())
        ]
    return ",".join(texts) if "spec" not in parameter.settings else " ".join(texts)


def _required(command: click.Command) -> Iterator[str]:
    for parameter in command.params:
        if parameter.required and isinstance(parameter, Argument):
            yield f"{parameter.metavar}..." if parameter.nargs < 0 else str(parameter.metavar)
        elif parameter.required:
            yield f"{parameter.opts[-1]} {parameter.metavar}"


def _shown_name(parameter: Parameter) -> str:
    return str(parameter.metavar) if isinstance(parameter, Argument) else parameter.opts[-1]
