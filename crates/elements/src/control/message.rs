//! Message.

use causeway_engine::prelude::*;
use causeway_engine::value::Value;
use causeway_engine::{Defaults, Scope};
use causeway_lang::values;

pub(crate) static SPEC: Spec = Spec {
    name: "Message",
    category: "control",
    summary: "says something about the configuration when it is read",
    ports: "0/0",
    doc: "Says MESSAGE below the line of the configuration that it stands in: what who runs the configuration should know. \
          A WARNING goes by the log as other warnings do; with ERROR the router does not start. Click does not start after a \
          WARNING either, and nor does `click`; the manual does not say so, and `causeway` starts.",
    args: &[
        required("MESSAGE", "string", "what to say"),
        optional("TYPE", "`MESSAGE`, `WARNING` or `ERROR`", "how bad it is; default MESSAGE"),
    ],
    example: "Message(\"there is nothing to see here\"); InfiniteSource(LIMIT 1, STOP true) -> Discard;",
    see: &["Script"],
    build,
    ..Spec::DEFAULT
};

struct Message;

/// A word, or a text in quotes.
struct Text(String);

impl Value for Text {
    fn parse(text: &str, _: &Scope<'_>) -> Result<Self, Error> {
        values::string(text).map(Text).map_err(Error::caused_by)
    }

    fn placeholder() -> Self {
        Text(String::new())
    }
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let message = conf.required::<Text>("MESSAGE").0;
    let kind = conf.optional("TYPE", Text("MESSAGE".to_owned())).0;
    conf.finish()?;
    match kind.as_str() {
        "MESSAGE" => conf.note(&message),
        "WARNING" => {
            conf.warn(&message);
            if conf.env.defaults == Defaults::Click {
                conf.error("unspecified error");
            }
        }
        "ERROR" => conf.error(message),
        _ => conf.error("unrecognized message type"),
    }
    if conf.errors().is_empty() { Ok(Box::new(Message)) } else { Err(Invalid) }
}

impl Element for Message {}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::Harness;

    #[test]
    fn it_says_what_it_is_told_and_only_errors_fail() {
        for (config, said) in [
            ("\"a b\"", "element :: Message: a b"),
            ("x, TYPE MESSAGE", "element :: Message: x"),
            ("x, WARNING", "warning: element :: Message: x"),
        ] {
            assert_eq!(Harness::new(&SPEC, config, 0, 0).unwrap().warnings(), [said], "{config}");
        }
        for (config, error) in [
            ("x, ERROR", "x"),
            ("x, FOO", "unrecognized message type"),
            ("", "MESSAGE: required argument missing"),
        ] {
            assert_eq!(Harness::new(&SPEC, config, 0, 0).err().unwrap(), [error], "{config}");
        }
    }
}
