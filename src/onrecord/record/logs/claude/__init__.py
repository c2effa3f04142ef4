"""Claude Code's session files, and the stream of its SDK and of `claude -p`."""
