"""What a renter may try against the host its container is on."""
