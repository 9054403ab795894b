//! The rule by which the right to forward is had, lost and had again. No clock, no thread: `now_ns` is handed in.

use super::{State, Voucher};
use std::collections::BTreeMap;

/// A loss of which nobody was told at once is told after this long.
const PATIENCE_NS: u64 = 1_000_000_000;

/// Something to be logged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct News {
    /// A stable name of what happened.
    pub code: &'static str,
    /// What happened, in a line for people.
    pub text: String,
}

/// What comes of it under `up` when the right does not stand.
pub const LEFT_TO_KERNEL: &str = "the kernel forwards everything";
/// The code of a voucher that has not been heard of.
pub const SILENT: &str = "silent";
/// The code of the right's return.
pub const FORWARDING: &str = "forwarding";

#[derive(Debug)]
struct Objection {
    what: String,
    /// It is expected to pass at once, and not worth a line if it does.
    passing: bool,
}

/// Who vouches, who objects, and whether the right stands.
pub struct Account {
    /// What comes of it when the right does not stand.
    without: &'static str,
    vouchers: Vec<Voucher>,
    objections: BTreeMap<&'static str, Objection>,
    /// Until when it was given last.
    until_ns: u64,
    /// When the words were looked at last.
    settled_ns: u64,
    /// When it was seen that the right is lost; none while it stands.
    lost_ns: Option<u64>,
    /// Since when it was lost then.
    since_ns: u64,
    /// Words from before this time do not count: somebody has been silent since, and may have been confused.
    anew_ns: u64,
    /// Whether somebody was told that it is lost.
    told: bool,
    /// Whether it was ever had: that it is not at the start is no news.
    begun: bool,
    news: Vec<News>,
}

impl Account {
    /// The right is not had at first.
    pub fn new(now_ns: u64, without: &'static str) -> Account {
        Account {
            without,
            vouchers: Vec::new(),
            objections: BTreeMap::new(),
            until_ns: 0,
            settled_ns: now_ns,
            lost_ns: Some(now_ns),
            since_ns: now_ns,
            anew_ns: 0,
            told: false,
            begun: false,
            news: Vec::new(),
        }
    }

    /// From now on nothing is forwarded without this one's word.
    pub fn add(&mut self, voucher: Voucher) {
        self.vouchers.push(voucher);
    }

    /// Nothing is forwarded until this is withdrawn. One that is `passing` is not told unless it stays.
    pub fn object(&mut self, code: &'static str, what: String, passing: bool) {
        let before = self.objections.insert(code, Objection { what: what.clone(), passing });
        if !passing && before.is_none_or(|b| b.what != what || b.passing) {
            self.told = true;
            self.tell(code, format!("{what}: {}", self.without));
        }
    }

    /// An objection has been met.
    pub fn withdraw(&mut self, code: &'static str) {
        if self.objections.remove(code).is_some_and(|o| !o.passing) {
            self.tell(code, "no longer so".to_owned());
        }
    }

    /// Until when packets may be forwarded, as of now; none if they may not.
    pub fn settle(&mut self, now_ns: u64) -> Option<u64> {
        self.settled_ns = now_ns;
        let deadline_ns = self.vouchers.iter().map(Voucher::until_ns).min().unwrap_or(0);
        // It has run out also if nobody has looked for too long, whoever vouches now: the process was stopped, say.
        let ran_out = self.lost_ns.is_none() && self.until_ns <= now_ns;
        if deadline_ns <= now_ns || ran_out {
            self.anew_ns = now_ns;
            // It is gone since it ran out, not since somebody looks.
            self.lose(if ran_out { self.until_ns } else { now_ns }, now_ns);
            self.tell_silent(now_ns);
            return None;
        }
        if !self.objections.is_empty() {
            self.lose(now_ns, now_ns);
            return None;
        }
        if self.vouchers.iter().any(|v| (v.word_ns)() < self.anew_ns) {
            return None;
        }
        self.begun = true;
        if self.lost_ns.take().is_some() {
            self.tell_regained(now_ns.saturating_sub(self.since_ns));
        }
        self.until_ns = deadline_ns;
        Some(deadline_ns)
    }

