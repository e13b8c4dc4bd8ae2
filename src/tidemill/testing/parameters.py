"""What a definition says about the payload of its jobs."""

from __future__ import annotations

import inspect
from collections.abc import Mapping

from tidemill.registry import JobDefinition


def parameters_of(definition: JobDefinition) -> Mapping[str, inspect.Parameter]:
    """The parameters that a payload fills, by name, in their order."""
    # The codec decides which these are; the signature alone does not tell.
    return definition.arguments._parameters  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] - as said above


def ignores_unknown(definition: JobDefinition) -> bool:
    """Whether a payload may hold parameters that the handler does not have."""
    return definition.arguments._ignore_unknown  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] - nothing else tells
