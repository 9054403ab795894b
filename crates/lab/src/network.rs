//! A network behind a port: the addresses that its hosts have.

use anyhow::{Context, Result, bail, ensure};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// An IPv4 or IPv6 network. Its hosts are numbered by what is left of the prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(try_from = "String")]
pub struct Network {
    address: IpAddr,
    length: u8,
}

impl Network {
    /// Of a host number, the IPv4 address; `None` in an IPv6 network.
    #[inline]
    pub fn ipv4(self, host: u32) -> Option<Ipv4Addr> {
        match self.address {
            IpAddr::V4(address) => Some(Ipv4Addr::from_bits(address.to_bits() | host)),
            IpAddr::V6(_) => None,
        }
    }

    /// Of a host number, the IPv6 address; `None` in an IPv4 network.
    #[inline]
    pub fn ipv6(self, host: u32) -> Option<Ipv6Addr> {
        match self.address {
            IpAddr::V6(address) => Some(Ipv6Addr::from_bits(address.to_bits() | u128::from(host))),
            IpAddr::V4(_) => None,
        }
    }

    /// The one of IPv4 and the one of IPv6 among these.
    ///
    /// # Errors
    /// If there are two of a family.
    pub fn by_family(networks: &[Network]) -> Result<[Option<Network>; 2]> {
        let mut found = [None; 2];
        for network in networks {
            let other = found[usize::from(network.address.is_ipv6())].replace(*network);
            if let Some(other) = other {
                bail!("{other} and {network} are of the same family: there is one network of each");
            }
        }
        Ok(found)
    }

    /// Fails if hosts up to the number `last` do not fit.
    pub fn check_host(self, last: u32) -> Result<()> {
        let bits = if self.address.is_ipv4() { 32 } else { 128 } - u32::from(self.length);
        let fits = bits >= 32 || u64::from(last) < 1 << bits;
        ensure!(fits, "the network {self} has no host {last}");
        Ok(())
    }
}

impl FromStr for Network {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Network> {
        let (address, length) =
            text.split_once('/').with_context(|| format!("'{text}' has no prefix length"))?;
        let address: IpAddr = address.parse().with_context(|| format!("'{address}' is no address"))?;
        let length: u8 = length.parse().with_context(|| format!("'{length}' is no prefix length"))?;
        let (bits, width) = match address {
            IpAddr::V4(address) => (u128::from(address.to_bits()) << 96, 32),
            IpAddr::V6(address) => (address.to_bits(), 128),
        };
        ensure!(length <= width, "a prefix of {address} has at most {width} bits");
        if bits.checked_shl(u32::from(length)).unwrap_or(0) != 0 {
            bail!("{text} has bits behind its prefix");
        }
        Ok(Network { address, length })
    }
}

impl TryFrom<String> for Network {
    type Error = anyhow::Error;

    fn try_from(text: String) -> Result<Network> {
        text.parse()
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_numbered_from_the_prefix() {
        let four: Network = "198.18.64.0/18".parse().expect("a network");
        assert_eq!(four.ipv4(258), Some(Ipv4Addr::new(198, 18, 65, 2)));
        assert_eq!(four.ipv6(1), None);
        assert!(four.check_host(16_383).is_ok());
        let error = four.check_host(16_384).expect_err("too many").to_string();
        assert_eq!(error, "the network 198.18.64.0/18 has no host 16384");
        let six: Network = "2001:2:0:3::/64".parse().expect("a network");
        assert_eq!(six.ipv6(0x1_0002).map(|a| a.to_string()), Some("2001:2:0:3::1:2".to_owned()));
        assert!(six.check_host(u32::MAX).is_ok());
        assert!("0.0.0.0/0".parse::<Network>().expect("all").check_host(u32::MAX).is_ok());
        assert!("1.2.3.4/32".parse::<Network>().expect("one").check_host(1).is_err());
    }

    #[test]
    fn networks_are_told_apart_by_their_family() {
        let [four, six] = ["198.18.0.0/18", "2001:2::/64"].map(|text| text.parse().expect("a network"));
        assert_eq!(Network::by_family(&[six, four]).expect("one of each"), [Some(four), Some(six)]);
        assert_eq!(Network::by_family(&[six]).expect("one"), [None, Some(six)]);
        let error = Network::by_family(&[four, four]).expect_err("two").to_string();
        assert!(error.contains("same family"), "{error}");
    }

    #[test]
    fn what_is_no_network_is_refused() {
        for text in ["198.18.0.0", "198.18.0.1/24", "198.18.0.0/33", "x/24", "198.18.0.0/x", "2001:2::1/64"] {
            assert!(text.parse::<Network>().is_err(), "{text}");
        }
    }
}
