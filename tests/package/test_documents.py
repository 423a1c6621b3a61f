"""The pages of the documentation: all links are valid, and all pages are reachable on the site."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.environment import ROOT

READMES = [ROOT / "README.md", ROOT / "README.zh.md"]
ROOT_PAGES = ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "CODE_OF_CONDUCT.md", "robots/README.md")
PAGES = [*READMES, *(ROOT / name for name in ROOT_PAGES)]
PAGES += sorted((ROOT / "docs").rglob("*.md"))


def text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def links(page: Path) -> list[str]:
    """The targets of a page's links within the repository, ignoring code."""
    prose = re.sub(r"^ *```.*?^ *```|`[^`\n]*`", "", text(page), flags=re.MULTILINE | re.DOTALL)
    return [target for target in re.findall(r"\]\(([^)\s]+)\)", prose) if "://" not in target]


def anchors(page: Path) -> set[str]:
    """GitHub's anchors of a page's headings."""
    prose = re.sub(r"^ *```.*?^ *```", "", text(page), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", prose, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in links(page):
        name, _, anchor = target.partition("#")
        file = (page.parent / name) if name else page
        assert file.exists(), target
        assert not anchor or file.suffix != ".md" or anchor in anchors(file), target


def test_the_site_leads_to_every_page() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    pages = {file.relative_to(ROOT / "docs").as_posix() for file in (ROOT / "docs").rglob("*.md")}
    assert pages == set(re.findall(r"[\w./-]+\.md$", navigation, re.MULTILINE))


def test_both_readmes_have_the_same_code_and_links() -> None:
    def code(page: Path) -> list[str]:
        blocks = re.findall(r"^```\w+\n(.*?)^```", text(page), re.MULTILINE | re.DOTALL)
        return [re.sub(r" *#.*", "", block) for block in blocks]

    english, chinese = READMES
    assert code(english) == code(chinese)
    assert set(links(english)) - {chinese.name} == set(links(chinese)) - {english.name}
