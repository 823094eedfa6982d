"""One file per budget; each measures us and a peer or a physical limit in the same run (`make bench B=name`)."""
