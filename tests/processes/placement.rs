// SPDX-License-Identifier: BSD-3-Clause
//! On which NUMA node memory lies.

use std::io;
use std::ptr;

use coll_rust::shm::memory::PAGE;
use coll_rust::shm::memory::{Contents, Memory};

use super::cases::{self, fill, filled, group, member, zero};
use super::job::{Folder, Job, run, skipped};

/// More than is reserved in one piece.
const BYTES: usize = 5 << 19;

#[test]
fn memory_lies_on_its_owners_node() {
    let word = 0_u64;
    match node_of((&raw const word).cast()) {
        Ok(_) => {
            run("placement", 2, "memfd").well();
            let folder = Folder::new("placement");
            run("placement", 2, folder.name()).well();
        }
        Err(error) => skipped("memory_lies_on_its_owners_node", error),
    }
}

fn done(code: i64) -> io::Result<()> {
    if code == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The node of what lies at an address, which is touched.
fn node_of(at: *const u8) -> io::Result<i32> {
    let mut node = -1_i32;
    let flags = 3_u64; // MPOL_F_NODE | MPOL_F_ADDR
    // SAFETY: fills `node`.
    done(unsafe { libc::syscall(libc::SYS_get_mempolicy, &raw mut node, ptr::null_mut::<u64>(), 0_u64, at, flags) })?;
    Ok(node)
}

/// Whether all pages lie on this node.
fn on(node: i32, at: *const u8, bytes: usize) -> bool {
    (0..bytes).step_by(PAGE).all(|page| node_of(at.wrapping_add(page)).unwrap() == node)
}

/// Lets the caller run on this processor only, and tells its node. `None`: it may not.
fn bind(processor: usize) -> Option<i32> {
    let mut mask = [0_u64; 16];
    mask[processor / 64] = 1 << (processor % 64);
    // SAFETY: an array of words is as good as the structure; `getcpu` fills the node.
    unsafe {
        done(libc::sched_setaffinity(0, size_of_val(&mask), (&raw const mask).cast()).into()).ok()?;
        let mut node = 0_u32;
        done(libc::syscall(libc::SYS_getcpu, ptr::null_mut::<u32>(), &raw mut node, ptr::null_mut::<u8>())).unwrap();
        Some(node as i32)
    }
}

/// Each process on a node of its own, as far as there are several.
pub fn placement(job: &mut Job) {
    let mut nodes: Vec<(i32, usize)> = Vec::new();
    for processor in 0..1024 {
        if let Some(node) = bind(processor).filter(|node| nodes.iter().all(|(known, _)| known != node)) {
            nodes.push((node, processor));
        }
    }
    let mine = bind(nodes[job.rank % nodes.len()].1).unwrap();
    let pool = cases::pool(job, 64 << 20).unwrap();
    let group = member(group(job, Some(&pool), &[0, 1]));
    let (page, at) = group.lease(BYTES, Contents::Zeros).unwrap();
    let taken = pool.usage();
    assert!(taken.leased >= BYTES as u64 && taken.held >= taken.leased, "{taken:?}");
    let other = 1 - job.rank;
    let page = u32::from_le_bytes(job.all(page.to_le_bytes())[other]);
    let theirs = i32::from_le_bytes(job.all(mine.to_le_bytes())[other]);
    // Who reads touches them first.
    let view = group.view(other, page, BYTES);
    assert!(zero(view, BYTES) && on(theirs, view, BYTES));
    job.barrier();
    assert!(on(mine, at, BYTES));
    fill(at, BYTES, 1 + job.rank as u64);
    job.barrier();
    assert!(filled(view, BYTES, 1 + other as u64) && on(theirs, view, BYTES) && on(mine, at, BYTES));
    // Nothing came to be by being touched.
    assert_eq!(pool.usage().held, taken.held);
    job.barrier();
}
