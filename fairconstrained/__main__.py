"""``python -m fairconstrained``: the command line, where the command of the same name is not on the path."""

from fairconstrained.command_line import main

if __name__ == "__main__":
    raise SystemExit(main())
