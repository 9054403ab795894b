//! The system's allocator, which counts the blocks that it is asked for.
#![allow(unsafe_code)] // There is no other way to be the allocator.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

pub struct Counting;

static BLOCKS: AtomicU64 = AtomicU64::new(0);

/// Blocks that all threads have asked for so far; one that grows is another.
pub fn blocks() -> u64 {
    BLOCKS.load(Ordering::Relaxed)
}

// SAFETY: everything is the system's allocator's. What the trait gives by itself, zeroed and grown blocks, goes through `alloc`.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BLOCKS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps to the same contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps to the same contract, and the block is the system's.
        unsafe { System.dealloc(block, layout) }
    }
}
