"""The Master's memory of decisions: schema, unit of work, group-committing writer, migrations."""