    /// How the router is, as of now.
    pub fn state(&self, now_ns: u64) -> State {
        let left_to_kernel = |why: &str| format!("{}: {why}", self.without);
        // Who should have looked at the words is not well.
        let forgotten = now_ns.saturating_sub(self.settled_ns) >= PATIENCE_NS;
        match (State::of(&self.vouchers, now_ns), self.objections.values().next()) {
            (None, _) if forgotten => State { well: false, text: left_to_kernel("this router stands still") },
            (Some(silent), _) => State { text: left_to_kernel(&silent.text), ..silent },
            (None, Some(objection)) => State::well(&left_to_kernel(&objection.what)),
            (None, None) if self.lost_ns.is_some() => State::well(&left_to_kernel("all have to speak anew")),
            (None, None) => State::well(FORWARDING),
        }
    }

    /// What has happened since the last call.
    pub fn take_news(&mut self) -> Vec<News> {
        std::mem::take(&mut self.news)
    }

    fn tell(&mut self, code: &'static str, text: String) {
        self.news.push(News { code, text });
    }

    fn lose(&mut self, since_ns: u64, now_ns: u64) {
        if self.lost_ns.is_none() {
            self.since_ns = since_ns;
        }
        let lost_ns = *self.lost_ns.get_or_insert(now_ns);
        if !self.told && now_ns.saturating_sub(lost_ns) >= PATIENCE_NS {
            let standing: Vec<_> = self.objections.iter().map(|(code, o)| (*code, o.what.clone())).collect();
            for (code, what) in standing {
                self.told = true;
                self.tell(code, format!("{what}: {}", self.without));
            }
        }
    }

    /// Says who has not been heard of, once a loss.
    fn tell_silent(&mut self, now_ns: u64) {
        if !self.begun || std::mem::replace(&mut self.told, true) {
            return;
        }
        let silent = self.vouchers.iter().filter(|v| v.until_ns() <= now_ns);
        let names: Vec<String> = silent.map(|v| v.name.clone()).collect();
        let text = match names.as_slice() {
            [] => format!("this router stood still: {}", self.without),
            names => format!("nothing was heard of {}: {}", names.join(", "), self.without),
        };
        self.tell(SILENT, text);
    }

    fn tell_regained(&mut self, after_ns: u64) {
        if std::mem::take(&mut self.told) {
            self.tell(FORWARDING, format!("forwarding again, after {:.1} s", after_ns as f64 / 1e9));
        }
    }
}

