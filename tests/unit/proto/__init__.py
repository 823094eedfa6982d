"""The contract, module by module."""
