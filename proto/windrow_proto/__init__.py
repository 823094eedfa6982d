"""The contract: everything that two Windrow processes share. It imports none of them."""
