"""Placement: a request and a snapshot of the fleet become a plan, or the reasons why there is none."""
