//! The reader of capture files: what it accepts, it must be able to write and read again.
#![no_main]

use causeway_netio::pcap::{Format, Reader, SNAP_LEN, Writer};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Ok(mut reader) = Reader::new(data) else { return };
    let mut read = 0;
    while let Ok(Some(record)) = reader.next_record() {
        read += record.data.len();
        assert!(read <= data.len(), "more bytes came out than went in");
        let mut writer = Writer::new(Vec::new(), Format::PcapNg, record.linktype, SNAP_LEN).expect("memory");
        writer.write(record.timestamp_ns, record.wire_len, record.data).expect("memory");
        let written = writer.into_inner();
        let mut again = Reader::new(&written[..]).expect("our own file");
        let again = again.next_record().expect("our own record").expect("one record");
        assert_eq!((again.timestamp_ns, again.data), (record.timestamp_ns, record.data));
    }
});
