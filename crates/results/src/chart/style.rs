//! Colours, in light and in dark.
//!
//! Shapes carry the light colours as attributes, which every viewer knows. The style block replaces them where the reader
//! prefers dark; it finds the shapes by those attributes, so a colour must stand in these tables to be used.

use plotters::style::RGBColor;
use std::fmt::Write;

/// A colour on a light and on a dark background.
pub struct Colour {
    pub light: RGBColor,
    dark: RGBColor,
}

const fn colour(light: u32, dark: u32) -> Colour {
    const fn rgb(hex: u32) -> RGBColor {
        RGBColor((hex >> 16) as u8, (hex >> 8) as u8, hex as u8)
    }
    Colour { light: rgb(light), dark: rgb(dark) }
}

pub const BACKGROUND: Colour = colour(0xffffff, 0x0d1117);
/// Text and axes.
pub const INK: Colour = colour(0x1f2328, 0xe6edf3);
/// Lines at the ticks.
pub const GRID: Colour = colour(0xd8dee4, 0x30363d);
/// Lines and bars, in the order of their use; neighbours differ for the colour-blind too (after Paul Tol's schemes).
const SERIES: [Colour; 10] = [
    colour(0x4477aa, 0x77aadd),
    colour(0xee6677, 0xff8899),
    colour(0x228833, 0x55bb66),
    colour(0xaa3377, 0xdd77aa),
    colour(0xbb7700, 0xeebb55),
    colour(0x887766, 0xbbaa99),
    colour(0x222277, 0xaaaaff),
    colour(0x33aacc, 0x99ddff),
    colour(0x009988, 0x44ccbb),
    colour(0x777777, 0xaaaaaa),
];

/// The colour of the `number`-th line or bar.
pub fn series(number: usize) -> &'static Colour {
    &SERIES[number % SERIES.len()]
}

/// Whether the `number`-th line is dashed: its colour is that of another.
pub fn is_dashed(number: usize) -> bool {
    number >= SERIES.len()
}

fn hex(RGBColor(red, green, blue): RGBColor) -> String {
    format!("#{red:02X}{green:02X}{blue:02X}")
}

/// The style block.
pub fn block() -> String {
    format!("<style>\n@media (prefers-color-scheme: dark) {{\n{}}}\n</style>\n", rules(""))
}

/// What makes shapes dark; `before` begins each selector.
pub fn rules(before: &str) -> String {
    let mut text = String::new();
    for Colour { light, dark } in [&BACKGROUND, &INK, &GRID].into_iter().chain(&SERIES) {
        let (light, dark) = (hex(*light), hex(*dark));
        for property in ["fill", "stroke"] {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{before}[{property}=\"{light}\"] {{ {property}: {dark} }}");
        }
    }
    text
}
