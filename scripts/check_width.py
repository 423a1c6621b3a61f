#!/usr/bin/env python3
"""Check that comments (Rust, C++, Python) and prose in Markdown have at most 100 columns, or wrap
them with --fix.

The width of code is its formatter's affair. Not checked, because a line break would change the
meaning or the layout: tables, code blocks and doc tests, headings, definitions of links and HTML,
text that is aligned or indented by hand, a word, a link or a code span that has no space to break
at, comments behind code, and generated pages.

With --fix a paragraph that has too long a line is filled again, word by word. Other paragraphs stay
as they are. Deliberate line breaks stay too: in front of a list's items, and after a line that is
much shorter than it could be.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

WIDTH = 100
# If the next word would have ended at or before this column, the line break is deliberate.
SHORT = 76
# Code spans of at most this many columns are not broken.
SPAN = 60

SUFFIXES = {".rs", ".cpp", ".h", ".py", ".md"}
# The notice in the first lines of a generated page.
_GENERATED = re.compile(r"\bdo not edit\.")

_ITEM = re.compile(r"(\s*)(?:[-*+]|\d{1,3}[.)]) +")
_QUOTE = re.compile(r"\s*>")
_FENCE = re.compile(r"\s*(```+|~~~+)")
_VERBATIM = re.compile(
    r"""\s*(?:
        \#{1,6}\s | \|.*\|$ |               # a heading, a table
        \[[^\]]+\]:\s+\S+(?:\s+".*")?$ |    # where a link leads
        </?[a-zA-Z!] | <!-- |               # HTML
        [-=*_]{3} |                         # a rule, or a heading's underline
        (?:clang-format|NOLINT|noqa|type:|fmt:|ruff:|mypy:|pragma:|rustfmt)\b   # for a tool
    )""",
    re.VERBOSE,
)
# Words with which Markdown would take a paragraph's line for something else.
_NOT_FIRST = re.compile(r"[-+*=|>]|#{1,6}$|\d{1,3}[.)]$|<[a-zA-Z/!]|```|~~~")
# `name`: text, or name - text, after a line that ended: one fact per line.
_LABEL = re.compile(r"(?:`[^`]+`|[\w.]+)(?::| [-=]) ")
_SPAN = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")


@dataclass
class Block:
    """Consecutive lines of text, without comment marks.

    `first` and `rest` are the prefixes of its first and its other lines, `last` is the suffix of
    the last line.
    """

    start: int  # the first line in the file, from 0
    texts: list[str]
    first: str
    rest: str
    last: str = ""
    last_alone: str = ""  # `last` when the text takes several lines
    is_markdown: bool = False


@dataclass
class Paragraph:
    """Lines of a block that may be filled again: the texts, and the prefixes of the first line and
    of the others.
    """

    start: int
    first: str
    rest: str
    lines: list[str] = field(default_factory=list)


def paragraphs(texts: list[str], is_markdown: bool) -> Iterator[Paragraph]:
    """Yield the paragraphs among lines of Markdown or of a comment."""
    fence = ""
    in_html = in_generated = False
    # The columns where the text of the enclosing list items begins, outermost first.
    contents: list[int] = []
    now: Paragraph | None = None
    was_blank = True
    for at, text in enumerate(texts):
        stripped = text.strip()
        if in_generated or re.match(r"<!-- begin: ", stripped):
            in_generated = not stripped.startswith("<!-- end: ")
            verbatim = True
        elif fence:
            if stripped.startswith(fence) and not stripped.strip(fence[0]):
                fence = ""
            verbatim = True
        elif match := _FENCE.match(text):
            fence = match[1]
            verbatim = True
        elif not stripped:
            in_html = False
            verbatim = True
        elif in_html:
            verbatim = True
        else:
            verbatim = bool(_VERBATIM.match(text)) or bool(_QUOTE.match(text)) or "    " in stripped
            in_html = is_markdown and verbatim and stripped.startswith("<")
        if verbatim:
            if now:
                yield now
            now = None
            was_blank = not stripped
            continue
        indent = len(text) - len(text.lstrip(" "))
        if item := _ITEM.match(text):
            if now:
                yield now
            while contents and indent < contents[-1]:
                contents.pop()
            contents.append(len(item[0]))
            now = Paragraph(at, item[0], " " * len(item[0]), [text[len(item[0]) :]])
        elif was_blank or now is None:
            while contents and indent < contents[-1]:
                contents.pop()
            is_indented = indent - (contents[-1] if contents else 0) >= 2
            now = None if is_indented else Paragraph(at, " " * indent, " " * indent, [text[indent:]])
        elif indent - len(now.rest) >= 2:
            yield now
            now = None
        else:
            now.lines.append(text[indent:])
        was_blank = False
        if now and now.lines[-1:] and (text.endswith("  ") or text.endswith("\\")):
            yield now
            now = None
            was_blank = True
    if now:
        yield now


def chunks(paragraph: Paragraph, outer: int) -> Iterator[Paragraph]:
    """Yield the parts of a paragraph between deliberate line breaks; `outer` is the number of
    columns before the paragraph.
    """
    part = Paragraph(paragraph.start, paragraph.first, paragraph.rest)
    for at, line in enumerate(paragraph.lines):
        if part.lines:
            before = part.lines[-1]
            is_short = outer + len(part.rest) + len(before) + 1 + len(atoms(line)[0]) <= SHORT
            is_label = before[-1] in ".:;," and _LABEL.match(line)
            # Chinese has no spaces between words: joined lines would get one.
            if is_short or is_label or before[-1] > "\u2e80":
                yield part
                part = Paragraph(paragraph.start + at, paragraph.rest, paragraph.rest)
        part.lines.append(line)
    yield part


def atoms(text: str) -> list[str]:
    """Return the words of a text: a code span is one word, and a word with which no line may begin
    is joined to the word before.
    """
    spaces = {
        at
        for span in _SPAN.finditer(text)
        if len(span[0]) <= SPAN
        for at in range(span.start(), span.end())
        if text[at] == " "
    }
    words: list[str] = []
    word = ""
    for at, c in enumerate(text):
        if c == " " and at not in spaces:
            if word:
                words.append(word)
            word = ""
        else:
            word += c
    if word:
        words.append(word)
    whole: list[str] = []
    for word in words:
        if whole and _NOT_FIRST.match(word):
            whole[-1] += f" {word}"
        else:
            whole.append(word)
    return whole


def filled(part: Paragraph, first: str, rest: str, last: str) -> list[str]:
    """Return the lines of a part, filled to the width, with space for `last` behind the last
    line.
    """
    if part.lines[-1].endswith("  "):  # Markdown's line break
        last = f"  {last}"
    lines = []
    line, is_empty = first + part.first, True
    words = atoms(" ".join(part.lines))
    for at, word in enumerate(words):
        end = last if at == len(words) - 1 else ""
        if not is_empty and len(line) + 1 + len(word) + len(end) > WIDTH:
            lines.append(line)
            line, is_empty = rest + part.rest, True
        line += word if is_empty else f" {word}"
        is_empty = False
    return [*lines, line + last]


def wrapped(block: Block) -> dict[int, tuple[list[str], list[str]]]:
    """Return the parts of a block with too long a line, by the line number where each begins: the
    old and the new lines.
    """
    found = {}
    end = len(block.texts) - 1
    for paragraph in paragraphs(block.texts, block.is_markdown):
        for part in chunks(paragraph, len(block.rest)):
            first = block.first if part.start == 0 else block.rest
            is_last = part.start + len(part.lines) - 1 == end
            prefixes = [first + part.first] + [block.rest + part.rest] * (len(part.lines) - 1)
            before = [prefix + line for prefix, line in zip(prefixes, part.lines, strict=True)]
            if is_last:
                before[-1] += block.last
            if all(len(line) <= WIDTH for line in before):
                continue
            after = filled(part, first, block.rest, block.last if is_last else "")
            if is_last and block.last_alone and len(block.texts) == 1 and len(after) > 1:
                after = [*after[:-1], after[-1].removesuffix(block.last), block.last_alone]
            if after != before:
                found[block.start + part.start] = (before, after)
    return found


def blocks(file: Path, text: str) -> Iterator[Block]:
    """Yield the comments, the documentation strings or the prose of a file."""
    lines = text.split("\n")
    if file.suffix == ".md":
        yield Block(0, lines, "", "", is_markdown=True)
    elif file.suffix == ".py":
        yield from _python_blocks(text, lines)
    else:
        yield from _grouped(lines, _slash_comments(text), re.compile(r"//[/!]?(?: |$)"))


def _grouped(lines: list[str], columns: dict[int, int], mark: re.Pattern[str]) -> Iterator[Block]:
    """Yield the runs of comment lines with the same mark and in the same column.

    `columns` has each line's column where its comment begins. Lines below a comment behind code
    continue that comment if they are in its column.
    """
    block: Block | None = None
    beside = -1
    for at, line in enumerate(lines):
        column = columns.get(at, -1)
        found = mark.match(line, column) if column >= 0 else None
        is_whole = column >= 0 and not line[:column].strip()
        if found and is_whole and column != beside:
            prefix = line[:column] + found[0].rstrip() + " "
            if block is None or block.rest != prefix:
                if block:
                    yield block
                block = Block(at, [], prefix, prefix)
            block.texts.append(line[found.end() :])
            continue
        if block:
            yield block
        block = None
        if not is_whole:
            beside = column
    if block:
        yield block


def _slash_comments(text: str) -> dict[int, int]:
    """Return the column where the `//` comment of a line begins, by line number, for Rust or
    C++.
    """
    pattern = re.compile(
        r"""
        //[^\n]* | /\*.*?\*/ |                              # comments
        b?r(\#*)".*?"\1 | R"([^(\s]*)\(.*?\)\2" |           # raw strings of Rust, of C++
        "(?:\\.|[^"\\])*" |                                 # strings
        '(?:\\(?:.|u\{\w+\}|x..)|[^'\\\n])'                 # characters, and not lifetimes
        """,
        re.VERBOSE | re.DOTALL,
    )
    found = {}
    for match in pattern.finditer(text):
        if match[0].startswith("//"):
            before = text[: match.start()]
            found[before.count("\n")] = match.start() - (before.rfind("\n") + 1)
    return found


def _python_blocks(text: str, lines: list[str]) -> Iterator[Block]:
    columns = {}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and not token.string.startswith(("#!", "#:")):
            columns[token.start[0] - 1] = token.start[1]
    yield from _grouped(lines, columns, re.compile(r"#(?: |$)"))
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        if ast.get_docstring(node, clean=False) is None or not isinstance(node.body[0], ast.Expr):
            continue
        string = node.body[0].value
        start, end = string.lineno - 1, (string.end_lineno or 0) - 1
        indent = " " * string.col_offset
        source = lines[start : end + 1]
        match = re.fullmatch(rf'{indent}(r?""")(.*)', source[0])
        after = source[-1][string.end_col_offset :] if source[-1].isascii() else ""
        if match is None or after or "\\" in "".join(source):
            continue
        texts = [match[2], *(line.removeprefix(indent) for line in source[1:])]
        if not texts[-1].endswith('"""') or any(line.strip() and not line.startswith(indent) for line in source):
            continue
        texts[-1] = texts[-1].removesuffix('"""')
        yield Block(start, texts, indent + match[1], indent, '"""', f'{indent}"""')


