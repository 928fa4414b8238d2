"""`python -m streamcut`: the command line."""

from streamcut.cli import main

main()
