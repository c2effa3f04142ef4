"""Logs of Gemini CLI (native-logs.md 4.4)."""
