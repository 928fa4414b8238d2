"""`python -m streamcut`: the command line."""

from streamcut.cli import main

if __name__ == "__main__":
    main()
