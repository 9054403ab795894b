//! Instructions, from the arguments of the configuration.

use super::text::shift;
use causeway_lang::values::unsigned_32;

/// What an instruction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    /// Waits for the start.
    Initial,
    /// Waits for so many steps.
    WaitStep,
    /// Waits for a time, or a step.
    WaitTime,
    /// Prints to a file or standard output.
    Print { unquote: bool, newline: bool },
    /// Prints a handler's value to standard error.
    Read { unquote: bool },
    /// Writes a handler.
    Write { unquote: bool },
    /// Sets a variable.
    Set { unquote: bool },
    /// Sets a variable once, at the start.
    Init { unquote: bool, export: bool },
    /// A place to go to.
    Label,
    /// Goes to another instruction.
    Goto,
    /// Ends the script with a value.
    Return { unquote: bool },
    /// Ends the script.
    End(Ending),
}

/// How a script ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// As `exit` says.
    Exit,
    /// As `end` says, or the end of the instructions.
    End,
    /// The router is asked to stop.
    Stop,
    /// With an error.
    Error { unquote: bool },
}

/// Where a jump leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// To an instruction.
    At(usize),
    /// To an end.
    End(Ending),
}

/// An instruction.
#[derive(Clone, Debug)]
pub(super) struct Instruction {
    pub op: Op,
    /// Number of steps, or of the variable.
    pub number: usize,
    /// Steps that were done, of those to wait for.
    pub done: usize,
    /// Where a jump leads.
    pub target: Target,
    /// What it works on.
    pub text: String,
}

/// Instructions and variables.
#[derive(Clone, Debug, Default)]
pub(super) struct Program {
    pub instructions: Vec<Instruction>,
    /// Names and values.
    pub variables: Vec<(String, String)>,
}

/// The variable that `return` sets.
pub(super) const RETURNED: &str = "_";

impl Program {
    /// The program of these arguments; `manager`: of a driver script. Errors go to `wrong`.
    pub fn new(arguments: Vec<String>, manager: bool, wrong: &mut dyn FnMut(String)) -> Program {
        let mut program = Program::default();
        for mut argument in arguments {
            let word = shift(&mut argument);
            if !word.is_empty() && program.instruction(&word, argument).is_none() {
                wrong(format!("syntax error at '{word}'"));
            }
        }
        program.settle_jumps(wrong);
        if program.instructions.is_empty() && manager {
            program.add(Op::WaitStep, 1, String::new());
        }
        let end = if manager { Ending::Stop } else { Ending::End };
        program.add(Op::End(end), 0, String::new());
        program
    }

    fn add(&mut self, op: Op, number: usize, text: String) {
        let waits = matches!(op, Op::Initial | Op::WaitStep | Op::WaitTime);
        if self.instructions.is_empty() && !waits {
            self.add(Op::Initial, 0, String::new());
        }
        self.instructions.push(Instruction { op, number, done: 0, target: Target::At(0), text });
    }

    /// Adds an instruction; `None` if it is not as it should be.
    fn instruction(&mut self, word: &str, mut text: String) -> Option<()> {
        let op = op(word, &text)?;
        let mut number = 0;
        match op {
            Op::WaitStep => number = if text.is_empty() { 1 } else { unsigned_32(&text).ok()? as usize },
            Op::Set { .. } | Op::Init { .. } => {
                let name = shift(&mut text);
                if name.is_empty() || text.is_empty() && matches!(op, Op::Set { .. }) {
                    return None;
                }
                number = self.add_variable(&name);
            }
            Op::Return { .. } => number = self.add_variable(RETURNED),
            Op::Label => {
                let name = shift(&mut text);
                if name.is_empty() || !text.is_empty() {
                    return None;
                }
                text = name;
            }
            Op::End(Ending::Exit | Ending::End | Ending::Stop) if !text.is_empty() => return None,
            Op::Goto if word == "loop" && !text.is_empty() => return None,
            Op::Print { .. } if matches!(word, "save" | "append") => {
                let handler = shift(&mut text);
                let file = if text.is_empty() { "-" } else { &text };
                text = format!("{}{file} {handler}", if word == "save" { ">" } else { ">>" });
            }
            _ => {}
        }
        self.add(op, number, text);
        Some(())
    }

    fn settle_jumps(&mut self, wrong: &mut dyn FnMut(String)) {
        for i in 0..self.instructions.len() {
            let mut text = self.instructions[i].text.clone();
            if self.instructions[i].op == Op::Goto && !text.is_empty() {
                let label = shift(&mut text);
                match self.label(&label) {
                    Some(target) => self.instructions[i].target = target,
                    None => wrong(format!("no such label '{label}'")),
                }
                self.instructions[i].text = text;
            }
        }
    }

    /// Where a label leads.
    pub fn label(&self, label: &str) -> Option<Target> {
        let of_script = self.instructions.iter().position(|i| i.op == Op::Label && i.text == label);
        of_script.map(Target::At).or(match (op(label, ""), label) {
            (Some(Op::End(ending)), _) => Some(Target::End(ending)),
            (_, "begin" | "loop") => Some(Target::At(0)),
            _ => None,
        })
    }

    /// The number of a variable.
    pub fn variable(&self, name: &str) -> Option<usize> {
        self.variables.iter().position(|(own, _)| own == name)
    }

    /// The number of a variable, which is made if there is none.
    pub fn add_variable(&mut self, name: &str) -> usize {
        self.variable(name).unwrap_or_else(|| {
            self.variables.push((name.to_owned(), String::new()));
            self.variables.len() - 1
        })
    }
}

/// The instruction called `word` with `text` behind it.
fn op(word: &str, text: &str) -> Option<Op> {
    Some(match word {
        "append" | "save" | "print" | "printq" => Op::Print { unquote: word == "printq", newline: true },
        "printn" | "printnq" => Op::Print { unquote: word == "printnq", newline: false },
        "end" => Op::End(Ending::End),
        "exit" => Op::End(Ending::Exit),
        "stop" => Op::End(Ending::Stop),
        "error" | "errorq" => Op::End(Ending::Error { unquote: word == "errorq" }),
        "export" | "exportq" => Op::Init { unquote: word == "exportq", export: true },
        "init" | "initq" => Op::Init { unquote: word == "initq", export: false },
        "goto" | "loop" => Op::Goto,
        "label" => Op::Label,
        "pause" | "wait_step" | "wait_stop" => Op::WaitStep,
        "wait" if text.is_empty() => Op::WaitStep,
        "wait" | "wait_for" | "wait_time" => Op::WaitTime,
        "read" | "readq" => Op::Read { unquote: word == "readq" },
        "return" | "returnq" => Op::Return { unquote: word == "returnq" },
        "set" | "setq" => Op::Set { unquote: word == "setq" },
        "write" | "writeq" => Op::Write { unquote: word == "writeq" },
        _ => return None,
    })
}
