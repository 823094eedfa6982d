"""The Master's end of the trunk: streams of Accesses and, through them, of hosts."""
