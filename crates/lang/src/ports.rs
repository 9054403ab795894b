//! The one-line codes by which a class declares its ports and their processing.

/// The direction of control at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Processing {
    /// The upstream element hands packets over.
    Push,
    /// The downstream element asks for packets.
    Pull,
}

impl Processing {
    /// `push` or `pull`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Push => "push",
            Self::Pull => "pull",
        }
    }
}

/// What a class declares of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Declared {
    /// `h`
    Push,
    /// `l`
    Pull,
    /// `a`: follows its neighbours.
    Agnostic,
}

/// Lowest and highest count of ports; `None` is without bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// At least so many.
    pub low: usize,
    /// At most so many.
    pub high: Option<usize>,
}

impl Range {
    fn parse(text: &str) -> Option<Self> {
        let number = |t: &str| t.parse::<usize>().ok().filter(|&n| n <= crate::MAX_PORT as usize + 1);
        match text.split_once('-') {
            None => number(text).map(|n| Self { low: n, high: Some(n) }),
            Some((low, high)) => {
                let low = if low.is_empty() { 0 } else { number(low)? };
                let high = if high.is_empty() { None } else { Some(number(high)?) };
                (high.is_none_or(|h| h >= low)).then_some(Self { low, high })
            }
        }
    }

    fn clamp(self, used: usize) -> usize {
        used.max(self.low).min(self.high.unwrap_or(usize::MAX))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outputs {
    Range(Range),
    /// As many as inputs, and so many more (`/=`, `/=+`, `/=++`).
    Inputs(usize),
}

/// A parsed port count code: `1`, `1/2`, `1-2/-`, `-/1-`, `1-/=`, `1/=+`. Without a slash it holds for inputs and
/// outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortCount {
    inputs: Range,
    outputs: Outputs,
}

impl PortCount {
    /// Parses a code; `None` if it is none.
    pub fn parse(code: &str) -> Option<Self> {
        let (inputs, outputs) = code.split_once('/').unwrap_or((code, code));
        let inputs = Range::parse(inputs)?;
        let outputs = match outputs.strip_prefix('=') {
            Some(plus) if plus.bytes().all(|b| b == b'+') => Outputs::Inputs(plus.len()),
            Some(_) => return None,
            None => Outputs::Range(Range::parse(outputs)?),
        };
        Some(Self { inputs, outputs })
    }

    /// The numbers of inputs and outputs of an element whose connections use so many: the used numbers, brought
    /// into the declared ranges.
    pub fn count(self, used_inputs: usize, used_outputs: usize) -> (usize, usize) {
        match self.outputs {
            Outputs::Range(outputs) => (self.inputs.clamp(used_inputs), outputs.clamp(used_outputs)),
            Outputs::Inputs(more) => {
                let inputs = self.inputs.clamp(used_inputs.max(used_outputs.saturating_sub(more)));
                (inputs, inputs + more)
            }
        }
    }
}

/// A parsed processing code: a letter a port, `h` push, `l` pull, `a` agnostic; the last letter repeats. Without a
/// slash it holds for inputs and outputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessingCode {
    inputs: Vec<Declared>,
    outputs: Vec<Declared>,
}

impl ProcessingCode {
    /// Parses a code; `None` if it is none.
    pub fn parse(code: &str) -> Option<Self> {
        let (inputs, outputs) = code.split_once('/').unwrap_or((code, code));
        let side = |text: &str| -> Option<Vec<Declared>> {
            let letters: Option<Vec<_>> = text
                .chars()
                .map(|c| match c {
                    'h' => Some(Declared::Push),
                    'l' => Some(Declared::Pull),
                    'a' => Some(Declared::Agnostic),
                    _ => None,
                })
                .collect();
            letters.filter(|l| !l.is_empty())
        };
        Some(Self { inputs: side(inputs)?, outputs: side(outputs)? })
    }

    /// The declaration of an input.
    pub fn input(&self, port: usize) -> Declared {
        self.inputs[port.min(self.inputs.len() - 1)]
    }

    /// The declaration of an output.
    pub fn output(&self, port: usize) -> Declared {
        self.outputs[port.min(self.outputs.len() - 1)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(code: &str, used: (usize, usize)) -> (usize, usize) {
        PortCount::parse(code).unwrap().count(used.0, used.1)
    }

    #[test]
    fn counts() {
        assert_eq!(count("1", (0, 3)), (1, 1));
        assert_eq!(count("1/1-2", (1, 2)), (1, 2));
        assert_eq!(count("-/2-", (4, 0)), (4, 2));
        assert_eq!(count("-6", (9, 3)), (6, 3));
        assert_eq!(count("1-/=", (2, 5)), (5, 5));
        assert_eq!(count("1-3/=+", (2, 5)), (3, 4));
        assert_eq!(count("1-/=++", (1, 2)), (1, 3));
        for bad in ["", "x", "1/2/3", "2-1", "1/=x", "/=", "70000"] {
            assert_eq!(PortCount::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn the_last_letter_repeats() {
        let code = ProcessingCode::parse("a/ah").unwrap();
        assert_eq!(code.input(3), Declared::Agnostic);
        assert_eq!(
            (code.output(0), code.output(1), code.output(7)),
            (Declared::Agnostic, Declared::Push, Declared::Push)
        );
        assert_eq!(ProcessingCode::parse("l").unwrap().output(0), Declared::Pull);
        assert_eq!(ProcessingCode::parse("h/"), None);
    }
}
