"""`karat demo`: compare retrievers on the handbook of karat."""

from __future__ import annotations

import shlex
import shutil
import sys
import webbrowser
from pathlib import Path

from karat.cli.options import FILE
from karat.cli.parameters import Argument, Option, command


@command(
    "demo",
    Argument(
        "folder",
        metavar="FOLDER",
        type=FILE,
        default=Path("karat-demo"),
        text="The folder for the files of the demo.  [default: karat-demo]",
    ),
    Option("--open", "open_", panel="Output", is_flag=True, help="Open the report in a browser."),
)
def demo_command(folder: Path, open_: bool) -> None:
    """Compare retrievers on karat's handbook, and write a report to a folder.

    The folder also gets faq/, the example files of the documentation.

    Takes less than a minute and uses no network. Files in the folder that the demo did not write,
    or that were changed since, are never replaced. The folder is a project with a karat.toml: the
    commands that are printed at the end work in it.
    """
    from karat.cli.progress import progress
    from karat.demo import build_demo
    from karat.report.renderers import terminal

    with progress(is_shown=True, is_kept=False) as watch:
        demo = build_demo(folder, watch)
    terminal.show(demo.document())
    print("", *demo.next_steps(_ways_to_find_karat()), sep="\n")
    if open_ and demo.report is not None:
        webbrowser.open(demo.report.resolve().as_uri())


def _ways_to_find_karat() -> list[str]:
    """Return what a shell needs to find this karat: nothing, its environment or an alias."""
    found, invoked = shutil.which("karat"), Path(sys.argv[0])
    if not invoked.exists() or (found is not None and invoked.samefile(found)):
        return []
    if (activate := invoked.with_name("activate")).is_file():
        return [shlex.join([".", str(activate)])]
    is_module = invoked.suffix == ".py"
    words = [sys.executable, "-m", "karat"] if is_module else [str(invoked.absolute())]
    return [f"alias karat={shlex.quote(shlex.join(words))}"]
