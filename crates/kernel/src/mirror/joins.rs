//! IPv6 routes of equal metric that have gateways: the kernel joins them into one with several paths.
//!
//! The kernel goes through the paths in the order in which they came. A path that comes is announced with the whole route, of
//! which the list is a ring: it begins with the new path, or with the first, depending on how the path was added. A path that
//! goes is announced alone, and the others stay in order.

use crate::model::Path;

/// The kernel takes two paths for the same if these agree.
fn same(a: &Path, b: &Path) -> bool {
    (a.ifindex, a.gateway) == (b.ifindex, b.gateway)
}

/// The paths of a route in the kernel's order, after it announced `told`; none if what was known before does not lead there.
pub(super) fn joined(before: &[Path], told: &[Path]) -> Option<Vec<Path>> {
    let new = told.iter().filter(|path| !before.iter().any(|b| same(b, path)));
    let now: Vec<Path> = before.iter().chain(new).copied().collect();
    let start = now.iter().position(|path| Some(path) == told.first())?;
    let ring = now[start..].iter().chain(&now[..start]);
    ring.eq(told).then_some(now)
}

/// The paths that are left when `leaving` go; none if some of those were not there.
pub(super) fn parted(before: &[Path], leaving: &[Path]) -> Option<Vec<Path>> {
    let leaves = |path: &&Path| leaving.iter().any(|l| same(l, path));
    let left: Vec<Path> = before.iter().filter(|path| !leaves(path)).copied().collect();
    (left.len() + leaving.len() == before.len()).then_some(left)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(interfaces: &[u32]) -> Vec<Path> {
        interfaces.iter().map(|&ifindex| Path { ifindex, gateway: None, weight: 1 }).collect()
    }

    #[test]
    fn new_paths_come_last_wherever_the_list_begins() {
        for (before, told, now) in [
            (&[1][..], &[2, 1][..], Some(&[1, 2][..])),
            (&[1, 2], &[3, 1, 2], Some(&[1, 2, 3])),
            (&[1, 2], &[1, 2, 3, 4], Some(&[1, 2, 3, 4])),
            (&[1, 2], &[3, 4, 1, 2], Some(&[1, 2, 3, 4])),
            (&[1, 2, 3], &[2, 3, 1], Some(&[1, 2, 3])),
            (&[1, 2, 3], &[3, 2, 1], None),
            (&[1, 2, 3], &[4, 1, 2], None),
            (&[1, 2], &[3, 2, 1], None),
            (&[1, 2], &[], None),
        ] {
            assert_eq!(joined(&paths(before), &paths(told)), now.map(paths), "{before:?} {told:?}");
        }
        let heavier = [Path { weight: 2, ..paths(&[1])[0] }];
        assert_eq!(joined(&paths(&[1]), &heavier), None, "a weight does not change");
    }

    #[test]
    fn only_paths_that_are_there_can_leave() {
        assert_eq!(parted(&paths(&[1, 2, 3]), &paths(&[2])), Some(paths(&[1, 3])));
        assert_eq!(parted(&paths(&[1, 2]), &paths(&[1, 2])), Some(vec![]));
        assert_eq!(parted(&paths(&[1, 2]), &paths(&[3])), None);
    }
}
