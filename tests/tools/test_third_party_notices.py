"""`scripts/third_party_notices.py`: which licence of a crate is chosen, and what is linked into the
engine.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.environment import ROOT

sys.path.insert(0, str(ROOT / "scripts"))
import third_party_notices as script


@pytest.mark.parametrize(
    ("expression", "licence"),
    [
        ("MIT", "MIT"),
        ("Apache-2.0 OR MIT", "MIT"),
        ("Apache-2.0/MIT", "MIT"),
        ("BSD-2-Clause OR Apache-2.0", "BSD-2-Clause"),
        ("Apache-2.0", "Apache-2.0"),
        ("ISC", "ISC"),
    ],
)
def test_the_first_of_the_known_licences_is_taken(expression: str, licence: str) -> None:
    assert script.licence_of("crate", expression) == licence


@pytest.mark.parametrize("expression", ["GPL-3.0-only", "(MIT OR Apache-2.0) AND Unicode-3.0", "none"])
def test_others_are_for_a_person_to_decide(expression: str) -> None:
    with pytest.raises(SystemExit, match="crate: none of"):
        script.licence_of("crate", expression)


def test_a_missing_text_is_an_error(tmp_path: Path) -> None:
    package = {"name": "crate", "manifest_path": str(tmp_path / "Cargo.toml"), "authors": []}
    with pytest.raises(SystemExit, match="no file has the text of MIT"):
        script.text_of(package, "MIT")
    (tmp_path / "LICENSE").write_text("Copyright \r\n\f\nMIT  \n")
    assert script.text_of(package, "MIT") == "Copyright\n\nMIT"
    # There is no other text of this licence.
    (tmp_path / "LICENSE").unlink()
    assert "the authors of crate" in script.text_of(package, "Apache-2.0")
