"""The segment log of samples: appended, fsynced in groups, followed by views."""
