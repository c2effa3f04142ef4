"""Logs of Cursor's agent (native-logs.md 4.6)."""
