"""Commands to hosts: the outbox, and what became of each."""
