// SPDX-License-Identifier: BSD-3-Clause
use super::*;
use crate::op::types::Layout;

fn inputs(reduction: Reduction, base: Base, size: usize) -> Inputs {
    Inputs { seed: 5, call: 2, size, reduction, base }
}

fn packed(inputs: &Inputs, ranks: Range<usize>, first: usize, n: usize) -> Vec<u8> {
    let mut out = vec![0; n * inputs.base.size()];
    inputs.fold(ranks, first, &mut out);
    out
}

#[test]
fn folds_start_anywhere() {
    let inputs = inputs(Reduction::Sum, Base::Int16, 4);
    let whole = packed(&inputs, 0..4, 0, 50);
    assert_eq!(packed(&inputs, 0..4, 13, 7), whole[26..40]);
}

#[test]
fn folds_are_what_they_say() {
    let sum = inputs(Reduction::Sum, Base::Uint8, 3);
    let each: Vec<Vec<u8>> = (0..3).map(|rank| packed(&sum, rank..rank + 1, 0, 100)).collect();
    let by_hand: Vec<u8> = (0..100).map(|i| each[0][i].wrapping_add(each[1][i]).wrapping_add(each[2][i])).collect();
    assert_eq!(packed(&sum, 0..3, 0, 100), by_hand);
    // Wrapping shows: some exact sum does not fit.
    assert!((0..100).any(|i| each.iter().map(|x| u32::from(x[i])).sum::<u32>() > 255));
}

#[test]
fn affine_maps_compose_in_rank_order() {
    let (l, r) = (Pair { a: 3, b: 5 }, Pair { a: 7, b: 11 });
    // x ↦ 7 (3 x + 5) + 11
    assert_eq!(Pair::combine(Reduction::Affine, l, r), Pair { a: 21, b: 46 });
    assert_ne!(Pair::combine(Reduction::Affine, l, r), Pair::combine(Reduction::Affine, r, l));
    let mut right = [r, r];
    let mut left = [l, r];
    let mut n = 2;
    // SAFETY: two pairs at each address.
    unsafe { compose(left.as_mut_ptr().cast(), right.as_mut_ptr().cast(), &mut n, std::ptr::null_mut()) };
    assert_eq!(right, [Pair { a: 21, b: 46 }, Pair { a: 49, b: 88 }]);
}

#[test]
fn floating_point_is_exact_in_every_order() {
    for size in [2, 7, 300] {
        for reduction in [Reduction::Sum, Reduction::Prod] {
            let inputs = inputs(reduction, Base::Float, size);
            let value = |rank| f32::from_ne_bytes(packed(&inputs, rank..rank + 1, 3, 1).try_into().unwrap());
            let expected = f32::from_ne_bytes(packed(&inputs, 0..size, 3, 1).try_into().unwrap());
            let join = |a: f32, b: f32| if reduction == Reduction::Sum { a + b } else { a * b };
            let backwards = (0..size).rev().map(value).reduce(join).unwrap();
            assert_eq!(backwards.to_bits(), expected.to_bits());
            assert!(expected.is_normal() || expected == 0.0);
        }
    }
}

#[test]
fn results_are_not_all_alike() {
    use Reduction::*;
    for size in [2, 5, 64] {
        for reduction in [Sum, Prod, Max, Min, Band, Bor, Bxor, Land, Lor, Lxor] {
            let result = packed(&inputs(reduction, Base::Int32, size), 0..size, 0, 200);
            let first = &result[..4];
            assert!(result.chunks(4).any(|value| value != first), "{reduction:?} over {size}");
        }
    }
}

#[test]
fn what_mpi_defines() {
    let allowed = |reduction: &str, datatype: &str| {
        Inputs::allowed(
            Reduction::parse(reduction).unwrap(),
            reduction,
            Layout::parse(datatype).unwrap().plain,
            datatype,
        )
    };
    assert_eq!(allowed("sum", "double").unwrap(), Base::Double);
    assert_eq!(allowed("affine", "pair").unwrap(), Base::Pair);
    for (reduction, datatype, hint) in [
        ("band", "float", "sum, prod, max, min"),
        ("affine", "int32", "pair"),
        ("sum", "struct", "plain"),
        ("sum", "byte", "band"),
        ("max", "char", "plain"),
    ] {
        let text = allowed(reduction, datatype).unwrap_err().to_string();
        assert!(text.contains(reduction) && text.contains(datatype) && text.contains(hint), "{text}");
    }
    assert!(Reduction::parse("summ").unwrap_err().to_string().contains("'sum'"));
}
