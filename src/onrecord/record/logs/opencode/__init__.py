"""Importer of OpenCode's sessions, in every layout that the program has written (native-logs.md 4.5)."""
