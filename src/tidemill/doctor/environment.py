"""The settings that the environment gives, without their secrets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from tidemill.doctor.words import listed
from tidemill.values.doctor import Finding, Result

PREFIX: Final = "TIDEMILL_"
KNOWN: Final = ("TIDEMILL_APP", "TIDEMILL_DEBUG", "TIDEMILL_STORE")
_TESTS: Final = ("TIDEMILL_TEST_", "TIDEMILL_DEMO_", "TIDEMILL_ACCEPT")
"""Read by the tests and the demonstration alone."""


def judge_environment(environment: Mapping[str, str]) -> list[Finding]:
    """Findings about the variables that begin with TIDEMILL_."""
    ours = sorted(name for name in environment if name.startswith(PREFIX))
    strange = [name for name in ours if name not in KNOWN and not name.startswith(_TESTS)]
    findings: list[Finding] = []
    if strange:
        findings.append(
            Finding(
                "environment",
                Result.WARNING,
                f"Nothing reads {listed(strange, most=10)}.",
                f"Tidemill reads {listed(KNOWN)}: correct the name, or remove it.",
            )
        )
    given = [f"{name}={shown(environment[name])}" for name in ours if name in KNOWN]
    said = "; ".join(given) if given else "No setting is given by the environment."
    return [*findings, Finding("environment", Result.OK, said)]


def shown(value: str) -> str:
    """A setting without password, user information or query; an SQLite file's place is kept."""
    try:
        parts = urlsplit(value)
        port = parts.port
    except ValueError:
        return "(not shown: it cannot be read as a URL)"
    if not parts.scheme or "://" not in value:
        return value
    host = f"{parts.hostname or ''}{f':{port}' if port else ''}"
    user = f"{parts.username}@" if parts.username else ""
    return f"{parts.scheme}://{user}{host}{parts.path}{'?…' if parts.query else ''}"
