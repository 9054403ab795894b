//! The addresses of a network interface, by getifaddrs(3).

use std::ffi::CStr;
use std::net::{Ipv4Addr, Ipv6Addr};

/// What the kernel has on one interface; of several addresses of a kind the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Addresses {
    /// IPv4 address and prefix length.
    pub ip: Option<(Ipv4Addr, u8)>,
    /// IPv6 address and prefix length.
    pub ip6: Option<(Ipv6Addr, u8)>,
    /// Link-layer address, if it has six bytes.
    pub mac: Option<[u8; 6]>,
}

/// The list that getifaddrs(3) makes.
struct List(*mut libc::ifaddrs);

impl Drop for List {
    fn drop(&mut self) {
        // SAFETY: getifaddrs made the list, and it is freed once.
        unsafe { libc::freeifaddrs(self.0) }
    }
}

/// The addresses of the interface called `name`; `None` if there is no such interface or no telling.
pub fn of_interface(name: &str) -> Option<Addresses> {
    let mut first = std::ptr::null_mut();
    // SAFETY: on success `first` is a list that lives until it is freed, which `List` sees to.
    if unsafe { libc::getifaddrs(&mut first) } != 0 {
        return None;
    }
    let list = List(first);
    let mut found: Option<Addresses> = None;
    let mut next = list.0;
    // SAFETY: every entry of the list, and the name in it, is valid until the list is freed.
    while let Some(entry) = unsafe { next.as_ref() } {
        next = entry.ifa_next;
        // SAFETY: as above; names end in a zero byte.
        if unsafe { CStr::from_ptr(entry.ifa_name) }.to_bytes() == name.as_bytes() {
            add(found.get_or_insert_default(), entry);
        }
    }
    found
}

/// Notes the address of one entry, unless there is one of its kind already.
fn add(found: &mut Addresses, entry: &libc::ifaddrs) {
    if entry.ifa_addr.is_null() {
        return;
    }
    // SAFETY: the address is not null, and every kind of address begins with its family.
    let family = i32::from(unsafe { (*entry.ifa_addr).sa_family });
    match family {
        libc::AF_INET if found.ip.is_none() => {
            let bits = |a: *mut libc::sockaddr| {
                // SAFETY: address and mask of this family are `sockaddr_in`; a mask may be missing.
                unsafe { a.cast::<libc::sockaddr_in>().as_ref() }.map(|a| u32::from_be(a.sin_addr.s_addr))
            };
            let len = bits(entry.ifa_netmask).map_or(32, u32::leading_ones);
            found.ip = bits(entry.ifa_addr).map(|a| (a.into(), len as u8));
        }
        libc::AF_INET6 if found.ip6.is_none() => {
            let bits = |a: *mut libc::sockaddr| {
                // SAFETY: address and mask of this family are `sockaddr_in6`; a mask may be missing.
                unsafe { a.cast::<libc::sockaddr_in6>().as_ref() }
                    .map(|a| u128::from_be_bytes(a.sin6_addr.s6_addr))
            };
            let len = bits(entry.ifa_netmask).map_or(128, u128::leading_ones);
            found.ip6 = bits(entry.ifa_addr).map(|a| (a.into(), len as u8));
        }
        libc::AF_PACKET if found.mac.is_none() => {
            // SAFETY: addresses of this family are `sockaddr_ll`.
            let link = unsafe { &*entry.ifa_addr.cast::<libc::sockaddr_ll>() };
            found.mac = (link.sll_halen == 6).then(|| std::array::from_fn(|i| link.sll_addr[i]));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_has_its_address() {
        let lo = of_interface("lo").unwrap();
        assert_eq!(lo.ip, Some((Ipv4Addr::LOCALHOST, 8)));
        assert_eq!(lo.mac, Some([0; 6]));
        assert_eq!(of_interface("no-such-interface"), None);
    }
}
