"""The command line: thin over the same operations that Python code uses.

One file per noun. Modules import click and plain values at their top, and everything heavier
inside the command that needs it, so that `tidemill --help` answers at once.
"""
