"""The tests of Windrow: read aloud, they are its specification."""
