"""How other machines come in."""
