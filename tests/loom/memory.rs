// SPDX-License-Identifier: BSD-3-Clause
//! A team's memory for the model checker, which knows each word and each slot of it.

use coll_rust::endpoint::Result;
use coll_rust::shm::memory::layout::{Control, LINE, LINES, Sleepers, StreamControl};
use coll_rust::shm::memory::{Contents, Member, Memory, Page};
use coll_rust::sync::model::{register_contents, register_word};
use std::mem::offset_of;
use std::sync::Arc;

/// A control block, or a lease, with the addresses that matter registered.
#[repr(C, align(64))]
#[derive(Clone)]
struct Cell([u8; 64]);

/// So many grains of a slot are watched.
const GRAINS: usize = 4;

struct Shared {
    controls: Vec<Vec<Cell>>,
    sleepers: Vec<Cell>,
    /// Of each member: what it may lease, first a stream's control, then a queue.
    leases: Vec<Vec<Vec<Cell>>>,
    /// Bytes of a queue.
    queue: usize,
}

/// What all members share.
#[derive(Clone)]
pub struct Modelled(Arc<Shared>);

/// What a model needs.
pub struct Needs {
    pub members: usize,
    /// Bytes of a slot that are watched as one.
    pub grain: usize,
    /// Bytes of a fragment.
    pub fragment: usize,
    /// Fragments of each queue.
    pub fragments: usize,
    /// Bytes of a short slot, which is watched as a whole.
    pub short: usize,
    /// Short slots.
    pub shorts: usize,
    /// Lines of stream 0 that are used.
    pub lines: Vec<usize>,
    /// Whether members lease a queue for stream 0.
    pub queues: bool,
    /// Members whose lease is refused.
    pub poor: Vec<Member>,
}

/// What lies in queues before anybody writes there.
const LEFT_OVER: u8 = 0xa5;

fn room(bytes: usize, filled: u8) -> Vec<Cell> {
    vec![Cell([filled; 64]); bytes.div_ceil(64)]
}

fn start(block: &[Cell]) -> *mut u8 {
    block.as_ptr().cast::<u8>().cast_mut()
}

impl Modelled {
    /// Registers everything, before the model starts its threads.
    pub fn new(needs: &Needs) -> Modelled {
        let before = needs.shorts * needs.short;
        let bytes = before + needs.fragment * needs.fragments;
        let controls: Vec<_> = (0..needs.members).map(|_| room(4096, 0)).collect();
        let leases: Vec<Vec<_>> = (0..needs.members)
            .map(|m| match needs.queues && !needs.poor.contains(&m) {
                true => vec![room(bytes, LEFT_OVER)],
                false => Vec::new(),
            })
            .collect();
        let sleepers = room(size_of::<Sleepers>(), 0);
        register_word(start(&sleepers), 0);
        for block in &controls {
            let base = start(block);
            let directory = offset_of!(Control, directory);
            for word in [offset_of!(Control, asleep), offset_of!(Control, failed), directory, directory + 8] {
                register_word(base.wrapping_add(word), 0);
            }
            let stream = offset_of!(Control, stream);
            for line in 0..LINES {
                register_word(base.wrapping_add(stream + line * 64 + LINE), 0);
                if needs.lines.contains(&line) {
                    register_contents(base.wrapping_add(stream + line * 64), LINE);
                }
            }
            let read = stream + offset_of!(StreamControl, read);
            register_word(base.wrapping_add(read + LINE), 0);
            register_contents(base.wrapping_add(read), LINE);
        }
        for queue in leases.iter().flatten() {
            for slot in (0..before).step_by(needs.short.max(1)) {
                register_contents(start(queue).wrapping_add(slot), needs.short);
            }
            // Contents that different members read and write at the same time are told apart.
            for fragment in 0..needs.fragments {
                for grain in (0..needs.fragment).step_by(needs.grain).take(GRAINS) {
                    register_contents(
                        start(queue).wrapping_add(before + fragment * needs.fragment + grain),
                        needs.grain,
                    );
                }
            }
        }
        Modelled(Arc::new(Shared { controls, sleepers, leases, queue: bytes }))
    }

    pub fn member(&self, me: Member) -> Box<dyn Memory> {
        Box::new(View { shared: self.0.clone(), me })
    }
}

struct View {
    shared: Arc<Shared>,
    me: Member,
}

// SAFETY: blocks of the right sizes, aligned and zeroed (but for queues), alive as long as any view.
unsafe impl Memory for View {
    fn me(&self) -> Member {
        self.me
    }

    fn size(&self) -> usize {
        self.shared.controls.len()
    }

    fn control(&self, member: Member) -> *mut u8 {
        start(&self.shared.controls[member])
    }

    fn sleepers(&self) -> *mut u8 {
        start(&self.shared.sleepers)
    }

    fn lease(&self, bytes: usize, _: Contents) -> Option<(Page, *mut u8)> {
        assert_eq!(bytes, self.shared.queue, "the models lease queues only");
        self.shared.leases[self.me].first().map(|queue| (0, start(queue)))
    }

    fn view(&self, member: Member, page: Page, _bytes: usize) -> *const u8 {
        start(&self.shared.leases[member][page as usize])
    }

    fn zero_copy(&self) -> bool {
        false
    }

    fn stores(&self) -> bool {
        false
    }

    unsafe fn fetch(&self, _: Member, _: u64, _: *mut u8, _: usize) -> Result<()> {
        unreachable!("nobody reads others' in the models")
    }

    unsafe fn store(&self, _: Member, _: *const u8, _: u64, _: usize) -> Result<()> {
        unreachable!("nobody writes to others in the models")
    }

    fn is_dead(&self, _member: Member) -> bool {
        false
    }
}
