"""`windrow up`: the market on one machine, and its supervisor."""
