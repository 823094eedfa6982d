"""The compute challenge on this host: OpenCL, a prover in a child process, all cards at once."""
