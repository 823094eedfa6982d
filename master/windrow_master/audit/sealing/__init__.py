"""Old entries of the audit log in files."""
