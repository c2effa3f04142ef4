"""Importer of OpenTelemetry GenAI and OpenInference spans (native-logs.md 4.9)."""
