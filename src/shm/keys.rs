//! Keys of the caller's private memory, for readers whose component needs them: a page of the caller's pool
//! that the others see, a slot for each region.
//!
//! A region is known to readers by a number: its slot in the upper 16 bits, and an offset in the lower 48. So
//! who reads from the middle adds to the number as it would to an address.

use std::num::NonZeroU64;
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};

use super::cma;
use super::locator::Kind;
use super::pool::PAGE;
use super::reading::Ways;
use super::smsc::{Component, KEY_BYTES};

/// What the page holds of a region.
#[repr(C)]
struct Slot {
    /// Its address in the owner.
    start: u64,
    _unused: u64,
    key: [u8; KEY_BYTES],
}

const _: () = assert!(size_of::<Slot>() == 64);

/// Slots of a page.
const SLOTS: usize = PAGE / size_of::<Slot>();
/// The slot of the number that peers probe with, which stays.
const PROBE: usize = 0;
/// Where a region's number has its slot.
const SHIFT: u32 = 48;

/// Whether a group needs a page for keys.
pub fn needed(ways: Ways) -> bool {
    ways.smsc.is_some_and(|component| component.key_bytes() > 0)
}

/// What kind of component the caller's memory can be read by, and the keys of a new group, where there are
/// any. `secret`: address and contents of the number that peers probe with.
///
/// # Safety
/// Where keys are [`needed`], `page` is a page of the caller's that lasts longer than they, and that nobody
/// else writes.
pub unsafe fn begin(ways: Ways, secret: Option<(u64, [u8; cma::SECRET])>, page: *mut u8) -> (Kind, Option<Keys>) {
    match ways.smsc.zip(secret) {
        None => (Kind::None, None),
        Some(_) if !needed(ways) => (Kind::Free, None),
        Some((component, (address, secret))) => {
            let keys = Keys { component, page, registered: Mutex::new([None; SLOTS]) };
            match keys.add(address as *const u8, secret.len()) {
                Some(PROBE) => (Kind::Keyed, Some(keys)),
                _ => (Kind::None, None),
            }
        }
    }
}

/// The caller's keys for one group.
#[derive(Debug)]
pub struct Keys {
    component: &'static dyn Component,
    page: *mut u8,
    registered: Mutex<[Option<NonNull<u8>>; SLOTS]>,
}

// SAFETY: the page is the caller's, and written under the lock; the component may be called by any thread.
unsafe impl Send for Keys {}
// SAFETY: as above.
unsafe impl Sync for Keys {}

impl Keys {
    /// Registers a region; its number. `None`: no slot is free, or it cannot be registered.
    pub fn expose(&self, start: *const u8, bytes: usize) -> Option<NonZeroU64> {
        NonZeroU64::new((self.add(start, bytes)? as u64) << SHIFT)
    }

    fn add(&self, start: *const u8, bytes: usize) -> Option<usize> {
        let mut registered = self.registered.lock().unwrap_or_else(PoisonError::into_inner);
        let index = registered.iter().position(Option::is_none)?;
        let registration = self.component.register(start, bytes)?;
        registered[index] = Some(registration);
        // SAFETY: a slot of the caller's page that no reader knows of; a registration begins with its key.
        unsafe {
            let slot = self.page.cast::<Slot>().add(index);
            (&raw mut (*slot).start).write(start as u64);
            let key = (&raw mut (*slot).key).cast::<u8>();
            registration.as_ptr().copy_to_nonoverlapping(key, self.component.key_bytes().min(KEY_BYTES));
        }
        Some(index)
    }

    /// Nobody reads the region of this number any more.
    pub fn conceal(&self, number: NonZeroU64) {
        let index = (number.get() >> SHIFT) as usize;
        let mut registered = self.registered.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(registration) = registered.get_mut(index).and_then(Option::take) {
            // SAFETY: made by `add`, and taken out here.
            unsafe { self.component.deregister(registration) };
        }
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        let registered = self.registered.get_mut().unwrap_or_else(PoisonError::into_inner);
        for registration in registered.iter_mut().filter_map(Option::take) {
            // SAFETY: as in `conceal`.
            unsafe { self.component.deregister(registration) };
        }
    }
}

/// The address and the key of what a number from another member stands for. The key of the number that peers
/// probe with: [`probe_key`].
///
/// # Safety
/// `page` is the member's page of keys, and the region of the number is exposed.
pub unsafe fn find(page: *const u8, number: u64) -> (u64, [u8; KEY_BYTES]) {
    let (index, offset) = ((number >> SHIFT) as usize % SLOTS, number & ((1 << SHIFT) - 1));
    // SAFETY: in the page; published by what carried the number.
    let slot = unsafe { page.cast::<Slot>().add(index).read() };
    (slot.start.wrapping_add(offset), slot.key)
}

/// The key of the number that peers probe with.
///
/// # Safety
/// `page` is the page of keys of a member that has said hello.
pub unsafe fn probe_key(page: *const u8) -> [u8; KEY_BYTES] {
    // SAFETY: by the caller's promise.
    unsafe { find(page, (PROBE as u64) << SHIFT) }.1
}
