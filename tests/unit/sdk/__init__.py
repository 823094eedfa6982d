"""What the SDK and the command decide without a Master."""
