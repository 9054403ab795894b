//! A software router: Click graphs over AF_XDP, beside the kernel's own stack.
fn main() {}
