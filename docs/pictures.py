"""Pictures that can be read by everybody: each has a description, and a link to itself in its full size.

On a narrow screen a picture keeps a width at which its letters can be read, and scrolls inside its box.
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from PIL import Image
from sphinx.util import logging

logger = logging.getLogger(__name__)


def prepare(app: Any, doctree: nodes.document) -> None:
    """Put every picture of a page into a box; those without a description are an error."""
    for image in list(doctree.findall(nodes.image)):
        if "sphx-glr" in " ".join(image.parent.get("classes", [])) or "_thumb" in image["uri"]:
            continue
        if not image.get("alt", "").strip():
            logger.warning("the picture %s has no description: set its :alt:", image["uri"], location=image)
        if "width" not in image:
            # in the size of the screen that it was drawn for, where there is room; Sphinx then links it to its file
            with Image.open(app.srcdir / image["uri"]) as picture:
                image["width"] = f"{picture.width}px"
        box = nodes.container("", classes=["picture", *image["classes"]])
        image["classes"] = []
        image.replace_self(box)
        box += image


def describe_thumbnails(app: Any, doctree: nodes.document) -> None:
    """The gallery's small pictures stand beside their titles, so that a reader who does not see them misses nothing."""
    for image in doctree.findall(nodes.image):
        if "_thumb" in image["uri"] and not image.get("alt", "").strip():
            image["alt"] = (
                f"Thumbnail of {image['uri'].rpartition('plot_')[2].removesuffix('_thumb.png').replace('_', ' ')}"
            )


def setup(app: Any) -> dict[str, bool]:
    """Sphinx calls this."""
    app.connect("doctree-read", prepare)
    app.connect("doctree-read", describe_thumbnails)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
