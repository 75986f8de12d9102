// SPDX-License-Identifier: BSD-3-Clause
use super::super::Counts;
use super::super::reduction::Reduction;
use super::super::shape::{Neighbors, Shape, Spread};
use super::super::table::Kind;
use super::super::types::Base;
use super::*;

const SIZE: usize = 3;

struct World {
    layout: Layout,
    inputs: Inputs,
    shapes: Vec<Shape>,
    buffers: Vec<Buffers>,
}

impl World {
    fn new(kind: Kind, datatype: &str, count: usize, reduction: Reduction, base: Base) -> World {
        let layout = Layout::parse(datatype).unwrap();
        let spread = Spread { counts: Counts::Regular, mean: count, seed: 1, size: SIZE };
        let shapes: Vec<Shape> =
            (0..SIZE).map(|rank| Shape::new(kind, false, &spread, rank, &Neighbors::default())).collect();
        let buffers = shapes.iter().map(|shape| {
            let role = shape.role(true);
            let plan = Plan::new(role.sends * layout.extent, role.receives * layout.extent, 64).unwrap();
            Buffers::new(plan, 2, 64, layout.size).unwrap()
        });
        let buffers = buffers.collect();
        World { layout, inputs: Inputs { seed: 1, call: 9, size: SIZE, reduction, base }, shapes, buffers }
    }

    fn all(&mut self, mut what: impl FnMut(&mut Buffers, &Role, &Contents)) {
        for (shape, buffers) in self.shapes.iter().zip(&mut self.buffers) {
            what(buffers, shape.role(true), &Contents { inputs: self.inputs, root: 0, layout: &self.layout });
        }
    }

    /// Does what MPI would do for `alltoall`: element by element, without the gaps.
    fn exchange(&mut self, block: usize) {
        for (from, to) in (0..SIZE).flat_map(|from| (0..SIZE).map(move |to| (from, to))) {
            for i in 0..block {
                for (at, len) in &self.layout.pieces {
                    let (source, sink) =
                        ((to * block + i) * self.layout.extent + at, (from * block + i) * self.layout.extent + at);
                    // SAFETY: within the buffers by the shape.
                    unsafe {
                        std::ptr::copy(
                            self.buffers[from].send(1).add(source),
                            self.buffers[to].recv(1).add(sink),
                            *len,
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn each_wrong_byte_of_a_movement_is_noticed() {
    for datatype in ["byte", "double", "vector:2:5:int16", "indexed", "struct", "resized:20:pair"] {
        let mut world = World::new(Kind::Alltoall, datatype, 5, Reduction::Sum, Base::Byte);
        world.all(|buffers, role, contents| buffers.fill(1, role, contents, true));
        world.all(|buffers, role, contents| assert!(buffers.check(1, role, contents).is_err()));
        world.exchange(5);
        world.all(|buffers, role, contents| {
            buffers.check(1, role, contents).unwrap();
            let (_, recv, _) = buffers.parts(1);
            for i in 0..recv.len() {
                buffers.parts(1).1[i] ^= 4;
                assert!(buffers.check(1, role, contents).is_err(), "{datatype}: byte {i}");
                buffers.parts(1).1[i] ^= 4;
            }
            assert!(buffers.spoil(1, role, contents.layout));
            assert!(buffers.check(1, role, contents).is_err());
        });
    }
}

#[test]
fn a_changed_send_buffer_is_noticed() {
    let mut world = World::new(Kind::Alltoall, "int32", 4, Reduction::Sum, Base::Byte);
    world.all(|buffers, role, contents| buffers.fill(1, role, contents, true));
    world.exchange(4);
    world.all(|buffers, role, contents| {
        buffers.parts(1).0[7] ^= 1;
        let text = buffers.check(1, role, contents).unwrap_err();
        assert!(text.contains("send buffer was changed") && text.contains("element 1"), "{text}");
    });
}

#[test]
fn another_calls_contents_are_noticed() {
    let mut world = World::new(Kind::Alltoall, "byte", 16, Reduction::Sum, Base::Byte);
    world.all(|buffers, role, contents| buffers.fill(1, role, contents, true));
    world.exchange(16);
    world.inputs.call += 1;
    world.all(|buffers, role, contents| assert!(buffers.check(1, role, contents).is_err()));
}

/// Sums of 8-bit integers saturated as Open MPI's op/avx does.
#[test]
fn saturation_is_noticed() {
    let mut world = World::new(Kind::Allreduce, "int8", 64, Reduction::Sum, Base::Int8);
    world.all(|buffers, role, contents| buffers.fill(1, role, contents, true));
    let inputs = world.inputs;
    let mut sums = [[0i8; 64]; 2];
    for rank in 0..SIZE {
        let mut mine = [0u8; 64];
        inputs.fold(rank..rank + 1, 0, &mut mine);
        for (i, x) in mine.into_iter().enumerate() {
            sums[0][i] = sums[0][i].wrapping_add(x as i8);
            sums[1][i] = sums[1][i].saturating_add(x as i8);
        }
    }
    for (sums, right) in sums.iter().zip([true, false]) {
        world.all(|buffers, role, contents| {
            let bytes = sums.map(|x| x as u8);
            buffers.parts(1).1[GUARD..][..64].copy_from_slice(&bytes);
            assert_eq!(buffers.check(1, role, contents).is_ok(), right);
        });
    }
}

#[test]
fn sets_are_aligned_and_apart() {
    for (sends, receives, align) in [(0, 0, 16), (1, 1, 16), (100, 7, 4096), (64, 64, 64)] {
        let mut buffers = Buffers::new(Plan::new(sends, receives, align).unwrap(), 3, align, 8).unwrap();
        for set in 0..3 {
            assert_eq!((buffers.send(set) as usize % align, buffers.recv(set) as usize % align), (0, 0));
            let (send, recv, _) = buffers.parts(set);
            assert_eq!((send.len(), recv.len()), (sends, receives + 2 * GUARD));
            assert!(send.as_ptr_range().end <= recv.as_ptr());
        }
    }
    assert_eq!(Plan::new(usize::MAX - 10, 1, 64), None);
}
