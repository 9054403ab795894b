//! 802.1Q tags. The view starts behind the tag protocol identifier, as the Ethernet payload does.

use super::Malformed;

/// Length of a tag: control information and the EtherType of what follows.
pub const TAG_LEN: usize = 4;

/// The VLAN identifier's bits in the control information.
const VID_MASK: u16 = 0x0fff;

header! {
    /// A view of a tag: the four bytes behind an EtherType of 0x8100 or 0x88a8, and the payload.
    pub struct Vlan, fields in field, TAG_LEN;
    /// Tag control information: priority (3 bits), drop eligible (1), VLAN identifier (12).
    TCI @ 0: u16 => tci, set_tci;
    /// EtherType of the payload, or the next tag's protocol identifier.
    ETHER_TYPE @ 2: u16 => ether_type, set_ether_type;
}

impl<T: AsRef<[u8]>> Vlan<T> {
    /// A view of `buf`.
    ///
    /// # Errors
    /// [`Malformed::Truncated`] below 4 bytes.
    #[inline]
    pub fn new_checked(buf: T) -> Result<Self, Malformed> {
        Self::fits(&buf)?;
        Ok(Self { buf })
    }

    /// VLAN identifier, 0 to 4095; 0 is a priority tag (802.1Q table 9-2).
    #[inline]
    pub fn vid(&self) -> u16 {
        self.tci() & VID_MASK
    }

    /// Priority code point, 0 to 7.
    #[inline]
    pub fn priority(&self) -> u8 {
        (self.tci() >> 13) as u8
    }

    /// Drop eligible indicator.
    #[inline]
    pub fn drop_eligible(&self) -> bool {
        self.tci() & 0x1000 != 0
    }

    /// What follows the tag.
    #[inline]
    pub fn payload(&self) -> &[u8] {
        self.buf.as_ref().get(TAG_LEN..).unwrap_or_default()
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> Vlan<T> {
    /// Writes the VLAN identifier, its lower 12 bits, and leaves priority and drop eligibility.
    #[inline]
    pub fn set_vid(&mut self, vid: u16) {
        self.set_tci(self.tci() & !VID_MASK | vid & VID_MASK);
    }
}
