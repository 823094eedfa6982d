"""What several tests need and no product does."""
