"""Searches: how work that finds no room in this market comes to a place that is bought for it."""
