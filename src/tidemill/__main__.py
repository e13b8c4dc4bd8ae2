"""`python -m tidemill`: the command line, for where no script is installed."""

from __future__ import annotations

from tidemill.cli.main import main

if __name__ == "__main__":
    main()
