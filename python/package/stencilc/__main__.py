"""The command line: `stencilc`, and `python -m stencilc`."""

from __future__ import annotations

import sys

from . import _core


def main() -> None:
    """Does what the words of the call say, and ends with the status."""
    sys.exit(_core.command_line(["stencilc", *sys.argv[1:]]))


if __name__ == "__main__":
    main()
