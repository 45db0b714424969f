"""An SVG drawing as part of a page: only if it can do nothing but be looked at."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_NAMESPACE = "http://www.w3.org/2000/svg"
_ELEMENTS = frozenset(
    ("svg", "g", "path", "text", "tspan", "rect", "line", "circle", "defs", "clipPath", "title", "desc")
)


def embedded(svg: bytes, alt: str) -> str:
    """Markup that shows the drawing, with `alt` for those who cannot see it.

    Inline where every element and attribute is harmless; otherwise as an image, in which a browser runs nothing.
    """
    root = _harmless(svg)
    if root is None:
        data = base64.b64encode(svg).decode()
        return f'<img src="data:image/svg+xml;base64,{data}" alt="{_escaped(alt)}">'
    root.set("role", "img")
    root.set("aria-label", alt)
    from xml.etree import ElementTree

    ElementTree.register_namespace("", _NAMESPACE)
    return ElementTree.tostring(root, encoding="unicode")


def _harmless(svg: bytes) -> Element | None:
    from xml.etree import ElementTree

    if b"<!" in svg:  # no document type, and so no entities to expand
        return None
    try:
        root = ElementTree.fromstring(svg)
    except (ElementTree.ParseError, RecursionError, ValueError):
        return None
    return root if all(_is_harmless(each) for each in root.iter()) else None


def _is_harmless(element: Element) -> bool:
    namespace, _, name = str(element.tag).rpartition("}")
    if namespace.removeprefix("{") != _NAMESPACE or name not in _ELEMENTS:
        return False
    return all(_is_harmless_attribute(key, value) for key, value in element.attrib.items())


def _is_harmless_attribute(key: str, value: str) -> bool:
    bare = key.rpartition("}")[2].lower()
    if bare.startswith("on") or bare in ("href", "src", "style"):
        return False
    return "url(" not in value.replace("url(#", "")


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
