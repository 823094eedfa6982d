"""Private networks of clusters whose members do not see each other: devices of packets, and cords between hosts."""
