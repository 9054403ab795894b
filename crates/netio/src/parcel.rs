//! How packets of the stack come to user space with what is to be known of them.
//!
//! A program at tcx redirects them to a TAP, where the kernel cuts what is to be cut and finishes checksums on the way. Of a
//! packet nothing gets there but its bytes, and what is in front of its IP header is copied to each part. So what is to be known
//! is put there, behind a *label* that looks like an Ethernet header: twelve bytes of which the first two say how long the luggage
//! is that follows, as a number of this machine, and a type. A VLAN tag that the kernel keeps beside a packet it writes behind
//! the first twelve bytes of what goes to the TAP: so it is found in the label, and belongs into the frame.

use causeway_packet::Packet;

/// Bytes of a label. The last two of them are not used, so that what follows is aligned as the label is.
pub(crate) const LABEL: i16 = 16;
/// Where the length of the luggage is.
pub(crate) const LUGGAGE_AT: i16 = 0;
/// Where the type is, and the tag if there is one.
pub(crate) const TYPE_AT: i16 = ADDRESSES as i16;
/// IEEE 802's first number for experiments, which no packet of the kernel's own bears. Who may send raw frames in the router's namespace can forge it, and could send by the
/// ports themselves.
pub(crate) const TYPE: u16 = 0x88b5;
/// Bytes in front of a frame at most.
pub(crate) const MOST: u32 = 128;

/// Bytes of the two Ethernet addresses.
const ADDRESSES: usize = 12;
const TAG: usize = 4;

/// Takes the label off: the frame has its luggage right in front of it then, and if there is none 16 zeros. False if it is no
/// parcel.
pub(crate) fn unwrap(packet: &mut Packet) -> bool {
    let is_type = |at: usize| packet.data().get(at..at + 2) == Some(&TYPE.to_be_bytes()[..]);
    let tag = match (is_type(ADDRESSES), is_type(ADDRESSES + TAG)) {
        (true, _) => None,
        (_, true) => packet.data()[ADDRESSES..].first_chunk::<TAG>().copied(),
        _ => return false,
    };
    if tag.is_some_and(|tag| !matches!(tag, [0x81, 0x00, ..] | [0x88, 0xa8, ..])) {
        return false;
    }
    let label = LABEL as usize + if tag.is_some() { TAG } else { 0 };
    let luggage = packet.data().first_chunk().map_or(0, |&length| u16::from_ne_bytes(length));
    if packet.len() < label {
        return false;
    }
    if luggage == 0 {
        packet.data_mut()[..label].fill(0);
    }
    if packet.pull(label + usize::from(luggage)).is_err() {
        return false;
    }
    let Some(tag) = tag else { return true };
    // What has a tag has no luggage.
    if luggage > 0 || packet.len() < ADDRESSES || packet.push(TAG).is_err() {
        return false;
    }
    let frame = packet.data_mut();
    frame.copy_within(TAG..TAG + ADDRESSES, 0);
    frame[ADDRESSES..ADDRESSES + TAG].copy_from_slice(&tag);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label(luggage: u16, tag: &[u8]) -> Vec<u8> {
        [&luggage.to_ne_bytes()[..], &[7; 10], tag, &TYPE.to_be_bytes(), &[0; 2]].concat()
    }

    fn unwrapped(bytes: &[u8]) -> Option<(Vec<u8>, [u8; 16])> {
        let mut packet = Packet::from_bytes(bytes).expect("a frame");
        unwrap(&mut packet).then(|| (packet.data().to_vec(), packet.in_front().expect("room")))
    }

    #[test]
    fn a_frame_has_its_luggage_in_front_or_zeros() {
        let frame: Vec<u8> = (100..160).collect();
        let parcel = |head: &[u8], luggage: &[u8]| [head, luggage, &frame].concat();
        assert_eq!(unwrapped(&parcel(&label(0, &[]), &[])), Some((frame.clone(), [0; 16])));
        assert_eq!(unwrapped(&parcel(&label(16, &[]), &[9; 16])), Some((frame.clone(), [9; 16])));
        let tagged = [&frame[..12], &[0x81, 0, 0, 5], &frame[12..]].concat();
        assert_eq!(unwrapped(&parcel(&label(0, &[0x81, 0, 0, 5]), &[])), Some((tagged, [0; 16])));
    }

    #[test]
    fn what_is_no_parcel_is_told() {
        let good = [&label(16, &[])[..], &[9; 16], &[1; 60]].concat();
        assert!(unwrapped(&good).is_some());
        for length in 0..32 {
            assert_eq!(unwrapped(&good[..length]), None, "{length}");
        }
        assert_eq!(unwrapped(&[1; 60]), None, "of another type");
        let both = [&label(16, &[0x81, 0, 3, 4])[..], &[9; 76]].concat();
        assert_eq!(unwrapped(&both), None, "luggage and a tag");
        let tagged = |tag: [u8; 2], rest: usize| {
            unwrapped(&[&label(0, &[tag[0], tag[1], 3, 4])[..], &vec![9; rest]].concat()).is_some()
        };
        let (ctag, stag) = ([0x81, 0x00], [0x88, 0xa8]);
        assert_eq!([ctag, stag].map(|tag| tagged(tag, 12)), [true; 2]);
        assert_eq!([ctag, stag].map(|tag| tagged(tag, 11)), [false; 2], "no addresses");
        assert_eq!([[0x08, 0x00], [0x91, 0x00], [1, 2]].map(|tag| tagged(tag, 60)), [false; 3], "no tag");
    }
}
