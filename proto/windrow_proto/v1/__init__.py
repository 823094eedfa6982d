"""Version 1 of the messages; the `*_pb2` files are made from the `.proto` files by `make proto` and committed."""
