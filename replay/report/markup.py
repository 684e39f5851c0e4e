"""HTML and SVG by function calls: what is not markup already is escaped, so that no name can become markup."""

from __future__ import annotations

from html import escape

Child = object  # Markup stays as it is, None and False are nothing, anything else is text

_EMPTY = frozenset(("meta", "br", "hr", "rect", "line", "circle", "path", "use", "polyline"))


class Markup(str):
    """Text that is markup. Made by `tag` and `join` alone."""

    __slots__ = ()


def tag(name: str, /, *children: Child, **attributes: object) -> Markup:
    """An element. Of an attribute's name a last `_` is dropped, others become `-`; None leaves it out."""
    said = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(value), quote=True)}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _EMPTY and not children:
        return Markup(f"<{name}{said}>" if name in ("meta", "br", "hr") else f"<{name}{said}/>")
    return Markup(f"<{name}{said}>{join(*children)}</{name}>")


def join(*children: Child) -> Markup:
    """Children one behind the other; lists and tuples are their members."""
    return Markup("".join(map(_one, children)))


def _one(child: Child) -> str:
    if isinstance(child, Markup):
        return child
    if isinstance(child, list | tuple):
        return join(*child)
    return "" if child is None or child is False else escape(str(child), quote=False)
