"""The vCon data model: reading, typed views, building. Import from its modules."""
