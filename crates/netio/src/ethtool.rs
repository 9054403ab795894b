//! Features of a device by their names, as `ethtool -k` lists them; for those that have no request of their own.

use crate::interface::ethtool;
use crate::{Error, ErrorKind, Result};
use std::os::fd::OwnedFd;

const ETHTOOL_GSTRINGS: u32 = 0x1b;
const ETHTOOL_GSSET_INFO: u32 = 0x37;
const ETHTOOL_GFEATURES: u32 = 0x3a;
const ETHTOOL_SFEATURES: u32 = 0x3b;
/// The set of strings that names the features.
const ETH_SS_FEATURES: u32 = 4;
/// Bytes of a string.
const STRING_LEN: usize = 32;
/// Words a block of 32 features has in the answer (available, requested, active, fixed) and in a change (which, to
/// what).
const GET_WORDS: usize = 4;
const SET_WORDS: usize = 2;

/// Sends a request made of words, with room for the answer, and returns that in its place.
fn ask(fd: &OwnedFd, name: &str, mut words: Vec<u32>) -> Result<Vec<u32>> {
    // SAFETY: the callers make room for what the command of their first word has the kernel write.
    unsafe { ethtool(fd, name, words.as_mut_ptr().cast()) }?;
    Ok(words)
}

/// The number of the feature called `feature`, and how many there are.
fn number(fd: &OwnedFd, name: &str, feature: &str) -> Result<(usize, usize)> {
    // Command, padding, the mask of sets in two words, and room for one length.
    let info = ask(fd, name, vec![ETHTOOL_GSSET_INFO, 0, 1 << ETH_SS_FEATURES, 0, 0])?;
    let count = info[4] as usize;
    let mut request = vec![ETHTOOL_GSTRINGS, ETH_SS_FEATURES, count as u32];
    request.resize(request.len() + count * STRING_LEN / 4, 0);
    let answer = ask(fd, name, request)?;
    let bytes: Vec<u8> = answer[3..].iter().flat_map(|w| w.to_ne_bytes()).collect();
    let called = |string: &[u8]| string.split(|&b| b == 0).next() == Some(feature.as_bytes());
    let found = bytes.chunks_exact(STRING_LEN).position(called);
    let missing = || Error::new(ErrorKind::Unsupported, format!("this kernel knows no feature {feature}"));
    Ok((found.ok_or_else(missing)?, count))
}

/// Whether a feature is active.
///
/// # Errors
/// [`ErrorKind::Unsupported`] if the kernel does not know it; what ethtool's ioctl says.
pub(crate) fn is_active(fd: &OwnedFd, name: &str, feature: &str) -> Result<bool> {
    const ACTIVE: usize = 2;
    let (bit, count) = number(fd, name, feature)?;
    let blocks = count.div_ceil(32);
    let mut request = vec![ETHTOOL_GFEATURES, blocks as u32];
    request.resize(2 + blocks * GET_WORDS, 0);
    let answer = ask(fd, name, request)?;
    Ok(answer[2 + bit / 32 * GET_WORDS + ACTIVE] >> (bit % 32) & 1 == 1)
}

/// Switches a feature; the driver may leave it as it is.
///
/// # Errors
/// As [`is_active`]; [`ErrorKind::Privilege`].
pub(crate) fn set(fd: &OwnedFd, name: &str, feature: &str, on: bool) -> Result<()> {
    let (bit, count) = number(fd, name, feature)?;
    let blocks = count.div_ceil(32);
    let mut request = vec![ETHTOOL_SFEATURES, blocks as u32];
    request.resize(2 + blocks * SET_WORDS, 0);
    let block = 2 + bit / 32 * SET_WORDS;
    request[block] = 1 << (bit % 32);
    request[block + 1] = u32::from(on) << (bit % 32);
    ask(fd, name, request).map(drop)
}
