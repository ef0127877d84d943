"""karat measures how good a retriever is, and shows why the number can be trusted.

The public names are listed in `__init__.pyi`. Each is loaded when it is first used, so that
`import karat` costs next to nothing.
"""

from importlib import import_module


def _read_public_names() -> dict[str, str]:
    """Return the module that defines each public name; submodules are defined in karat."""
    stub = __spec__.loader.get_data(f"{__path__[0]}/__init__.pyi").decode()
    imports = [line.split() for line in stub.splitlines() if line.startswith("from ")]
    return {name: module for _from, module, _import, name, _as, _name in imports}


_MODULE_OF = _read_public_names()
__all__ = [name for name, module in _MODULE_OF.items() if module != "karat"]


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'karat' has no attribute {name!r}")
    if _MODULE_OF[name] == "karat":
        return import_module(f"karat.{name}")
    return getattr(import_module(_MODULE_OF[name]), name)


def __dir__() -> list[str]:
    return sorted(_MODULE_OF)
