"""Takes the steps of jobs: row, audit, events and effects of each in one transaction."""
