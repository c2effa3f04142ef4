"""`python -m onrecord` is the command `onrecord`."""

from onrecord.cli.main import main

if __name__ == "__main__":
    main()
