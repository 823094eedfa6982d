"""The worker: what runs functions on a cluster. Sent there as files; the host's own Python and nothing else runs it.

It listens inside its workload, trusts whoever knows its secret, and never imports the code of those who call: each call
runs in a process of its own, forked from one that has just imported that code.

    serving ──▶ zygote (an environment) ──fork──▶ code (one state of the files, imported) ──fork──▶ child (one call)
"""
