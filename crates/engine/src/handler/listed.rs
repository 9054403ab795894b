//! The handlers of an element, one a line, each with what may be done with it.
//!
//! Where the defaults are Click's, so are the order, the marks behind the names (`b` for a button, `c` for a switch, `.` for what
//! hardly changes, `%` for bytes as they are, `D` for an older name) and which there are: programs that show a router are
//! written against that list. The file has a mark that Click does not show, `P`: there is such a handler only where input 0
//! is pulled.

use super::COMMON;
use crate::access::Access;
use crate::conf::Defaults;
use crate::core::Core;
use crate::spec::HandlerDoc;

/// A class a line with its handlers in Click's order, newest first, as `handlers` shows them there.
const CLICK: &str = include_str!("click.txt");

/// The handlers of Click whose values become arguments, so that `config` shows them, by class. There `config` stays as it was
/// written when any other setting is changed.
const FOLLOWED: [(&str, &str); 13] = [
    ("IP6Encap IPEncap EtherRewrite", "src dst"),
    ("SetIPDSCP SetIP6DSCP", "dscp"),
    ("SetIPECN", "ecn"),
    (
        "SetVLANAnno VLANEncap EtherVLANEncap EtherVlanEncap",
        "vlan_tci vlan_id vlan_pcp native_vlan ethertype",
    ),
    ("EtherEncap", "src dst ethertype etht"),
    ("UDPIPEncap UDPIP6Encap", "src sport dst dport"),
    ("CoDel", "codel_interval codel_target"),
    ("RED", "min_thresh max_thresh max_p"),
    (
        "Shaper BandwidthShaper RatedUnqueue BandwidthRatedUnqueue RatedSplitter BandwidthRatedSplitter",
        "rate",
    ),
    ("SimpleQueue Queue FullNoteQueue NotifierQueue ThreadSafeQueue FrontDropQueue", "capacity"),
    ("MixedQueue QuickNoteQueue MSQueue", "capacity"),
    ("RandomBitErrors", "p_bit_error error_kind"),
    ("PullSwitch SimplePullSwitch", "switch"),
];

/// Whether Click's `config` of an element of `class` shows what is written to `handler`.
pub(super) fn config_follows(class: &str, handler: &str) -> bool {
    let is_one = |names: &str, name: &str| names.split(' ').any(|one| one == name);
    FOLLOWED.iter().any(|(classes, handlers)| is_one(classes, class) && is_one(handlers, handler))
}

/// Those that every element has there, in that order, with their marks; `config` has marks of its own in some classes.
const CLICK_COMMON: [&str; 5] = ["handlers", "ports", "config", "class", "name"];

/// The names and marks of the handlers of `class` in Click, if it has any that are more than usual.
fn of_click(class: &str) -> Option<Vec<(&'static str, &'static str)>> {
    let handlers = CLICK.lines().find_map(|line| line.strip_prefix(class)?.strip_prefix(": "))?;
    Some(handlers.split(", ").filter_map(|handler| handler.split_once(' ')).collect())
}

/// Whether Click shows the value of this handler of `class` byte by byte, without an end of line of its own.
pub fn is_raw_in_click(class: &str, handler: &str) -> bool {
    let marks = of_click(class).into_iter().flatten().find(|(name, _)| *name == handler);
    marks.is_some_and(|(_, marks)| marks.contains('%'))
}

/// Whether in Click only those of `class` that pull have this handler.
pub(super) fn is_of_pullers_in_click(class: &str, handler: &str) -> bool {
    let marks = of_click(class).into_iter().flatten().find(|(name, _)| *name == handler);
    marks.is_some_and(|(_, marks)| marks.contains('P'))
}

/// The text of the `handlers` of the element at `node`.
pub(super) fn text(core: &Core, node: usize) -> String {
    let own = own(core, node);
    let click = core.context.defaults == Defaults::Click;
    let has_config = core.nodes[node].spec.handlers.iter().any(|h| h.name == "config");
    let Some(known) = of_click(core.nodes[node].spec.name).filter(|_| click) else {
        let common = common(core, node).map(|h| {
            let written = if has_config && h.name == "config" { "w" } else { "" };
            let calm = if CLICK_COMMON.contains(&h.name) { "." } else { "" };
            format!("{}\tr{written}{calm}\n", h.name)
        });
        return own.into_iter().map(line).chain(common).collect();
    };
    let is_numbered = |name: &str| name.ends_with(|c: char| c.is_ascii_digit());
    let is_known = |name: &str| known.iter().any(|(known, _)| *known == name);
    let numbered = own.iter().filter(|(name, _)| is_numbered(name) && !is_known(name)).cloned().map(line);
    let is_own = |name: &&(&str, &str)| own.iter().any(|(own, _)| own == name.0);
    let listed =
        known.iter().filter(is_own).map(|(name, marks)| format!("{name}\t{}\n", marks.trim_end_matches('P')));
    let config = known.iter().find(|(name, _)| *name == "config").map_or("r.", |(_, marks)| marks);
    let common = CLICK_COMMON.iter().map(|name| {
        let marks = if *name == "config" { config } else { "r." };
        format!("{name}\t{marks}\n")
    });
    numbered.chain(listed).chain(common).collect()
}

/// The handlers of the element's class and of itself, newest first.
fn own(core: &Core, node: usize) -> Vec<(String, Access)> {
    let n = &core.nodes[node];
    let listed = |h: &&HandlerDoc| !h.private && h.name != "config" && super::has(core, n, h.name);
    let class = n.spec.handlers.iter().rev().filter(listed);
    let class = class.flat_map(|h| h.names(n.numbered()).map(move |name| (name, h.access)));
    let own = n.element.iter().flat_map(|e| e.own_handlers().into_iter().rev());
    own.chain(class).collect()
}

/// The handlers that every element has and the class does not answer itself; Click has only some of them.
fn common(core: &Core, node: usize) -> impl Iterator<Item = &'static HandlerDoc> {
    let spec = core.nodes[node].spec;
    let click = core.context.defaults == Defaults::Click;
    let of_class = move |c: &HandlerDoc| c.name != "config" && spec.handlers.iter().any(|h| h.name == c.name);
    let known = move |c: &HandlerDoc| !click || CLICK_COMMON.contains(&c.name);
    COMMON.iter().rev().filter(move |c| !of_class(c) && known(c))
}

fn line((name, access): (String, Access)) -> String {
    let r = if access.reads() { "r" } else { "" };
    let w = if access.writes() { "w" } else { "" };
    let param = if access.takes_parameters() { "+" } else { "" };
    format!("{name}\t{r}{w}{param}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_of_the_list_is_a_class_with_names_and_marks_and_the_config_is_last() {
        for text in CLICK.lines() {
            let (class, _) = text.split_once(": ").unwrap();
            let handlers = of_click(class).unwrap();
            assert_eq!(handlers.len(), text.matches(", ").count() + 1, "{text}");
            let marked = |(_, marks): &(&str, &str)| marks.chars().all(|c| "rw+.%$UDbcP".contains(c));
            assert!(handlers.iter().all(marked), "{text}");
            assert_eq!(handlers.last().map(|(name, _)| *name), Some("config"), "{text}");
        }
        assert!(is_raw_in_click("InfiniteSource", "data"));
        assert!(!is_raw_in_click("InfiniteSource", "length") && !is_raw_in_click("Source", "data"));
    }
}
