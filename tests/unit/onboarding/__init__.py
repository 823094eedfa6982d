"""The joining of other machines."""
