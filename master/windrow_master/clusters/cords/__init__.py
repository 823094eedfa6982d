"""The cords between members that do not."""
