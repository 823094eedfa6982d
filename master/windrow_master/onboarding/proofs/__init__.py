"""The Master rents each host as a renter would, and shows what came of it."""
