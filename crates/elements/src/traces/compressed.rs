//! Files that are compressed by gzip (RFC 1952) or bzip2: known by how they begin when they are read, by the end of their name
//! when they are written.

use bzip2::bufread::MultiBzDecoder;
use bzip2::write::BzEncoder;
use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Error, ErrorKind, Write};

/// How bytes are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    Gzip,
    Bzip2,
    /// By compress(1), which is not read.
    Lzw,
}

impl Method {
    /// How what begins with `start` is compressed.
    fn of(start: &[u8]) -> Option<Method> {
        match start {
            [0x1f, 0x8b, _, ..] => Some(Method::Gzip),
            [0x1f, 0x9d, _, ..] => Some(Method::Lzw),
            // Then the first block, or the end.
            [b'B', b'Z', b'h', b'0'..=b'9', b'1', b'A', b'Y', b'&', b'S', b'Y', ..]
            | [b'B', b'Z', b'h', b'0'..=b'9', 0x17, ..] => Some(Method::Bzip2),
            _ => None,
        }
    }

    /// How the file called `name` is to be compressed.
    fn of_name(name: &str) -> Option<Method> {
        [(".gz", Method::Gzip), (".bz2", Method::Bzip2), (".Z", Method::Lzw)]
            .iter()
            .find_map(|(end, method)| name.ends_with(end).then_some(*method))
    }
}

fn lzw() -> Error {
    Error::new(ErrorKind::Unsupported, "compressed by compress, use gzip or bzip2")
}

/// What is in `file`, if it is compressed: uncompressed. The error gives the file back.
pub(super) fn uncompressed(file: File) -> io::Result<Result<Box<dyn BufRead + Send>, BufReader<File>>> {
    let mut bytes = BufReader::new(file);
    Ok(match Method::of(bytes.fill_buf()?) {
        None => Err(bytes),
        Some(Method::Gzip) => Ok(Box::new(BufReader::new(MultiGzDecoder::new(bytes)))),
        Some(Method::Bzip2) => Ok(Box::new(BufReader::new(MultiBzDecoder::new(bytes)))),
        Some(Method::Lzw) => return Err(lzw()),
    })
}

/// An error if a file called `name` would have to be compressed in a way that is not known.
pub(super) fn check_name(name: &str) -> Result<(), causeway_engine::Error> {
    match Method::of_name(name) {
        Some(Method::Lzw) => Err(causeway_engine::Error::caused_by(lzw()).of(name)),
        _ => Ok(()),
    }
}

/// What is written into `file`, whose name is `name`: compressed, if the name says so. It is whole once it is dropped.
pub(super) fn compress(name: &str, file: File) -> Box<dyn Write + Send> {
    match Method::of_name(name) {
        Some(Method::Gzip) => Box::new(GzEncoder::new(file, flate2::Compression::default())),
        Some(Method::Bzip2) => Box::new(BzEncoder::new(file, bzip2::Compression::default())),
        _ => Box::new(file),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    /// What is read from a file of those bytes; as far as it can be.
    fn read(test: &str, bytes: &[u8]) -> (Vec<u8>, Option<ErrorKind>) {
        let path = std::env::temp_dir().join(format!("causeway-compressed-{test}-{}", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        let mut all = Vec::new();
        let error = match uncompressed(File::open(&path).unwrap()) {
            Ok(Ok(mut reader)) => reader.read_to_end(&mut all).err().map(|e| e.kind()),
            Ok(Err(mut plain)) => plain.read_to_end(&mut all).err().map(|e| e.kind()),
            Err(e) => Some(e.kind()),
        };
        let _ = std::fs::remove_file(&path);
        (all, error)
    }

    fn written(name: &str, bytes: &[u8]) -> Vec<u8> {
        let path = std::env::temp_dir().join(format!("causeway-compress-{}-{name}", std::process::id()));
        compress(name, File::create(&path).unwrap()).write_all(bytes).unwrap();
        let all = std::fs::read(&path).unwrap();
        let _ = std::fs::remove_file(&path);
        all
    }

    #[test]
    fn what_is_compressed_is_read_again() {
        let text: Vec<u8> = (0..50_000u32).flat_map(|n| n.to_string().into_bytes()).collect();
        for (name, start) in [("a.gz", &b"\x1f\x8b"[..]), ("a.bz2", b"BZh"), ("a.txt", b"0123")] {
            let bytes = written(name, &text);
            assert!(bytes.starts_with(start) && (bytes.len() < text.len()) == (name != "a.txt"));
            assert_eq!(read(name, &bytes), (text.clone(), None), "{name}");
            // Several, one after the other, are one.
            let twice = [&bytes[..], &bytes].concat();
            assert_eq!(read(name, &twice).0.len(), 2 * text.len());
            if name != "a.txt" {
                let (got, error) = read(name, &bytes[..bytes.len() / 2]);
                assert!(error.is_some() && got.len() < text.len() && text.starts_with(&got), "{name}");
                assert_eq!(read(name, &written(name, b"")), (vec![], None));
            }
        }
        assert_eq!(read("z", b"\x1f\x9d\x90abc").1, Some(ErrorKind::Unsupported));
        assert!(check_name("x.Z").is_err() && check_name("x.gz").is_ok());
    }
}
