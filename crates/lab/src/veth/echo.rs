//! Echo requests (RFC 792), and how long their answers take.
//!
//! Whoever asks looks for the answer without sleeping: to be woken for it would take longer than the router.

use anyhow::{Context, Result, bail};
use causeway_packet::checksum::checksum;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrV4, SocketFlags, SocketType, ipproto, recv, sendto,
    socket_with,
};
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// After so long an answer is taken for lost.
const LOST: Duration = Duration::from_millis(100);
const ECHO: u8 = 8;
const ECHO_REPLY: u8 = 0;
/// Octets of an echo request: the header, and as much data as ping(8) sends.
const LEN: usize = 8 + 56;

/// Round trips to `to` in microseconds, in the order of the requests, of which there are `count`, `pause` apart; those that
/// are lost have none.
///
/// # Errors
/// If there can be no such socket, or nothing can be sent.
pub fn round_trips_us(to: Ipv4Addr, count: usize, pause: Duration) -> Result<Vec<f64>> {
    let socket =
        socket_with(AddressFamily::INET, SocketType::RAW, SocketFlags::NONBLOCK, Some(ipproto::ICMP))
            .context("cannot open a socket for echo requests")?;
    let mut trips = Vec::new();
    for number in 0..count {
        std::thread::sleep(pause);
        let sent = Instant::now();
        let request = request(number as u16);
        sendto(&socket, &request, SendFlags::empty(), &SocketAddrV4::new(to, 0))
            .with_context(|| format!("cannot send an echo request to {to}"))?;
        trips.extend(answer(&socket, number as u16, sent)?);
    }
    Ok(trips)
}

/// When the answer came, in microseconds since `sent`; `None` if it did not.
fn answer(socket: &OwnedFd, number: u16, sent: Instant) -> Result<Option<f64>> {
    let mut bytes = [0; 1 << 8];
    while sent.elapsed() < LOST {
        match recv(socket, &mut bytes, RecvFlags::empty()) {
            Ok((len, _)) => {
                let came = sent.elapsed();
                if is_answer(&bytes[..len], number) {
                    return Ok(Some(came.as_secs_f64() * 1e6));
                }
            }
            Err(rustix::io::Errno::AGAIN) => std::hint::spin_loop(),
            Err(error) => bail!("cannot receive echo replies: {error}"),
        }
    }
    Ok(None)
}

fn id() -> u16 {
    std::process::id() as u16
}

fn request(number: u16) -> [u8; LEN] {
    let mut bytes = [0; LEN];
    bytes[0] = ECHO;
    bytes[4..6].copy_from_slice(&id().to_be_bytes());
    bytes[6..8].copy_from_slice(&number.to_be_bytes());
    let sum = checksum(&bytes);
    bytes[2..4].copy_from_slice(&sum.to_be_bytes());
    bytes
}

/// Whether a packet, from its IPv4 header on, answers the request of this number.
fn is_answer(packet: &[u8], number: u16) -> bool {
    let header = packet.first().map_or(0, |first| usize::from(first & 15) * 4);
    let Some(icmp) = packet.get(header..header + 8) else { return false };
    icmp[0] == ECHO_REPLY && icmp[4..6] == id().to_be_bytes() && icmp[6..8] == number.to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_whole_and_answers_known() {
        let asked = request(7);
        assert_eq!(checksum(&asked), 0);
        let mut answer = vec![0x45; 20];
        answer.extend(asked);
        assert!(!is_answer(&answer, 7), "it is a request");
        answer[20] = ECHO_REPLY;
        assert!(is_answer(&answer, 7) && !is_answer(&answer, 8));
        assert!((0..28).all(|len| !is_answer(&answer[..len], 7)), "what is cut is none");
    }

    #[test]
    fn the_own_host_answers() {
        if !rustix::process::geteuid().is_root() {
            return eprintln!("skipped: needs root for raw sockets");
        }
        let trips = round_trips_us(Ipv4Addr::LOCALHOST, 3, Duration::ZERO).expect("trips");
        assert!(trips.len() == 3 && trips.iter().all(|&us| us > 0.0), "{trips:?}");
    }
}
