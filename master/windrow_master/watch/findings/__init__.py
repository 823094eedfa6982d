"""Names what holds a rented GPU back, from its readings, with the evidence and what to change."""
