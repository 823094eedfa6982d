"""Making the view of history again from the segment log, while no Master runs."""
