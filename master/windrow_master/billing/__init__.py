"""Usage and earnings: what a project spends and earns in a month, by day and by what it was for."""
