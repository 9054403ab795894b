//! Lengths of frames as they are written on the command line, and as results have them.

use anyhow::{Context, Result, bail, ensure};
use causeway_results::traffic::{Sizes, Traffic};
use serde::Deserialize;

/// What lengths are called that the streams of a description have themselves.
pub const OWN: &str = "lengths of the description";

/// The parts of a list: commas in braces do not divide it.
///
/// # Errors
/// If there is nothing between two commas, or a brace is missing.
pub fn divide(list: &str) -> Result<Vec<String>> {
    let (mut parts, mut depth) = (vec![String::new()], 0_u32);
    for letter in list.chars() {
        depth = match letter {
            '{' => depth + 1,
            '}' => depth.checked_sub(1).with_context(|| format!("'{list}': there is no {{ to a }}"))?,
            _ => depth,
        };
        match parts.last_mut() {
            Some(part) if letter != ',' || depth > 0 => part.push(letter),
            _ => parts.push(String::new()),
        }
    }
    ensure!(depth == 0, "'{list}': a }} is missing");
    ensure!(
        parts.iter().all(|part| !part.trim().is_empty()),
        "'{list}': there is nothing between two commas"
    );
    Ok(parts)
}

/// Lengths: bytes, a name, or what a description has behind `size.`; with what they are called in results.
///
/// # Errors
/// What is wrong.
pub fn size(text: &str) -> Result<(String, Sizes)> {
    let text = text.trim();
    match text {
        "imix" => return Ok((text.to_owned(), Sizes::simple_imix())),
        "csit-imix" => return Ok((text.to_owned(), Sizes::csit_imix())),
        _ => {}
    }
    if text.contains('=') {
        let sizes = written(text).with_context(|| format!("'{text}'"))?;
        return Ok((name(&sizes), sizes));
    }
    match text.parse() {
        Ok(length) => Ok((name(&Sizes::Fixed(length)), Sizes::Fixed(length))),
        Err(_) => bail!(
            "'{text}' is no frame length: write bytes, imix, csit-imix, or as in a description, such as \
             sweep = {{ first = 64, last = 1518, step = 2 }} or mix = {{ genome = \"7a4A1g\", custom = {{ A = 594 }} }}"
        ),
    }
}

/// As in a description.
fn written(text: &str) -> Result<Sizes> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Stream {
        size: Sizes,
    }
    let text = text.strip_prefix("size.").unwrap_or(text);
    let Stream { size } = toml::from_str(&format!("size.{text}"))?;
    size.sequence().map_err(anyhow::Error::msg)?;
    Ok(size)
}

/// What results call lengths.
fn name(sizes: &Sizes) -> String {
    match sizes {
        Sizes::Fixed(length) => format!("{length} bytes"),
        Sizes::Sweep { first, last, step } => format!("{first} to {last} bytes by {step}"),
        Sizes::Mix { genome, custom } => {
            let custom: Vec<String> =
                custom.iter().map(|(letter, length)| format!("{letter} = {length}")).collect();
            let custom = if custom.is_empty() { String::new() } else { format!(" ({})", custom.join(", ")) };
            format!("mix {genome}{custom}")
        }
    }
}

/// Lengths in full, for the results, so that others can offer the same: of a mix the genome and its custom letters (RFC 6985).
pub fn in_full(traffic: &Traffic) -> String {
    let mut all: Vec<String> = Vec::new();
    for stream in &traffic.streams {
        let text = stream.size.to_string();
        let same = traffic.streams.iter().all(|other| other.size == stream.size);
        let text = if same { text } else { format!("{}: {text}", stream.name) };
        if !all.contains(&text) {
            all.push(text);
        }
    }
    let mean = traffic.mean_length().unwrap_or_default();
    format!("{}; mean {mean:.1} bytes", all.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_results::traffic::{Family, Stream};

    #[test]
    fn a_list_is_divided_at_commas_outside_of_braces() {
        let parts = |list: &str| divide(list).expect("parts");
        assert_eq!(parts("64,imix"), ["64", "imix"]);
        let sweep = "sweep = { first = 64, last = 128, step = 8 }";
        assert_eq!(parts(&format!("64, {sweep},1518")), ["64", &format!(" {sweep}"), "1518"]);
        for wrong in ["64,,128", "", "mix = { genome = \"a\"", "64}"] {
            assert!(divide(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn lengths_have_one_syntax_and_names_of_their_own() {
        for (text, named, first) in [
            ("64", "64 bytes", 64),
            ("imix", "imix", 64),
            ("csit-imix", "csit-imix", 64),
            (" sweep = { first = 64, last = 1518, step = 2 }", "64 to 1518 bytes by 2", 64),
            ("size.mix = { genome = \"7b4A1g\", custom = { A = 594 } }", "mix 7b4A1g (A = 594)", 128),
            ("mix = { genome = \"bg\" }", "mix bg", 128),
        ] {
            let (name, sizes) = size(text).expect(text);
            assert_eq!((name.as_str(), sizes.sequence().expect("lengths")[0]), (named, first));
            // What results say of them is how they are written.
            assert_eq!(size(&sizes.to_string()).expect("again").1, sizes, "{text}");
        }
        let refused = |text: &str| format!("{:#}", size(text).expect_err("refused"));
        assert!(refused("big").contains("'big' is no frame length: write bytes, imix, csit-imix"));
        assert!(refused("mix = { genome = \"7x\" }").contains("'x' is no letter of a genome"));
        assert!(refused("sweep = { first = 64, last = 60, step = 1 }").contains("has no lengths"));
        assert!(refused("swoop = 3").contains("unknown variant `swoop`"));
        assert!(refused("fixed = 64\nseed = 3").contains("seed"), "nothing else is taken");
    }

    #[test]
    fn lengths_in_full_are_those_of_each_stream() {
        let stream = |name: &str, size| Stream::new(name, Family::Ipv4, size);
        let streams = vec![stream("a", Sizes::csit_imix()), stream("b", Sizes::csit_imix())];
        let traffic = Traffic { streams, ..Traffic::simple(64) };
        assert_eq!(
            in_full(&traffic),
            "mix = { genome = \"28a16A4g\", custom = { A = 570 } }; mean 353.8 bytes"
        );
        let streams = vec![stream("a", Sizes::Fixed(64)), stream("b", Sizes::Fixed(128))];
        let traffic = Traffic { streams, ..Traffic::simple(64) };
        assert_eq!(in_full(&traffic), "a: fixed = 64; b: fixed = 128; mean 96.0 bytes");
    }
}
