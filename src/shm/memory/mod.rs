// SPDX-License-Identifier: BSD-3-Clause
//! What a team of processes shares, whoever provides it: pools of real processes, or the heap of a test.

pub mod heap;
pub mod layout;

use crate::endpoint::Result;

/// A member of a team, by its place in the group.
pub type Member = usize;

/// Bytes of a page of a pool, whatever the system's are: a control block.
pub const PAGE: usize = 4096;

/// Number of a page in its owner's pool.
pub type Page = u32;

/// What a lease holds when it is handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contents {
    /// Nothing but zeros.
    Zeros,
    /// What somebody has written there before. For what is only read after it has been written.
    Anything,
    /// The same, all of which is written soon.
    Soon,
}

/// The memory that the members of one team share. All of it is written by its owner only, but for a
/// [count](Memory::sleepers).
///
/// # Safety
/// What the functions return must be memory of the lengths said here, aligned to 64 bytes, zeroed when first
/// handed out (if [`Contents::Zeros`]), and valid as long as `self`.
pub unsafe trait Memory: Send + Sync {
    /// The caller's place.
    fn me(&self) -> Member;
    /// Number of members.
    fn size(&self) -> usize;
    /// The control block (4 KiB) of a member: the caller may write its own and reads the others'.
    fn control(&self, member: Member) -> *mut u8;
    /// [`Sleepers`](crate::shm::memory::layout::Sleepers), the same for all members, which each of them may
    /// change. Other teams may count there as well.
    fn sleepers(&self) -> *mut u8;
    /// Reserves `bytes` of the caller's own memory: its first page, and its address. `None`: the budget is
    /// spent, or there is no memory.
    fn lease(&self, bytes: usize, contents: Contents) -> Option<(Page, *mut u8)>;
    /// Maps what a member has leased, so that to use it takes no faults: a hint.
    fn map(&self, _member: Member, _page: Page, _bytes: usize) {}
    /// The caller's view of a lease of `bytes` that another member has published.
    fn view(&self, member: Member, page: Page, bytes: usize) -> *const u8;
    /// Whether members can read each other's private memory; the same for all members.
    fn zero_copy(&self) -> bool;
    /// Whether they can write it, too; the same for all members.
    fn stores(&self) -> bool;
    /// Copies `bytes` at address `from` in another member's private memory to `to`, completely.
    ///
    /// # Safety
    /// `to` holds so many bytes; the member keeps its memory unchanged meanwhile.
    unsafe fn fetch(&self, member: Member, from: u64, to: *mut u8, bytes: usize) -> Result<()>;
    /// Copies `bytes` at `from` to address `to` in another member's private memory, completely.
    ///
    /// # Safety
    /// `from` holds so many bytes; the member keeps its memory, and does not look at it meanwhile.
    unsafe fn store(&self, member: Member, from: *const u8, to: u64, bytes: usize) -> Result<()>;
    /// Whether a member's process is known to be dead. Slow: asked after long waits only.
    fn is_dead(&self, member: Member) -> bool;
}
