//! What the kernel is asked for by calls that take unsafe code.

use causeway_netio::socket_option;
use std::io;
use std::os::fd::BorrowedFd;

/// Asks by way of the crate of the ports.
pub struct Probe;

impl causeway_kernel::Probe for Probe {
    fn socket_option(
        &self,
        socket: BorrowedFd<'_>,
        level: i32,
        name: i32,
        value: &mut [u8],
    ) -> io::Result<usize> {
        socket_option(socket, level, name, value)
    }
}
