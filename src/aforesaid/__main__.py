"""`python -m aforesaid` is the command line."""

from aforesaid.cli import main

if __name__ == "__main__":
    main()
