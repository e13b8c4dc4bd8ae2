"""A file of the repository, as the rules see it."""

import ast
from pathlib import PurePosixPath
from typing import NamedTuple

FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef


class File(NamedTuple):
    """A file of the repository: where it is, and what it says."""

    path: str
    text: str

    @property
    def parts(self) -> tuple[str, ...]:
        return PurePosixPath(self.path).parts

    @property
    def stem(self) -> str:
        return PurePosixPath(self.path).stem

    @property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)
