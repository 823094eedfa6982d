"""Decisions of an Access: who may connect, whose frames go next, what is shed. Pure."""
