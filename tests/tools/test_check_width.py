"""`scripts/check_width.py`: which lines are too long, and that wrapping them changes nothing but
line breaks.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.support.environment import ROOT

sys.path.insert(0, str(ROOT / "scripts"))
import check_width

# 105 columns, without a space at the end.
LONG = " ".join(["words"] * 17) + " end"


def fixed(folder: Path, name: str, text: str) -> str:
    """Check a file, wrap it, and return it; the second check finds nothing, and wrapping again
    changes nothing.
    """
    file = folder / name
    file.write_text(text, encoding="utf-8")
    found = check_width.check(file, fix=False)
    assert file.read_text(encoding="utf-8") == text
    check_width.check(file, fix=True)
    result = file.read_text(encoding="utf-8")
    assert bool(found) == (result != text)
    assert check_width.check(file, fix=False) == []
    check_width.check(file, fix=True)
    assert file.read_text(encoding="utf-8") == result
    return result


def wrapped(prefix: str, text: str = LONG, rest: str | None = None) -> str:
    """The expected result for a paragraph, filled by Python's own textwrap."""
    return textwrap.fill(
        text,
        100,
        initial_indent=prefix,
        subsequent_indent=prefix if rest is None else rest,
        break_long_words=False,
        break_on_hyphens=False,
    )


def test_the_line_is_named(tmp_path: Path) -> None:
    file = tmp_path / "a.rs"
    file.write_text(f"// short\n\n/// {LONG}\nfn f() {{}}\n")
    assert check_width.check(file, fix=False) == [f"{file}:3: {4 + len(LONG)} columns"]


@pytest.mark.parametrize("mark", ["//", "///", "//!"])
@pytest.mark.parametrize("indent", ["", "    "])
def test_comments_of_rust(tmp_path: Path, mark: str, indent: str) -> None:
    text = f"{indent}{mark} {LONG}\n{indent}{mark} and more.\nfn f() {{}}\n"
    expected = wrapped(f"{indent}{mark} ", f"{LONG} and more.") + "\nfn f() {}\n"
    assert fixed(tmp_path, "a.rs", text) == expected


def test_safety_comments_stay_in_front_of_their_block(tmp_path: Path) -> None:
    text = f"fn f() {{\n    // SAFETY: {LONG}.\n    unsafe {{ g() }}\n}}\n"
    expected = wrapped("    // ", f"SAFETY: {LONG}.")
    assert fixed(tmp_path, "a.rs", text) == f"fn f() {{\n{expected}\n    unsafe {{ g() }}\n}}\n"


@pytest.mark.parametrize(
    "text",
    [
        f"/// ```\n/// let x = {LONG};\n/// ```\nfn f() {{}}\n",
        f"/// | a | {LONG} |\n/// |---|---|\nfn f() {{}}\n",
        f"/// # {LONG}\nfn f() {{}}\n",
        f"/// Usage:\n///\n///     {LONG}\nfn f() {{}}\n",
        f"/// [there]: https://example.org/{'x' * 100}\nfn f() {{}}\n",
        f"// {'x' * 120}\n",
        f"// `{'x' * 55}`{'y' * 55}\n",
        f"// a    b    {LONG}\n",
        f"let x = 1; // {LONG}\n           // {LONG}\n",
        f'let x = "\n// {LONG}\n";\n',
        f'let x = r#"\n// {LONG}\n" // {LONG}\n"#;\n',
        f'let q = \'"\'; let x = "// {LONG}";\n',
        f"fn f<'a>(x: &'a str) {{}} // {LONG}\n",
    ],
)
def test_what_stays_in_rust(tmp_path: Path, text: str) -> None:
    assert fixed(tmp_path, "a.rs", text) == text


def test_what_stands_beside_is_left_and_the_rest_is_wrapped(tmp_path: Path) -> None:
    text = f"/// ```\n/// {LONG}\n/// ```\n///\n/// {LONG}\n///\n/// # Errors\n/// {LONG}\nfn f() {{}}\n"
    paragraph = wrapped("/// ")
    expected = f"/// ```\n/// {LONG}\n/// ```\n///\n{paragraph}\n///\n/// # Errors\n{paragraph}\nfn f() {{}}\n"
    assert fixed(tmp_path, "a.rs", text) == expected


def test_items_of_lists(tmp_path: Path) -> None:
    text = f"- {LONG}\n- short\n  - {LONG}\n    and more\n\n    {LONG}\n1. {LONG}\n\n   {LONG}\n"
    expected = [
        wrapped("- ", rest="  "),
        "- short",
        wrapped("  - ", f"{LONG} and more", rest="    "),
        "",
        wrapped("    "),
        wrapped("1. ", rest="   "),
        "",
        wrapped("   "),
        "",
    ]
    assert fixed(tmp_path, "a.md", text) == "\n".join(expected)


