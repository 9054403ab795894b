//! Packets that each come from the general allocator.

use causeway_packet::{Batch, Fifo, Packet, pool};

#[test]
fn they_are_as_those_of_the_pool() {
    let config = pool::Config { mode: pool::Mode::Allocator, ..pool::Config::default() };
    pool::init(config).expect("the first to ask");
    let (mut batch, mut fifo) = (Batch::new(), Fifo::with_capacity(0));
    for round in 0..20u8 {
        let frames = vec![[round; 60]; 300];
        assert_eq!(batch.extend_copies(frames.iter().map(|frame| &frame[..])), 256);
        for packet in batch.iter_mut() {
            // The allocator gives memory again as it was left.
            assert_eq!((packet.data(), packet.headroom()), (&[round; 60][..], Packet::HEADROOM));
            assert_eq!((packet.timestamp_ns(), packet.transmit_tag(), packet.anno_u8(47)), (0, None, 0));
            packet.set_anno_u8(47, 9);
            packet.set_transmit_tag(7);
            let copy = packet.copy().expect("memory");
            assert_eq!((copy.data(), copy.anno_u8(47), copy.transmit_tag()), (packet.data(), 9, None));
        }
        assert_eq!(fifo.push_batch(&mut batch, 200), 200);
        batch.clear();
        assert_eq!(fifo.truncate(150 + usize::from(round)), 50 - usize::from(round));
        assert_eq!(fifo.pop_batch(&mut batch, 300), 150 + usize::from(round));
        batch.clear();
    }
    fifo.push(Packet::new().expect("memory"));
    assert_eq!(pool::shared_free(), 32_768, "no frame of the pool was touched");
}
