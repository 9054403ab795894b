//! Flow codes: which input ports of an element reach which output ports.
//!
//! A code such as `x/x`, `xy/x`, `#/#` or `#/[^#]` gives every port a set of labels; a packet can go from an input
//! to an output if their sets meet. A letter is a label, `#` is a label of the port's own number, `[…]` is a set
//! and `[^…]` all labels but these. The last port's set repeats. The resolution of agnostic ports and searches
//! through the graph for notifiers use them.

/// The labels of one port: those listed, or all but those listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Labels {
    letters: u128,
    number: bool,
    inverted: bool,
}

/// A parsed flow code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowCode {
    inputs: Vec<Labels>,
    outputs: Vec<Labels>,
}

impl FlowCode {
    /// Parses a code; `None` if it is none. Without a slash it holds for inputs and outputs.
    pub fn parse(code: &str) -> Option<Self> {
        let (inputs, outputs) = code.split_once('/').unwrap_or((code, code));
        Some(Self { inputs: side(inputs)?, outputs: side(outputs)? })
    }

    /// Whether packets from this input may leave by this output.
    pub fn connects(&self, input: usize, output: usize) -> bool {
        let a = self.inputs[input.min(self.inputs.len() - 1)];
        let b = self.outputs[output.min(self.outputs.len() - 1)];
        let same = input == output;
        match (a.inverted, b.inverted) {
            (false, false) => a.letters & b.letters != 0 || (a.number && b.number && same),
            (false, true) => a.letters & !b.letters != 0 || (a.number && !(b.number && same)),
            (true, false) => b.letters & !a.letters != 0 || (b.number && !(a.number && same)),
            // Each leaves out finitely many labels.
            (true, true) => true,
        }
    }

    /// The outputs, of so many, that this input reaches.
    pub fn outputs_from(&self, input: usize, outputs: usize) -> impl Iterator<Item = usize> + '_ {
        (0..outputs).filter(move |&output| self.connects(input, output))
    }

    /// The inputs, of so many, that reach this output.
    pub fn inputs_to(&self, output: usize, inputs: usize) -> impl Iterator<Item = usize> + '_ {
        (0..inputs).filter(move |&input| self.connects(input, output))
    }
}

fn side(text: &str) -> Option<Vec<Labels>> {
    let mut ports = vec![];
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let mut labels = Labels { letters: 0, number: false, inverted: false };
        if byte != b'[' {
            add_label(&mut labels, byte)?;
        } else {
            let mut first = true;
            loop {
                match rest.next()? {
                    b']' => break,
                    b'^' if first => labels.inverted = true,
                    other => add_label(&mut labels, other)?,
                }
                first = false;
            }
        }
        ports.push(labels);
    }
    (!ports.is_empty()).then_some(ports)
}

fn add_label(labels: &mut Labels, byte: u8) -> Option<()> {
    match byte {
        b'#' => labels.number = true,
        letter if letter.is_ascii_alphabetic() => labels.letters |= 1 << letter,
        _ => return None,
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reached(code: &str, input: usize, outputs: usize) -> Vec<usize> {
        FlowCode::parse(code).unwrap().outputs_from(input, outputs).collect()
    }

    #[test]
    fn codes() {
        assert_eq!(reached("x/x", 3, 2), [0, 1]);
        assert_eq!(reached("xy/x", 0, 2), [0, 1]);
        assert_eq!(reached("xy/x", 1, 2), [] as [usize; 0]);
        assert_eq!(reached("#/#", 1, 3), [1]);
        assert_eq!(reached("#/[^#]", 1, 3), [0, 2]);
        assert_eq!(reached("[^#]/#", 1, 3), [0, 2]);
        assert_eq!(reached("x/[xy]z", 0, 3), [0]);
        assert_eq!(reached("x/[^x]y", 0, 2), [] as [usize; 0]);
        assert_eq!(reached("[^a]/[^b]", 0, 1), [0]);
        assert_eq!(FlowCode::parse("#/[^#]").unwrap().inputs_to(0, 3).collect::<Vec<_>>(), [1, 2]);
        for bad in ["", "x/", "[x", "x/1", "x/[x/y]"] {
            assert_eq!(FlowCode::parse(bad), None, "{bad}");
        }
    }
}
