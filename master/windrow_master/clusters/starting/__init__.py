"""Starting clusters, the first time and again."""
