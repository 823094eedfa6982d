"""Retention: deletes records that nobody needs any more, so that the database does not grow without end."""