def test_no_line_begins_with_what_markdown_takes_for_something_else(tmp_path: Path) -> None:
    words = ["words"] * 16
    for odd in ("-", "+", "*", "#", "1.", "2)", ">", "> 3", "|x|", "=="):
        # Where the width would put it first on the second line, it stays on the line of the
        # previous word.
        text = " ".join([*words, "and", odd, *words])
        for line in fixed(tmp_path, "a.md", text + "\n").splitlines()[1:]:
            assert line.startswith(("words", "and")), line


def test_code_spans_are_whole(tmp_path: Path) -> None:
    result = fixed(tmp_path, "a.md", f"{' '.join(['words'] * 15)} `python -m torch_dml doctor` end\n")
    assert "\n`python -m torch_dml doctor` end\n" in result


def test_short_lines_and_labels_were_ended_on_purpose(tmp_path: Path) -> None:
    text = f"// Two things.\n// {LONG}\n// `name`: one.\n// `other`: two.\n"
    expected = f"// Two things.\n{wrapped('// ')}\n// `name`: one.\n// `other`: two.\n"
    assert fixed(tmp_path, "a.cpp", text.replace("end", "end.")) == expected.replace("end", "end.")


def test_paragraphs_without_a_long_line_stay(tmp_path: Path) -> None:
    text = "".join(f"// {'words ' * 10}end\n// more\n" for _ in range(3))
    assert fixed(tmp_path, "a.h", text) == text


@pytest.mark.parametrize(
    "text",
    [
        f"# {LONG}\n\n| a | {LONG} |\n|---|---|\n\n```sh\n{LONG}\n```\n\n~~~~\n```\n{LONG}\n~~~~\n",
        f"<p>\n{LONG}\n</p>\n",
        f"<!-- begin: table -->\n{LONG}\n<!-- end: table -->\n",
        f"# Page\n\nWritten by a program; do not edit.\n\n{LONG}\n",
        f"[{'x' * 100}](y)\n",
    ],
)
def test_what_stays_in_markdown(tmp_path: Path, text: str) -> None:
    assert fixed(tmp_path, "a.md", text) == text


def test_lines_of_chinese_are_not_joined(tmp_path: Path) -> None:
    text = f"{'文' * 60} {'字' * 60}。\n下一行。\n"
    assert fixed(tmp_path, "a.md", text) == f"{'文' * 60}\n{'字' * 60}。\n下一行。\n"


def test_hard_line_breaks_stay(tmp_path: Path) -> None:
    text = f"{LONG}  \nnext\\\nlast\n"
    assert fixed(tmp_path, "a.md", text) == f"{wrapped('')}  \nnext\\\nlast\n"


def test_comments_and_strings_of_python(tmp_path: Path) -> None:
    program = f'"""\n# {LONG}\n"""'
    text = f"#!/usr/bin/env {LONG}\nx = 1  # {LONG}\n# {LONG}\ny = {program}\nz = '''\n{LONG}\n'''\n"
    assert fixed(tmp_path, "a.py", text) == text.replace(f"1  # {LONG}\n# {LONG}", f"1  # {LONG}\n{wrapped('# ')}")


def test_documentation_strings(tmp_path: Path) -> None:
    method = '    def f(self):\n        """Short.\n\n{}\n\n            {}\n        """\n'
    text = f'class A:\n    """{LONG}."""\n\n' + method.format(f"        {LONG}:", LONG)
    first = wrapped('    """', f"{LONG}.", rest="    ")
    expected = f'class A:\n{first}\n    """\n\n' + method.format(wrapped("        ", f"{LONG}:"), LONG)
    assert fixed(tmp_path, "a.py", text) == expected


@pytest.mark.parametrize("over", range(-3, 4))
def test_quotes_at_the_end_count(tmp_path: Path, over: int) -> None:
    doc = ("words " * 30)[: 100 - 4 - 6 + over].rstrip()
    doc += "." * (100 - 10 + over - len(doc))
    text = f'def f():\n    """{doc}"""\n'
    result = fixed(tmp_path, "a.py", text)
    assert result.count("\n") == (2 if over <= 0 else 4), result
    formatted = subprocess.run(
        [sys.executable, "-m", "ruff", "format", "--line-length", "120", "-"],
        input=result,
        capture_output=True,
        text=True,
    )
    assert (formatted.returncode, formatted.stdout.splitlines()[:3]) == (0, result.splitlines()[:3])


def test_strings_with_escapes_stay(tmp_path: Path) -> None:
    text = f'def f():\n    """{LONG}\\n"""\n'
    assert fixed(tmp_path, "a.py", text) == text
