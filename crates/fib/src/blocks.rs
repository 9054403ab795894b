//! Which parts of an array are in use: blocks of a few sizes out of one range.

/// Hands out blocks of units from a range, reusing freed ones of the same size first.
///
/// Sizes are few and tables keep their mix of sizes, so the range used stops growing once each size has had its
/// busiest moment; when the range runs out, larger free blocks are split. They are whole again when nothing is in use.
#[derive(Debug)]
pub(crate) struct Blocks {
    start: u32,
    next: u32,
    end: u32,
    /// Units in use.
    used: u32,
    free: Vec<Vec<u32>>,
}

impl Blocks {
    pub(crate) fn new(start: u32, end: u32) -> Self {
        Blocks { start, next: start, end, used: 0, free: Vec::new() }
    }

    /// The first unit of a block of `size`, or `None` if nothing is left.
    pub(crate) fn allocate(&mut self, size: usize) -> Option<u32> {
        let at = self.find(size)?;
        self.used += size as u32;
        Some(at)
    }

    fn find(&mut self, size: usize) -> Option<u32> {
        if let Some(at) = self.free.get_mut(size).and_then(Vec::pop) {
            return Some(at);
        }
        if self.end - self.next >= size as u32 {
            let at = self.next;
            self.next += size as u32;
            return Some(at);
        }
        let larger = (size + 1..self.free.len()).find(|&larger| !self.free[larger].is_empty())?;
        let at = self.free[larger].pop()?;
        self.keep(at + size as u32, larger - size);
        Some(at)
    }

    pub(crate) fn release(&mut self, at: u32, size: usize) {
        self.used -= size as u32;
        if self.used == 0 {
            self.next = self.start;
            self.free.clear();
        } else {
            self.keep(at, size);
        }
    }

    fn keep(&mut self, at: u32, size: usize) {
        if self.free.len() <= size {
            self.free.resize(size + 1, Vec::new());
        }
        self.free[size].push(at);
    }

    /// Units handed out since nothing was in use.
    pub(crate) fn touched(&self) -> usize {
        (self.next - self.start) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_reused_and_split_before_the_range_is_full() {
        let mut blocks = Blocks::new(100, 108);
        let four = blocks.allocate(4).unwrap();
        assert_eq!(blocks.allocate(4), Some(104));
        assert_eq!(blocks.allocate(1), None);
        blocks.release(four, 4);
        assert_eq!(blocks.allocate(3), Some(100));
        assert_eq!(blocks.allocate(1), Some(103));
        assert_eq!(blocks.allocate(1), None);
        assert_eq!(blocks.touched(), 8);
    }

    #[test]
    fn blocks_are_whole_again_when_none_is_in_use() {
        let mut blocks = Blocks::new(100, 108);
        let single: Vec<_> = (0..8).map(|_| blocks.allocate(1).unwrap()).collect();
        for at in single {
            assert_eq!(blocks.allocate(8), None);
            blocks.release(at, 1);
        }
        assert_eq!(blocks.allocate(8), Some(100));
    }
}
