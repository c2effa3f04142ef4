"""The command line: one thin module per verb, parsing and printing only."""
