"""Takes in what happens to workloads and carries their clusters on."""
