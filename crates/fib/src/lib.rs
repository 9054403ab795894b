//! Longest-prefix match: the forwarding table, adjacencies and the structures it is compared with.
