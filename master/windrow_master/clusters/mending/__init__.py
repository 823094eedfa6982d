"""Makes clusters whole again that have lost members."""
