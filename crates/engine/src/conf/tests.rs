//! What is read of arguments, and what is said of them.

use super::*;
use crate::counters::Counters;

static SPEC: Spec = Spec { name: "Sample", ..Spec::DEFAULT };

/// What A and B, which must be given, and C and D, which need not, are in `config`.
fn read(config: &str) -> Result<[u32; 4], Vec<String>> {
    let mut env = Env::new(Counters::new(1, 16, None).unwrap());
    let mut conf = Conf::new(&mut env, "sample".into(), &SPEC, 0, (0, 0), config);
    let read = [conf.required("A"), conf.required("B"), conf.optional("C", 8), conf.keyword("D", 9)];
    if read[0] > read[1] {
        conf.error("A is above B");
    }
    match conf.finish() {
        Ok(()) => Ok(read),
        Err(_) => Err(conf.errors().to_vec()),
    }
}

#[test]
fn an_argument_given_twice_has_its_place_all_the_same_and_the_last_one_counts() {
    for (config, values) in [
        ("1, 2", [1, 2, 8, 9]),
        ("1, 2, 3, D 4", [1, 2, 3, 4]),
        ("1, 2, 3, A 0", [0, 2, 3, 9]),
        ("1, 2, C 5, C 6", [1, 2, 6, 9]),
        ("1, 2, 3, B 5, D 4", [1, 5, 3, 4]),
    ] {
        assert_eq!(read(config), Ok(values), "{config}");
    }
}

#[test]
fn behind_an_argument_read_by_its_keyword_none_is_read_by_its_place() {
    for (config, errors) in [
        ("A 1, 2", &["B: required argument missing", "too many arguments"][..]),
        ("1", &["B: required argument missing"]),
        ("1, 2, 3, 4, E 5", &["E: unknown argument", "too many arguments"]),
    ] {
        assert_eq!(read(config).unwrap_err(), errors, "{config}");
    }
}

#[test]
fn what_arguments_say_is_objected_to_only_if_all_can_be_read() {
    assert_eq!(read("3, 2").unwrap_err(), ["A is above B"]);
    assert_eq!(read("3, 2, x").unwrap_err(), ["C: invalid number"]);
}
