"""The settings that the environment gives, without their secrets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tidemill.config import STORE_VARIABLE
from tidemill.doctor.words import listed
from tidemill.values.doctor import Finding, Result
from tidemill.values.urls import without_secrets

PREFIX: Final = "TIDEMILL_"
KNOWN: Final = ("TIDEMILL_APP", "TIDEMILL_DEBUG", STORE_VARIABLE)
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
    given = [f"{name}={_shown(name, environment[name])}" for name in ours if name in KNOWN]
    said = "; ".join(given) if given else "No setting is given by the environment."
    return [*findings, Finding("environment", Result.OK, said)]


def _shown(name: str, value: str) -> str:
    if name != STORE_VARIABLE:
        return value
    return f"{without_secrets(value)}{'?…' if '?' in value else ''}"
