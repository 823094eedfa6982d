"""`windrow up`: a whole market on one machine, and the supervisor of its daemons."""
