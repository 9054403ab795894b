//! Definitions of traffic from files (TOML). What they mean is in `causeway-results`, which models share.

use anyhow::Result;
use causeway_results::traffic::Traffic;

/// Reads a definition.
///
/// # Errors
/// What is wrong, with line and column.
pub fn read(text: &str) -> Result<Traffic> {
    let traffic: Traffic = toml::from_str(text)?;
    traffic.check()?;
    Ok(traffic)
}

/// Frames of one length.
pub fn simple(length: u32) -> Traffic {
    Traffic::simple(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_is_read_or_refused_with_its_place() {
        let text = "seed = 3\nschedule = \"poisson\"\n[[stream]]\nname = \"a\"\nsize.sweep = { first = 64, last = 128, step = 8 }\n";
        let traffic = read(text).expect("a definition");
        assert_eq!((traffic.seed, traffic.streams[0].size.sequence().expect("sizes").len()), (3, 9));
        let error = read("[[stream]]\nname = \"a\"\nsize.fixd = 64\n").expect_err("refused").to_string();
        assert!(error.contains("line 3") && error.contains("fixd"), "{error}");
        assert!(read("").is_err());
        assert_eq!(read("[[stream]]\nname = \"ipv4\"\n").expect("defaults"), simple(64));
    }
}
