"""Files that outlive a workload: artefacts, checkpoints and volumes, and where they are stored."""
