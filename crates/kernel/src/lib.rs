//! A mirror of the kernel's links, addresses, neighbours, next hops, routes and rules.
