"""Machines that the Master buys at providers: what is asked, seen, ended and owed."""
