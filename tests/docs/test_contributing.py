"""Every path that CONTRIBUTING.md names is there."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PATH = re.compile(r"`([\w./]+/[\w./]*[\w]\.?\w*)`")


def test_every_path_it_names_is_there():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = [path for path in PATH.findall(text) if "NNNN" not in path]
    assert "core/claim.py" in named
    places = (ROOT, ROOT / "src" / "tidemill")
    missing = [path for path in named if not any((place / path).exists() for place in places)]
    assert missing == []
