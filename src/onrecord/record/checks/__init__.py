"""vCon conformance: the findings catalogue and the checks. Import `check` from `onrecord.record.checks.checker`."""
