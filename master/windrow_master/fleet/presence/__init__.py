"""Who is heard of now, in memory; SQL learns of it only when something changes."""
