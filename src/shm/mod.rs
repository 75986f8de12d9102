// SPDX-License-Identifier: BSD-3-Clause
//! Shared memory among the processes of a node.
//!
//! A folder imports from those above it in this list only (`tests/layers.rs`):
//!
//! * [`os`]: what is asked of the system: memory limits, locks that show a death, errors.
//! * [`memory`]: what a group shares, whoever provides it ([`memory::Memory`]: real processes, or the heap of
//!   a test), and what stands where in it. [`config`]: its sizes.
//! * [`copy`]: copies within a process, and how other processes' private memory is read and written: by the
//!   system's means ([`copy::cma`]), or by the MPI library's ([`copy::smsc`]).
//! * [`pool`]: every process has one, from which it leases pages for its groups. Others map it, and write
//!   there only a [count](memory::layout::Sleepers) of who sleeps.
//! * [`group`]: is made by a handshake; its pages are free again when all members have said so.
//! * [`policy`]: the one table of the ways that the bytes of an operation can go. [`thresholds`]: from which
//!   lengths on.
//! * [`protocol`]: the members of a group are a team; a sequence of operations runs on a stream of it.
//! * [`op`]: the operations, a file each.
//! * [`rates`]: thresholds by times of this machine.
//! * [`exec`]: who runs operations: blocking calls, and calls of several nodes.
//!
//! # Words
//!
//! * *group*, *team*: processes that share memory; the same as those who work together on streams of it. A
//!   *member* has a number in it, from 0.
//! * *operation*, *epoch*: one collective; the number of an operation on its stream ([`turn`](protocol::turn)
//!   is the operation as one member takes part in it, a *view* what that member sees).
//! * *stream*: operations that follow each other in one order on all members. *Slot* of a team, and *lane*:
//!   the two numbers of a stream; blocking calls have slot 0, an operation of several nodes several lanes.
//! * *line*, *flag*: a cache line of 56 bytes of data and a word, the flag, by which its owner publishes
//!   them.
//! * *word*, *step*: epoch and step in 64 bits. A step is what an operation publishes once: data that are
//!   there (in a line), or data that a reader is through with (in its *read* line).
//! * *queue*: a member's memory for the data of a stream: short slots, and sets.
//! * *short slot*: 4 KiB for an eager message. A *small slot* is shorter: there is one for each line, and it
//!   is free when its line is.
//! * *fragment*, *set*: one slot of a pipeline; the slots of one operation, their number being its depth. A
//!   message travels *as a whole* where a set is one slot.
//! * *piece*: what a message is cut into, at most a fragment.
//! * *room*: the place (line, short slot, set) that a message of a certain length lies in.
//! * *dedicated*, *crowded*: each member has a core; members take turns on fewer cores (oversubscribed).
//! * *rotating*: slots that begin elsewhere in the queue in each operation, where cores are dedicated
//!   ([rotation](protocol::turn)). Data that are too short for that lie *still*, always in the same places.
//! * *past the caches*: by streaming stores.
//! * *way*: how bytes get from their writer to their readers ([`policy`] has all of them).
//! * *single copy*: by reading the writer's own memory, which it has *lent* (announced by its address) and
//!   leaves alone until all have read. *Divided*: reader and writer copy a part each.
//! * *dealt*: written to a ring of slots, block by block, each for one reader ([`op`]).
//! * *board*, *news*: bits by which processes give leased pages back to each other ([`pool::mailbox`]).
//! * *lease*, *budget*, *allowance*: pages taken from a pool; what a process may take; what a node may.

pub mod config;
pub mod copy;
pub mod exec;
pub mod group;
pub mod memory;
pub mod op;
pub mod os;
pub mod policy;
pub mod pool;
pub mod protocol;
pub mod rates;
pub mod thresholds;
