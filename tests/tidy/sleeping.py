"""No test sleeps to wait: it waits on an event, or moves virtual time."""

import ast
from collections.abc import Iterator

from tests.tidy.file import File

# The only files that may sleep, each with its reason.
SLEEPERS = {
    "tests/waiting.py": "it looks again until something holds, and its pause decides nothing",
}


def does_not_sleep(file: File) -> Iterator[str]:
    if file.parts[1] == "typing":  # samples of users' code, which are read and not run
        return
    if file.path in SLEEPERS:
        return
    idle = idle_events(file.tree)
    for node in ast.walk(file.tree):
        if isinstance(node, ast.Call) and (is_sleep(node) or is_idle_wait(node, idle)):
            yield f"line {node.lineno} sleeps: wait on an event, or move virtual time"


def is_sleep(call: ast.Call) -> bool:
    """Whether it is `sleep(…)`, but for `sleep(0)`, which lets others run.

    What is no module's `sleep` may be a test's own: a number of seconds tells that it is not.
    """
    match call.func, call.args:
        case _, [ast.Constant(value=0)]:
            return False
        case ast.Attribute(attr="sleep", value=ast.Name(id="asyncio" | "time" | "anyio")), _:
            return True
        case ast.Attribute(attr="sleep"), [ast.Constant()]:
            return True
        case ast.Name(id="sleep"), _:
            return True
        case _:
            return False


def is_idle_wait(call: ast.Call, idle: set[str]) -> bool:
    """Whether it waits for a while on an event that nobody sets. To wait for ever is to hang."""
    match call:
        case ast.Call(func=ast.Attribute(attr="wait", value=event), args=args, keywords=keywords):
            return bool(args or keywords) and is_fresh(event, idle)
        case ast.Call(
            func=ast.Name(id="wait_for") | ast.Attribute(attr="wait_for"),
            args=[ast.Call(func=ast.Attribute(attr="wait", value=event)), *_],
        ):
            return is_fresh(event, idle)
        case _:
            return False


def is_fresh(event: ast.expr, idle: set[str]) -> bool:
    match event:
        case ast.Call(func=ast.Name(id="Event") | ast.Attribute(attr="Event")):
            return True
        case ast.Name(id=name):
            return name in idle
        case _:
            return False


def idle_events(tree: ast.Module) -> set[str]:
    """The names of events that are waited for, and otherwise never used."""
    made = {
        target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for targets, values in [(node.targets[0], node.value)]
        for target, value in zip(parts_of(targets), parts_of(values), strict=False)
        if isinstance(target, ast.Name) and is_fresh(value, set())
    }
    waited = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr == "wait"
    ]
    used = {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node not in waited
    }
    return made - used


def parts_of(node: ast.expr) -> list[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple) else [node]
