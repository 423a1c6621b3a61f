"""A hook of mkdocs: links to files that are not on the site are made links to the repository."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"\]\((?!\w+:|#)([^)\s#]+)(#[^)\s]*)?\)")


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    """Replace a relative link to a file outside the site with the file's address in the
    repository.
    """
    folder = Path(page.file.abs_src_path).parent

    def repository(match: re.Match[str]) -> str:
        target = Path(os.path.normpath(folder / match[1]))
        page_of_the_site = target.is_relative_to(config.docs_dir) and target.suffix in {".md", ".svg"}
        if page_of_the_site or not target.is_relative_to(ROOT) or not target.exists():
            return match[0]
        kind = "tree" if target.is_dir() else "blob"
        return f"]({config.repo_url}/{kind}/main/{target.relative_to(ROOT).as_posix()}{match[2] or ''})"

    return LINK.sub(repository, markdown)
