"""The Master's database of decisions: schema, unit of work, group-committing writer, migrations."""
