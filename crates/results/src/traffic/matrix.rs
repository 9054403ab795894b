//! Which port sends to which, and how much.

use crate::Error;
use serde::{Deserialize, Serialize};

/// A traffic matrix. Ports are counted from 0.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Matrix {
    /// Ports 0 and 1 send to each other, 2 and 3, and so on: bidirectional traffic (RFC 2544 §14).
    #[default]
    OneToOne,
    /// Port 0 sends to 1, 2 to 3, and so on, and none back.
    Unidirectional,
    /// All others send to one port.
    ManyToOne(usize),
    /// Each port sends to all others alike: a full mesh (RFC 2889 §5.1).
    Uniform,
    /// Row i has what port i sends to each port, in any unit.
    Custom(Vec<Vec<u32>>),
}

impl Matrix {
    /// What each of `ports` ports (a row) sends to each (a column), in a unit of the matrix's own.
    ///
    /// # Errors
    /// If the matrix is not one for so many ports, or nobody sends anything.
    pub fn shares(&self, ports: usize) -> Result<Vec<Vec<u32>>, Error> {
        let by = |share: &dyn Fn(usize, usize) -> bool| -> Vec<Vec<u32>> {
            (0..ports).map(|i| (0..ports).map(|j| u32::from(i != j && share(i, j))).collect()).collect()
        };
        let wrong = |what: String| Err(Error::Invalid(format!("matrix: {what}")));
        let shares = match self {
            Matrix::OneToOne | Matrix::Unidirectional if !ports.is_multiple_of(2) => {
                return wrong(format!("{ports} ports cannot be put into pairs"));
            }
            Matrix::OneToOne => by(&|i, j| i / 2 == j / 2),
            Matrix::Unidirectional => by(&|i, j| i % 2 == 0 && j == i + 1),
            Matrix::ManyToOne(to) if *to >= ports => {
                return wrong(format!("there is no port {to}: there are {ports}, counted from 0"));
            }
            Matrix::ManyToOne(to) => by(&|_, j| j == *to),
            Matrix::Uniform => by(&|_, _| true),
            Matrix::Custom(rows) => {
                if rows.len() != ports || rows.iter().any(|row| row.len() != ports) {
                    return wrong(format!("{ports} ports need {ports} rows of {ports} numbers"));
                }
                rows.clone()
            }
        };
        match shares.iter().flatten().any(|&share| share > 0) {
            true => Ok(shares),
            false => wrong("nobody sends anything".to_owned()),
        }
    }
}