def is_generated(text: str) -> bool:
    """Return whether a page is generated."""
    return bool(_GENERATED.search("\n".join(text.split("\n")[:10])))


def check(file: Path, fix: bool) -> list[str]:
    """Return the lines of a file that are too long, as `file:line: 123 columns`; with `fix`, wrap
    them.
    """
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".md" and is_generated(text):
        return []
    changes = {start: change for block in blocks(file, text) for start, change in wrapped(block).items()}
    if fix and changes:
        lines = text.split("\n")
        for start, (before, after) in sorted(changes.items(), reverse=True):
            lines[start : start + len(before)] = after
        file.write_text("\n".join(lines), encoding="utf-8", newline="\n")
        return []
    return [
        f"{file}:{start + at + 1}: {len(line)} columns"
        for start, (before, _) in sorted(changes.items())
        for at, line in enumerate(before)
        if len(line) > WIDTH
    ]


def tracked() -> list[Path]:
    """Return the files of the repository, including those that are not committed yet."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\0")
    files = {Path(name) for name in names if Path(name).suffix in SUFFIXES}
    return sorted(file for file in files if file.is_file())


def main() -> int:
    """Print every line that is too long, or wrap them all; return 1 if there are any."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fix", action="store_true", help="wrap what is too long")
    parser.add_argument("files", nargs="*", type=Path, help="files to look at (all of the repository)")
    options = parser.parse_args()
    found = [line for file in options.files or tracked() for line in check(file, options.fix)]
    for line in found:
        print(line)
    if found:
        print(f"{len(found)} lines of comments or prose have more than {WIDTH} columns: scripts/check_width.py --fix")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
