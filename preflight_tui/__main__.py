"""The two commands: ``preflight-tui`` opens the console where it can, ``preflight`` never does."""

from __future__ import annotations

import sys

from preflight_tui.cli import run


def main() -> None:
    """Be ``preflight-tui``."""
    sys.exit(run(sys.argv[1:]))


def main_headless() -> None:
    """Be ``preflight``: the same as ``preflight-tui --no-ui``."""
    sys.exit(run(["--no-ui", *sys.argv[1:]]))


if __name__ == "__main__":
    main()
