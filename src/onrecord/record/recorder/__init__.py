"""The recorder: takes entries from authority and guards, keeps record sessions, writes signed vCons."""
