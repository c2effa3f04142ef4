"""Codex: rollout files of the program and the event stream of `codex exec --json` (native-logs.md 4.3)."""
