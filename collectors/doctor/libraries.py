"""Optional libraries: which sources of a site file would find theirs here."""

from __future__ import annotations

from importlib import import_module

from collectors.call import one_line
from collectors.doctor.check import Check

# extra of this package -> what it must be possible to import. The test compares the extras with pyproject.toml.
EXTRAS: dict[str, tuple[str, ...]] = {
    "gnmi": ("grpc", "google.protobuf"),
    "snmp": ("gufo.snmp",),
    "prometheus": ("aiohttp",),
    "redfish": ("httpx",),
}


def library_checks() -> list[Check]:
    """One check an extra; a library that is there and cannot be imported says why."""
    return [_check(extra, modules) for extra, modules in EXTRAS.items()]


def _check(extra: str, modules: tuple[str, ...]) -> Check:
    problems = [text for module in modules if (text := _problem(module)) is not None]
    name = f"library {extra}"
    if not problems:
        return Check(name, "ok", f"{', '.join(modules)}: collector `{extra}` can be used")
    return Check(name, "missing", "; ".join(problems), f"For collector `{extra}`: pip install 'fabrictwin[{extra}]'.")


def _problem(module: str) -> str | None:
    try:
        import_module(module)
    except ModuleNotFoundError:
        return f"{module} is not installed"
    except Exception as problem:  # a library may fail in any way while it is imported
        return f"{module} cannot be imported: {one_line(problem, 120)}"
    return None
