"""The record room: vCons, their checks and forms, the journal, the recorder. Import from its modules."""