impl Voucher {
    /// Until when its latest word counts.
    pub(super) fn until_ns(&self) -> u64 {
        (self.word_ns)().saturating_add(self.term.as_nanos() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    const TERM_NS: u64 = 900_000_000;

    fn voucher(name: &str, word: &Arc<AtomicU64>) -> Voucher {
        let (term, word) = (Duration::from_nanos(TERM_NS), word.clone());
        Voucher { name: name.to_owned(), word_ns: Arc::new(move || word.load(Ordering::Relaxed)), term }
    }

    /// An account with two vouchers that have spoken at `now_ns`, and their words.
    fn standing(now_ns: u64) -> (Account, [Arc<AtomicU64>; 2]) {
        let words = [0; 2].map(|_| Arc::new(AtomicU64::new(now_ns)));
        let mut account = Account::new(now_ns, LEFT_TO_KERNEL);
        account.add(voucher("worker 0", &words[0]));
        account.add(voucher("the follower", &words[1]));
        assert_eq!(account.settle(now_ns), Some(now_ns + TERM_NS));
        assert_eq!(account.take_news(), [], "the start is not told");
        (account, words)
    }

    fn codes(account: &mut Account) -> Vec<&'static str> {
        account.take_news().iter().map(|news| news.code).collect()
    }

    #[test]
    fn without_vouchers_there_is_no_right() {
        assert_eq!(Account::new(5, LEFT_TO_KERNEL).settle(5), None);
    }

    #[test]
    fn the_oldest_word_counts() {
        let (mut account, [first, _second]) = standing(1_000);
        first.store(5_000, Ordering::Relaxed);
        assert_eq!(account.settle(6_000), Some(1_000 + TERM_NS));
    }

    #[test]
    fn who_is_silent_is_not_well_and_who_may_not_forward_is() {
        let (mut account, [first, second]) = standing(0);
        assert_eq!(account.state(1), State::well("forwarding"));
        account.object("test", "a reason".to_owned(), false);
        assert_eq!(account.state(1), State::well("the kernel forwards everything: a reason"));
        first.store(TERM_NS, Ordering::Relaxed);
        let silent = account.state(TERM_NS);
        assert!(!silent.well && silent.text.ends_with("nothing was heard of the follower"), "{silent:?}");
        assert_eq!(account.settle(TERM_NS), None);
        account.withdraw("test");
        second.store(TERM_NS, Ordering::Relaxed);
        let anew = account.state(TERM_NS + 1);
        assert!(anew.well && anew.text.ends_with("all have to speak anew"), "{anew:?}");
        assert!(account.settle(TERM_NS + 1).is_some());
        assert_eq!(account.state(TERM_NS + 2), State::well("forwarding"));
        [first, second].iter().for_each(|word| word.store(TERM_NS + PATIENCE_NS, Ordering::Relaxed));
        let forgotten = account.state(TERM_NS + 1 + PATIENCE_NS);
        assert!(!forgotten.well && forgotten.text.ends_with("this router stands still"), "{forgotten:?}");
    }

    #[test]
    fn silence_ends_the_right_and_only_new_words_bring_it_back() {
        let (mut account, [first, second]) = standing(0);
        let late = TERM_NS + 7;
        first.store(late - 1, Ordering::Relaxed);
        assert_eq!(account.settle(late), None);
        let news = account.take_news();
        assert!(
            news.len() == 1 && news[0].code == SILENT && news[0].text.contains("of the follower:"),
            "{news:?}"
        );
        assert_eq!(account.settle(late + 1), None);
        assert_eq!(codes(&mut account), [""; 0], "told once");
        // The other's word is from before the loss: what it vouches for may be as old.
        second.store(late + 2, Ordering::Relaxed);
        assert_eq!(account.settle(late + 3), None);
        first.store(late + 4, Ordering::Relaxed);
        assert_eq!(account.settle(late + 5), Some(late + 2 + TERM_NS));
        assert_eq!(codes(&mut account), [FORWARDING]);
    }

    #[test]
    fn a_keeper_that_stood_still_notices_that_the_right_has_run_out() {
        let (mut account, words) = standing(0);
        let late = TERM_NS * 3;
        // They have spoken before it looks again.
        words.iter().for_each(|word| word.store(late - 1, Ordering::Relaxed));
        assert_eq!(account.settle(late), None, "they may have been confused");
        assert_eq!(codes(&mut account), [SILENT]);
        words.iter().for_each(|word| word.store(late + 1, Ordering::Relaxed));
        assert_eq!(account.settle(late + 2), Some(late + 1 + TERM_NS));
        let again = account.take_news();
        let since_it_ran_out = format!("forwarding again, after {:.1} s", (TERM_NS * 2) as f64 / 1e9);
        assert_eq!((again[0].code, again[0].text.as_str()), (FORWARDING, since_it_ran_out.as_str()));
        // Also if somebody has something to object first.
        words.iter().for_each(|word| word.store(late * 2 - 1, Ordering::Relaxed));
        account.object("looking", "rules are read".to_owned(), true);
        assert_eq!(account.settle(late * 2), None);
        account.withdraw("looking");
        assert_eq!(account.settle(late * 2 + 1), None, "they may have been confused");
        assert_eq!(codes(&mut account), [SILENT]);
    }

    #[test]
    fn an_objection_ends_the_right_at_once_until_it_is_withdrawn() {
        let (mut account, _) = standing(0);
        account.object("nft", "a rule".to_owned(), false);
        account.object("xfrm", "a policy".to_owned(), false);
        assert_eq!(account.settle(10), None);
        account.withdraw("nft");
        assert_eq!(account.settle(20), None);
        account.withdraw("xfrm");
        assert_eq!(account.settle(30), Some(TERM_NS), "nobody was silent");
        assert_eq!(codes(&mut account), ["nft", "xfrm", "nft", "xfrm", FORWARDING]);
        account.withdraw("never raised");
        assert_eq!(codes(&mut account), [""; 0]);
    }

    #[test]
    fn what_passes_at_once_is_not_told_and_what_stays_is() {
        let (mut account, _) = standing(0);
        account.object("looking", "rules are read".to_owned(), true);
        assert_eq!(account.settle(1), None);
        account.withdraw("looking");
        assert!(account.settle(6).is_some());
        assert_eq!(codes(&mut account), [""; 0]);
        account.object("looking", "rules are read".to_owned(), true);
        account.settle(10);
        account.settle(10 + PATIENCE_NS);
        account.settle(20 + PATIENCE_NS);
        assert_eq!(codes(&mut account), ["looking"]);
        // What was passing and is certain now is told.
        account.object("looking", "rules are read".to_owned(), false);
        assert_eq!(codes(&mut account), ["looking"]);
    }
}
