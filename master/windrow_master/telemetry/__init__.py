"""Samples as the Master keeps them: the segment log, the live view, and history as a view of the log."""
