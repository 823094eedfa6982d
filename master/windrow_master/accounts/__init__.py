"""Accounts that an operator adds, credits and suspends, and the links by which people sign in to them."""
