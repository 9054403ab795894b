//! What a client sends, taken apart into lines and data.

use std::io::{self, BufRead, BufReader, Read};

/// Bytes of one line at most.
const MAX_LINE: usize = 64 << 10;

/// A client's lines, which end in CR, LF or both, and its data. What ends before it is whole is not given out.
pub struct Input<R> {
    bytes: BufReader<R>,
    /// The last line ended in CR: LF right behind it belongs to the same end.
    after_cr: bool,
}

impl<R: Read> Input<R> {
    /// What comes from `bytes`.
    pub fn new(bytes: R) -> Input<R> {
        Input { bytes: BufReader::new(bytes), after_cr: false }
    }

    /// The next line without its end; `None` when none comes any more, or it is too long.
    pub fn line(&mut self) -> io::Result<Option<String>> {
        self.skip_lf()?;
        let mut line = Vec::new();
        loop {
            let buffer = self.bytes.fill_buf()?;
            if buffer.is_empty() {
                return Ok(None);
            }
            let end = buffer.iter().position(|&b| b == b'\n' || b == b'\r');
            line.extend_from_slice(&buffer[..end.unwrap_or(buffer.len())]);
            if line.len() > MAX_LINE {
                return Ok(None);
            }
            let Some(end) = end else {
                let all = buffer.len();
                self.bytes.consume(all);
                continue;
            };
            self.after_cr = buffer[end] == b'\r';
            self.bytes.consume(end + 1);
            return Ok(Some(String::from_utf8_lossy(&line).into_owned()));
        }
    }

    /// The next `n` bytes.
    pub fn data(&mut self, n: usize) -> io::Result<Option<String>> {
        let mut data = Vec::new();
        if n > 0 {
            self.skip_lf()?;
            self.bytes.by_ref().take(n as u64).read_to_end(&mut data)?;
        }
        Ok((data.len() == n).then(|| String::from_utf8_lossy(&data).into_owned()))
    }

    /// The lines up to one that is `end`, each with an LF, if they are no more than `max` bytes.
    pub fn lines_until(&mut self, end: &str, max: usize) -> io::Result<Option<String>> {
        let mut data = String::new();
        while let Some(line) = self.line()? {
            if line.trim_end() == end {
                return Ok(Some(data));
            }
            data += &line;
            data.push('\n');
            if data.len() > max {
                break;
            }
        }
        Ok(None)
    }

    fn skip_lf(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.after_cr) && self.bytes.fill_buf()?.first() == Some(&b'\n') {
            self.bytes.consume(1);
        }
        Ok(())
    }
}
